"""A second pair of eyes on networks on patterns; `python -m undershoot.verifier BUNDLE` comes here by itself.

It stands alone (numpy, no other code of the package), is written from docs/bundles.md, and believes nothing: it finds out from
the moves what every arrangement of every pattern costs, computes what its network says of it, and compares; then it checks
that what is added may be added, and that symmetries are some. An arrangement of k tiles on n cells is a number here, their
cells being its digits to the base n; a set of cells that the blank may be on is a word with a bit for each.
"""

import hashlib
import json
from itertools import combinations, pairwise, permutations
from math import perm
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
FORMATS = ["undershoot pattern bundle 1", "undershoot pattern certificate 1"]
ARITHMETIC = "whole numbers, whole thresholds, exact on every device, 2"
KINDS = {"U8": "u1", "I8": "i1", "U16": "<u2", "U32": "<u4", "I32": "<i4", "U64": "<u8", "F32": "<f4"}
# Arrays of files: name, type (? may be absent), lengths (a number, or one letter, one length).
PUZZLE = """table.source U8 n A n; table.shift U8 n A n; table.modulus U16 n; table.legal U8 n A; table.cost I32 A;
    table.goals U8 G n; table.cursor I32 1; h0.cell_cost I32 n V; h0.pair_cost I32? W W; h0.divisor I32 1; parity.bits U8? n B;
    parity.constant I32? 1; parity.places I32? P J; parity.factors I32? J; parity.numbers I32? M;
    looks.network I32 L; looks.sum I32 L; looks.cells U8 L n; looks.values U8 L m"""
SHARES, LISTED = "{0}.share U8 {1} n; {0}.step I32 1", "{0}.numbers {1}? E{0}; {0}.costs U8? E{0}"
LAYER = "{0}.weight I8 {1} {2}; {0}.bias I32 {2}; {0}.scale F32 {2}"
MOST_FILE, MOST_MEMORY = 2**30, 24 * 10**9
UNREACHED, CHUNK = 255, 2**16
MEAN = "Of {arrangements:,} {checked:,} can be solved, {listed:,} are listed; mean h {mean_h:.4f}, mean cost {mean_cost:.4f}."


def need(holds: Any, why: str) -> Any:
    """Refuse to check the bundle unless this holds."""
    if not holds:
        raise ValueError(why)


def load(path: Path, schema: str = "") -> tuple[Any, str]:
    """What a plain file of bounded size holds: arrays and their SHA-256 if there is a schema, or an object and its digest."""
    try:
        need(path.is_file() and path.stat().st_size <= MOST_FILE, f"there is no such file of at most {MOST_FILE:,} bytes")
        data = path.read_bytes()
        return (tensors(data, schema), hashlib.sha256(data).hexdigest()) if schema else document(data)
    except (AttributeError, LookupError, OSError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"{path.name} is missing or malformed ({type(error).__name__}: {str(error)!a:.200})") from error


def document(text: bytes) -> tuple[dict[str, Any], str]:
    """A JSON object and its digest. What readers may take differently, NaN or a field that stands twice, is refused."""
    once = lambda pairs: dict(pairs) if len(dict(pairs)) == len(pairs) else need(False, "a field stands twice")  # noqa: E731
    read = json.loads(text.decode(), parse_constant=int, object_pairs_hook=once)  # int("NaN") is an error
    without = {field: value for field, value in read.items() if field != "digest"}
    return read, hashlib.sha256(json.dumps(without, sort_keys=True).encode()).hexdigest()


def tensors(data: bytes, schema: str) -> dict[str, Array]:
    """The arrays of a safetensors file, one after another as its header says; they must be as the schema says."""
    start, result, at = 8 + int.from_bytes(data[:8], "little"), dict[str, Array](), 0
    for name, entry in sorted(document(data[8:start])[0].items(), key=lambda item: item[1]["data_offsets"]):
        (begin, end), shape = entry["data_offsets"], entry["shape"]
        need(all(type(x) is int and x >= 0 for x in (begin, end, *shape)) and begin == at, f"{name} is out of place")
        result[name], at = np.frombuffer(data[start + begin : start + end], KINDS[entry["dtype"]]).reshape(shape), end
    wanted, lengths = {name: how for name, *how in map(str.split, schema.split(";"))}, dict[str, int]()
    need(start + at == len(data) and set(result) <= set(wanted), "it holds more than such a file does")
    for name, (kind, *shape) in wanted.items():
        if name in result or not kind.endswith("?"):
            fits = len(shape) == result[name].ndim
            for x, length in zip(shape, result[name].shape, strict=False):
                fits = fits and (int(x) if x.isdecimal() else lengths.setdefault(x, length)) == length
            need(fits and result[name].dtype == KINDS[kind.rstrip("?")], f"{name} has the wrong type or shape")
    return result


