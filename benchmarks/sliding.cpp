// IDA* for the 15-puzzle, written by hand for it alone: what our generic loop is measured against.
//
//   g++ -O3 -march=native -std=c++17 sliding.cpp -o sliding
//   ./sliding manhattan|sums|reflected < boards        a board is a line of 16 numbers, row by row, 0 for the blank
//
// The goal is 1 2 .. 15 0. `sums` adds three tables, of 6, 6 and 3 tiles; `reflected` also looks at the board in its diagonal.
// Moves are tried in the order of the way the tile goes: up, down, left, right. Prints lines of: cost generated seconds; and
// `made SECONDS` once tables are there. Seconds are of the processor.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

namespace {

using Board = std::array<uint8_t, 16>;
constexpr int kFrom[4] = {4, -4, 1, -1};  // where the tile that goes up, down, left, right stands, seen from the blank

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

bool on_board(int blank, int way) {
  switch (way) {
    case 0: return blank < 12;
    case 1: return blank >= 4;
    case 2: return blank % 4 < 3;
    default: return blank % 4 > 0;
  }
}

int distance(int a, int b) { return std::abs(a / 4 - b / 4) + std::abs(a % 4 - b % 4); }

int8_t change[16][16][16];  // of Manhattan distance, by tile, where it came from and where it goes
uint8_t mirrored[17];       // of a cell

struct Choices {
  uint8_t count = 0, cell[4] = {}, way[4] = {};
};
Choices choices[16][5];  // by the blank's cell and the way that would undo the last move; 4 for none

const int kGroups[3][6] = {{1, 5, 6, 9, 10, 13}, {7, 8, 11, 12, 14, 15}, {2, 3, 4, 0, 0, 0}};
const int kSizes[3] = {6, 6, 3};
int group_of[16], shift_of[16];
uint8_t* table[3];

void make_table(int group) {
  const int n = kSizes[group];
  const size_t size = size_t{1} << (4 * n);
  table[group] = static_cast<uint8_t*>(std::aligned_alloc(1 << 21, (size + (1 << 21) - 1) >> 21 << 21));
  std::memset(table[group], 255, size);
  std::vector<uint16_t> reached(size);
  std::vector<uint32_t> now, later;
  uint32_t goal = 0;
  for (int i = 0; i < n; i++) goal |= static_cast<uint32_t>(kGroups[group][i] - 1) << (4 * i);
  now.push_back(goal << 4 | 15);
  for (int cost = 0; !now.empty(); cost++) {
    for (uint32_t item : now) {
      const uint32_t code = item >> 4;
      unsigned region = 1u << (item & 15), occupied = 0, before = 0;
      if (reached[code] & region) continue;
      for (int i = 0; i < n; i++) occupied |= 1u << (code >> (4 * i) & 15);
      while (region != before) {
        before = region;
        region |= (region << 4 | region >> 4 | (region & 0x7777) << 1 | (region & 0xEEEE) >> 1) & ~occupied & 0xFFFF;
      }
      reached[code] |= static_cast<uint16_t>(region);
      if (table[group][code] == 255) table[group][code] = static_cast<uint8_t>(cost);
      for (int i = 0; i < n; i++) {
        const int cell = code >> (4 * i) & 15;
        for (int way = 0; way < 4; way++) {
          if (!on_board(cell, way)) continue;
          const int to = cell + kFrom[way];
          if (!(region >> to & 1)) continue;
          const uint32_t next = code + (static_cast<uint32_t>(to - cell) << (4 * i));
          if (!(reached[next] >> cell & 1)) later.push_back(next << 4 | static_cast<uint32_t>(cell));
        }
      }
    }
    now.swap(later);
    later.clear();
  }
}

struct Looks {
  uint32_t code[3] = {};
  uint8_t entry[3] = {}, sum = 0;
};

struct Search {
  static inline Board board{};
  static inline uint64_t generated = 0;

  static bool solved() {
    for (int i = 0; i < 15; i++)
      if (board[static_cast<size_t>(i)] != i + 1) return false;
    return true;
  }

  static bool by_manhattan(int blank, int undo, int slack, int h) {
    const Choices& open = choices[blank][undo];
    generated += open.count;
    for (int i = 0; i < open.count; i++) {
      const int from = open.cell[i], tile = board[static_cast<size_t>(from)];
      const int by = change[tile][from][blank];
      if (slack - 1 - by < 0) continue;
      if (h + by == 0) return true;
      board[static_cast<size_t>(blank)] = static_cast<uint8_t>(tile);
      if (by_manhattan(from, open.way[i] ^ 1, slack - 1 - by, h + by)) return true;
      board[static_cast<size_t>(from)] = static_cast<uint8_t>(tile);
    }
    return false;
  }