class Board:
    """A puzzle all of whose moves exchange the cursor (the blank) with one other cell."""

    def __init__(self, arrays: dict[str, Array], names: list[str]) -> None:
        order = [arrays[f"table.{part}"] for part in ("source", "shift", "modulus", "legal", "cost", "goals")]
        source, shift, modulus, legal, cost, self.goals = order
        self.cells, self.cursor = n, cursor = len(modulus), int(arrays["table.cursor"][0])
        text = b"undershoot move table 1\n" + b"".join(repr(array.shape).encode() + array.tobytes() for array in order)
        self.fingerprint = hashlib.sha256(text + repr((cursor, tuple(names))).encode()).hexdigest()
        ordered = np.sort(self.goals, axis=1)
        alike = len(ordered) and (ordered == ordered[0]).all() and (ordered[:, 1:] > ordered[:, :-1]).all()
        need(alike and 2 <= n <= 64 and cursor in ordered[0], "this is no board of 2 to 64 cells with a cursor and other tiles")
        need((self.goals < modulus).all() and not shift.any() and (legal <= 1).all(), "a value, shift or legal is out of range")
        need(len(names) == len(cost) and (cost >= 1).all(), "names do not fit, or a move costs less than 1")
        self.price, kinds = np.zeros((n, n), np.int64), dict[tuple[int, int], int]()  # of an exchange; 0 if there is none
        for c, action in np.argwhere(legal):
            moved = np.flatnonzero(source[c, action] != np.arange(n)).tolist()
            exchanged = len(moved) == 2 and c in moved and sorted(source[c, action, moved]) == moved
            need(exchanged and modulus[moved[0]] == modulus[moved[1]], "a move does not exchange the cursor with another cell")
            to, price = sum(moved) - int(c), int(cost[action])
            self.price[c, to] = min(self.price[c, to] or price, price)
        for c, to in np.argwhere(self.price).tolist():
            how = to - c, int(self.price[c, to])
            kinds[how] = kinds.get(how, 0) | 1 << c
        self.word = np.dtype("u2" if n <= 16 else "u4" if n <= 32 else "u8").type
        # How far the cursor goes, what that costs, and from which cells it can be done.
        self.kinds = [(by, price, self.word(cells)) for (by, price), cells in kinds.items()]

    def before(self, blank: Array, by: int, cells: Any) -> Array:
        """From which cells an exchange of this kind brings the cursor to one of these."""
        return np.asarray((blank >> self.word(by) if by > 0 else blank << self.word(-by)) & cells)

    def flood(self, blank: Array, occupied: Array) -> Array:
        """From which cells the cursor comes to one of these without moving what stands on occupied ones."""
        while True:
            wider = blank.copy()
            for by, _, cells in self.kinds:
                wider |= self.before(blank, by, cells) & ~occupied
            if (wider == blank).all():
                return wider
            blank = wider

    def costs(self, homes: list[int]) -> Array:
        """uint8[n^k]: what arrangements of the tiles of these cells (of the first goal) cost, with the blank where that is the
        least, if moves of others cost nothing. Dijkstra's algorithm backwards from the goals, all of one cost at a time."""
        n, k = self.cells, len(homes)
        need(n**k * (1 + self.word().itemsize) <= MOST_MEMORY, f"there is no room for the arrangements of {k} tiles")
        costs, seen = np.full(n**k, UNREACHED, np.uint8), np.zeros(n**k, self.word)
        weights = [n ** (k - 1 - i) for i in range(k)]
        # Of one cost, what one kind of exchange of one tile leads to is in one list. No arrangement stands there twice: the
        # exchange, taken back, leads to one arrangement and one cell of the blank, and these are settled together once.
        waiting: dict[int, dict[Any, list[tuple[Array, Array]]]] = {0: {}}
        for number, goal in enumerate(self.goals.tolist()):
            key = sum(goal.index(self.goals[0, home]) * weight for home, weight in zip(homes, weights, strict=True))
            waiting[0][number, None] = [(np.array([key]), np.array([goal.index(self.cursor)], self.word))]
        while waiting:
            cost = min(waiting)
            need(cost < UNREACHED, "an arrangement costs 255 or more, and this verifier counts to 254")
            for parts in waiting.pop(cost).values():
                keys, blanks = (np.concatenate(part) for part in zip(*parts, strict=True))
                for first in range(0, len(keys), CHUNK):
                    some = slice(first, first + CHUNK)
                    self.settle(cost, keys[some], blanks[some], weights, costs, seen, waiting)
        return costs

    def settle(self, cost: int, keys: Array, at: Array, weights: list[int], costs: Array, seen: Array, waiting: Any) -> None:
        """Give arrangements with the blank on these cells their cost, if they are new, and note what leads to them."""
        one = self.word(1)
        new = (seen[keys] >> at) & one == 0
        keys, at = keys[new], at[new]
        cells = [(keys // weight % self.cells).astype(self.word) for weight in weights]
        bits = [one << cell for cell in cells]
        blank = self.flood(one << at, np.bitwise_or.reduce(bits)) & ~seen[keys]
        costs[keys[seen[keys] == 0]] = cost
        seen[keys] |= blank
        for number, (by, price, away) in enumerate(self.kinds):
            movable = self.before(blank, by, away)
            for i, weight in enumerate(weights):
                rows = np.flatnonzero(movable & bits[i])
                made, left = keys[rows] + by * weight, cells[i][rows]
                new = (seen[made] >> left) & one == 0
                if new.any():
                    lists = waiting.setdefault(cost + price, {})
                    lists.setdefault((number, i), []).append((made[new], left[new]))

    def wrong_looks(self, arrays: dict[str, Array], homes: list[list[int]]) -> list[str]:
        """Why looks may not be taken, or added. homes: of the tiles of the pattern that each asks about."""
        wrong, asked, sums, n = list[str](), list[set[int]](), arrays["looks.sum"], self.cells
        for number, (cells, values, home) in enumerate(zip(arrays["looks.cells"], arrays["looks.values"], homes, strict=True)):
            is_order = (np.sort(cells) == np.arange(n)).all() and (np.sort(values) == np.arange(len(values))).all()
            need(is_order and self.goals.max() < len(values), f"look {number} does not permute the cells and the values")
            back, as_it_is = np.argsort(cells), (cells == np.arange(n)).all() and (values == np.arange(len(values))).all()
            keeps = as_it_is or (len(self.goals) == 1 and (values[self.goals[:, cells]] == self.goals).all())
            if not keeps or values[self.cursor] != self.cursor or (self.price[np.ix_(back, back)] != self.price).any():
                wrong.append(f"look {number} is through no symmetry: the goal or the moves are not kept")
            asked.append({values.tolist().index(self.goals[0, cell]) for cell in home})
        for i, j in combinations(range(len(asked)), 2):
            if sums[i] == sums[j] and asked[i] & asked[j]:
                wrong.append(f"looks {i} and {j} are added: a move of the tile {min(asked[i] & asked[j])} would count twice")
        return wrong


class Network:
    """What is said of every arrangement of one pattern."""

    def __init__(self, at: int, about: Any, thresholds: Any, arrays: Any, model: Any, listed: Any) -> None:
        self.share, self.step = arrays[f"{at}.share"].astype(np.int64), int(arrays[f"{at}.step"][0])
        self.homes, widths, (k, n) = [cell for (cell,) in about["pattern"]["pieces"]], about["widths"], self.share.shape
        tiles = [cell for cell, value in enumerate(arrays["table.goals"][0]) if value != arrays["table.cursor"][0]]
        follows = len(set(self.homes)) == k >= 2 and set(self.homes) <= set(tiles)
        need(follows and about["pattern"]["is_additive"] is True, f"network {at} does not follow two or more tiles")
        sees = about["encoding"] == "pairs" and widths[0] == k * (k - 1) // 2 * n * (n - 1) and len(widths) > 2
        need(sees and about["arithmetic"] == ARITHMETIC, f"network {at} does not see every pair of tiles on two cells, exactly")
        self.layers = list[tuple[Array, Array, Array]]()
        for i in range(len(widths) - 1):
            weight, bias, scale = (model[f"{at}.layers.{i}.{part}"] for part in ("weight", "bias", "scale"))
            largest = (255 if i else 1) * np.abs(weight.astype(np.int64)).sum(axis=0) + np.abs(bias.astype(np.int64))
            need((weight >= -127).all() and (largest < 2**24).all(), f"layer {i} of network {at} need not be exact")
            need(((scale >= 2.0**-64) & (scale <= 2.0**64)).all(), f"a scale of network {at} is not in 2^-64..2^64")
            self.layers.append((weight.astype(np.float64), bias.astype(np.float64), scale))
        # The first layer: int32[n, n, H] for each pair of tiles, by their cells; 0 where these are the same.
        self.pairs, apart = dict[tuple[int, int], Array](), ~np.eye(n, dtype=bool)
        for t, pair in enumerate(combinations(range(k), 2)):
            self.pairs[pair] = np.zeros((n, n, widths[1]), np.int32)
            self.pairs[pair][apart] = self.layers[0][0][t * n * (n - 1) : (t + 1) * n * (n - 1)]
        whole = type(thresholds) is list and all(type(one) is int and abs(one) <= 2**24 for one in thresholds)
        fits = whole and len(thresholds) == widths[-1] and about["step"] == self.step >= 1
        need(fits, f"the thresholds or the step of network {at} do not fit")
        self.thresholds, none = np.array(thresholds, np.float64), np.zeros(0, np.uint8)
        self.listed, self.said = listed.get(f"{at}.numbers", none).astype(np.int64), listed.get(f"{at}.costs", none)
        inside = len(self.listed) == len(self.said) and ((self.listed >= 0) & (self.listed < perm(n, k))).all()
        need(inside and (np.diff(self.listed) > 0).all(), f"the listed arrangements of network {at} are not in order")

    def sums(self, starts: Array, row: Array, y: Array, z: Array) -> Array:
        """Of the last layer, float64[B, levels]. starts: cells of all tiles but two; row, y, z: a row of these, two more."""
        (k, n), width = self.share.shape, len(self.layers[0][1])
        first = np.zeros((len(starts), n, width), np.int32) + self.layers[0][1].astype(np.int32)
        second = np.zeros_like(first)
        for i, j in combinations(range(k - 2), 2):
            first += self.pairs[i, j][starts[:, i], starts[:, j]][:, None]
        for i in range(k - 2):
            first += self.pairs[i, k - 2][starts[:, i]]
            second += self.pairs[i, k - 1][starts[:, i]]
        sums: Array = first[row, y] + second[row, z] + self.pairs[k - 2, k - 1][y, z]
        for (_, _, scale), (weight, bias, _) in pairwise(self.layers):
            active = np.clip(np.rint(sums.astype(np.float32) * scale), 0, 255)
            sums = active.astype(np.float64) @ weight + bias  # whole numbers below 2^24: float64 adds them exactly
        return sums

    def figures(self, costs: Array) -> tuple[dict[str, Any], list[str]]:
        """What a certificate says of it, and examples of arrangements with h above the cost. costs: of all, uint8[n^k]."""
        k, n = self.share.shape
        table, examples, number, total = hashlib.sha256(), list[str](), 0, np.zeros(4, np.int64)
        starts = np.array(list(permutations(range(n), k - 2)), np.int64)
        for begin in range(0, len(starts), at_once := max(1, CHUNK // 4 // n**2)):
            start = starts[begin : begin + at_once]
            free = np.repeat(~np.eye(n, dtype=bool)[None], len(start), axis=0)
            for i in range(k - 2):
                free[np.arange(len(start)), start[:, i]] = free[np.arange(len(start)), :, start[:, i]] = False
            row, y, z = np.nonzero(free)  # in the order in which arrangements are numbered
            passed = self.sums(start, row, y, z) > self.thresholds
            h = self.step * np.where(passed.all(axis=1), passed.shape[1], passed.argmin(axis=1))
            cells = np.concatenate([start[row], y[:, None], z[:, None]], axis=1)
            for shares, cell in zip(self.share, cells.T, strict=True):
                h += shares[cell]
            inside = slice(*np.searchsorted(self.listed, [number, number + len(h)]))
            h[self.listed[inside] - number] = self.said[inside]
            cost = costs[cells @ np.array([n ** (k - 1 - i) for i in range(k)])]
            table.update(cost.tobytes())
            reached, above = cost != UNREACHED, np.flatnonzero((h > cost) & (cost != UNREACHED))
            total += reached.sum(), len(above), h[reached].sum(), cost[reached].sum(dtype=np.int64)
            for b in above[: 3 - len(examples)]:
                examples.append(f"h is {h[b]}, the cost {cost[b]}, of the tiles of {self.homes} on {cells[b].tolist()}")
            number += len(h)
        checked, violations, values, true = total.tolist()
        found = {"arrangements": number, "checked": checked, "violations": violations, "listed": len(self.listed)}
        return found | {"mean_h": values / checked, "mean_cost": true / checked, "table": table.hexdigest()}, examples


def verify(folder: Path) -> tuple[list[str], str]:
    """What is not as the certificate says, and what was found, in sentences."""
    paths = [folder / name for name in ("config.json", "calibration.json", "certificate.json")]
    (config, config_sum), (calibration, calibration_sum), (certificate, certificate_sum) = map(load, paths)
    formats = [config.get("format"), certificate.get("format"), certificate.get("arithmetic")]
    need(formats == [*FORMATS, ARITHMETIC], f"this verifier checks {FORMATS}, {ARITHMETIC!r}, and nothing else")
    need(all(one["pattern"]["is_additive"] for one in config["networks"]), "only patterns of tiles that slide are checked here")
    about, sizes = config["networks"], [len(one["pattern"]["pieces"]) for one in config["networks"]]
    layers = [LAYER.format(f"{i}.layers.{j}", *w) for i, one in enumerate(about) for j, w in enumerate(pairwise(one["widths"]))]
    arrays, puzzle_sum = load(
        folder / "puzzle.safetensors", ";".join([PUZZLE, *(SHARES.format(*one) for one in enumerate(sizes))])
    )
    model, weights = load(folder / "model.safetensors", ";".join(layers))
    board, asked = Board(arrays, config["actions"]), arrays["looks.network"].tolist()
    listed, exceptions, fingerprint = dict[str, Array](), None, board.fingerprint
    if calibration["exceptions"] is not None:
        kinds = [LISTED.format(i, "U32" if perm(board.cells, k) < 2**32 else "U64") for i, k in enumerate(sizes)]
        listed, exceptions = load(folder / "exceptions.safetensors", ";".join(kinds))
    pairs = zip(about, calibration["thresholds"], strict=True)
    networks = [Network(i, one, thresholds, arrays, model, listed) for i, (one, thresholds) in enumerate(pairs)]
    need(set(asked) == set(range(len(networks))), "looks ask other networks than there are")
    wrong, checks = board.wrong_looks(arrays, [networks[one].homes for one in asked]), list[dict[str, Any]]()
    additive = "they must not be" if wrong else "no move costs two of one sum, and symmetries keep the moves and the goal"
    for network in networks:
        found, examples = network.figures(board.costs(network.homes))
        checks, wrong = [*checks, found], [*wrong, *examples]
    bound: dict[str, Any] = {"fingerprint": fingerprint, "weights": weights, "calibration": calibration_sum}
    bound |= {"digest": certificate_sum, "puzzle": config["puzzle"], "set": config["set"], "additivity": "checked"}
    bound |= {"patterns": [one["pattern"]["pieces"] for one in about], "inputs": [one["inputs"] for one in about]}
    for file, said, truth in (
        ("certificate.json", certificate, bound),
        *(("certificate.json", row, found) for row, found in zip(certificate["checks"], checks, strict=True)),
        ("config.json", config, {"fingerprint": fingerprint, "digest": config_sum}),
        ("config.json", config["sha256"], {"model.safetensors": weights, "puzzle.safetensors": puzzle_sum}),
        ("calibration.json", calibration, {"weights": weights, "exceptions": exceptions, "digest": calibration_sum}),
    ):
        for name, true in truth.items():
            if json.dumps(said.get(name), sort_keys=True) != json.dumps(true, sort_keys=True):  # texts: 1, true and 1.0 differ
                wrong.append(f"{file} says {name}: {said.get(name)!a:.400}, but it is {true!a:.400}")
    sums, above = len(set(arrays["looks.sum"].tolist())), sum(one["violations"] for one in checks)
    name, verdict = ascii(config["puzzle"])[1:-1][:99], "refuted" if wrong else "confirmed"
    lines = [f"{name}: every arrangement of {len(checks)} patterns enumerated, h above the cost on {above:,} of them."]
    lines += [*(MEAN.format(**one) for one in checks), f"{len(asked)} looks make up {sums} sums: {additive}."]
    lines += [f"The certificate is {verdict}, for the puzzle whose moves the bundle holds, whatever its name: fingerprint"]
    return wrong, "\n".join(lines) + f" {fingerprint}."