  template <bool kReflected>
  static bool by_tables(int blank, int undo, int left, const Looks& straight, const Looks& mirror) {
    const Choices& open = choices[blank][undo];
    generated += open.count;
    for (int i = 0; i < open.count; i++) {
      const int from = open.cell[i], tile = board[static_cast<size_t>(from)];
      const int group = group_of[tile];
      const uint32_t code = straight.code[group] + (static_cast<uint32_t>(blank - from) << shift_of[tile]);
      const int entry = table[group][code], sum = straight.sum - straight.entry[group] + entry;
      if (sum > left - 1) continue;
      Looks other;
      if (kReflected) {
        const int image = mirrored[tile - 1] + 1, there = group_of[image];
        const uint32_t place = mirror.code[there] + (static_cast<uint32_t>(mirrored[blank] - mirrored[from]) << shift_of[image]);
        const int seen = table[there][place], total = mirror.sum - mirror.entry[there] + seen;
        if (total > left - 1) continue;
        other = mirror;
        other.code[there] = place, other.entry[there] = static_cast<uint8_t>(seen), other.sum = static_cast<uint8_t>(total);
      }
      Looks next = straight;
      next.code[group] = code, next.entry[group] = static_cast<uint8_t>(entry), next.sum = static_cast<uint8_t>(sum);
      board[static_cast<size_t>(blank)] = static_cast<uint8_t>(tile);
      if (sum == 0 && from == 15 && solved()) return true;
      if (by_tables<kReflected>(from, open.way[i] ^ 1, left - 1, next, other)) return true;
      board[static_cast<size_t>(from)] = static_cast<uint8_t>(tile);
    }
    return false;
  }
};

Looks looks_at(const Board& board, bool reflected) {
  Looks looks;
  for (int cell = 0; cell < 16; cell++) {
    int tile = board[static_cast<size_t>(cell)];
    if (!tile) continue;
    if (reflected) tile = mirrored[tile - 1] + 1;
    looks.code[group_of[tile]] |= static_cast<uint32_t>(reflected ? mirrored[cell] : cell) << shift_of[tile];
  }
  for (int group = 0; group < 3; group++) looks.sum = static_cast<uint8_t>(looks.sum + (looks.entry[group] = table[group][looks.code[group]]));
  return looks;
}

}  // namespace

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "manhattan";
  const bool by_tables = std::strcmp(mode, "manhattan") != 0, reflected = !std::strcmp(mode, "reflected");
  for (int a = 0; a < 16; a++) {
    mirrored[a] = static_cast<uint8_t>(a % 4 * 4 + a / 4);
    for (int b = 0; b < 16; b++)
      for (int tile = 1; tile < 16; tile++) change[tile][a][b] = static_cast<int8_t>(distance(tile - 1, b) - distance(tile - 1, a));
  }
  for (int blank = 0; blank < 16; blank++)
    for (int undo = 0; undo < 5; undo++)
      for (int way = 0; way < 4; way++)
        if (way != undo && on_board(blank, way)) {
          Choices& open = choices[blank][undo];
          open.cell[open.count] = static_cast<uint8_t>(blank + kFrom[way]);
          open.way[open.count++] = static_cast<uint8_t>(way);
        }
  if (by_tables) {
    const double began = cpu_seconds();
    for (int group = 0; group < 3; group++) {
      for (int i = 0; i < kSizes[group]; i++) group_of[kGroups[group][i]] = group, shift_of[kGroups[group][i]] = 4 * i;
      make_table(group);
    }
    std::printf("made %.3f\n", cpu_seconds() - began);
  }
  for (;;) {
    Board start{};
    int blank = 0, h = 0;
    for (int i = 0; i < 16; i++) {
      int tile;
      if (std::scanf("%d", &tile) != 1) return 0;
      start[static_cast<size_t>(i)] = static_cast<uint8_t>(tile);
      if (tile) h += distance(tile - 1, i); else blank = i;
    }
    const double began = cpu_seconds();
    Search::generated = 0;
    Looks straight, mirror;
    int bound = h;
    if (by_tables) {
      straight = looks_at(start, false);
      mirror = looks_at(start, true);
      bound = reflected && mirror.sum > straight.sum ? mirror.sum : straight.sum;
    }
    for (; h; bound += 2) {
      Search::board = start;
      const bool found = !by_tables ? Search::by_manhattan(blank, 4, bound - h, h)
                         : reflected ? Search::by_tables<true>(blank, 4, bound, straight, mirror)
                                     : Search::by_tables<false>(blank, 4, bound, straight, mirror);
      if (found) break;
    }
    std::printf("%d %llu %.6f\n", bound, static_cast<unsigned long long>(Search::generated), cpu_seconds() - began);
  }
}
