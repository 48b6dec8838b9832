"""Networks on patterns beside what else one can do with as many bytes.

    python benchmarks/pattern_baselines.py losses [--device cuda] [--subjects "7 tiles,corners"] [--losses cross-entropy]
        [--seconds 300]
    python benchmarks/pattern_baselines.py tables [--subjects ...]
    python benchmarks/pattern_baselines.py searches --networks ours=runs/ours cross-entropy=runs/other [--boards 100]

losses: the same network trained with our loss and with the cross-entropy one. `too high` is the share of all arrangements that
it puts above their cost before thresholds are fitted; then come the means with thresholds under which none is (each is compared
with the table), with a share of the arrangements listed, and with all of those listed that were too high (a side table, after
Samadi and others 2008), the last two over 262,144 arrangements drawn uniformly; `list` is their bytes, five for each.
`read where it is largest` is for the cross-entropy loss, and proves nothing.

tables: minima over blocks of neighbours in the table's own order; tables of fewer pieces; for patterns that symmetries map onto
themselves, one entry for each class of arrangements. Half a byte an entry where no cost is above 14, otherwise a byte.
"""

import argparse
import dataclasses
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import undershoot as us
from undershoot.arrays import I64, U8, AnyArray, States
from undershoot.bundles.pattern_reading import read_pattern_bundle
from undershoot.calibration.on_patterns import Fitting, fit_within, fitting
from undershoot.guarantees import PROVEN, Heuristic, OptimalityKind
from undershoot.heuristics.every_arrangement import check_every_arrangement
from undershoot.heuristics.learned_patterns import learned_patterns
from undershoot.heuristics.pattern_networks import PatternNetwork
from undershoot.heuristics.patterns import PatternHeuristic, sums_of_looks
from undershoot.heuristics.whole_numbers import to_whole_numbers
from undershoot.pattern_tables.cache import table_of
from undershoot.pattern_tables.looks import Look, distinct_patterns, symmetry_between
from undershoot.pattern_tables.packing import MOST_HALF
from undershoot.pattern_tables.pattern import Pattern
from undershoot.pattern_tables.ranking import rank_of
from undershoot.pattern_tables.residuals import codes_at, encoding_of, residuals_of, shares_of, sums_of
from undershoot.pattern_tables.sets import pattern_set
from undershoot.pattern_tables.tables import PatternTable
from undershoot.search.ida import solve_by_deepening

LISTED_BYTES = 5
SEARCHED = "6-6-3+reflected"
DRAWN = 1 << 16


@dataclass(frozen=True)
class Subject:
    """A pattern, a network for it, and the bytes at which tables are compared."""

    puzzle: str
    patterns: str
    settings: dict[str, Any]
    smaller: tuple[str, ...]
    """Patterns of fewer pieces."""

    @property
    def pattern(self) -> Pattern:
        return pattern_set(us.puzzle(self.puzzle), self.patterns).patterns[0]


SUBJECTS = {
    "5 tiles": Subject("tiles-4x4", "1 2 3 4 5", {}, ("1 2 3", "1 2 3 4")),
    "7 tiles": Subject("tiles-4x4", "1 2 3 4 5 6 7", {}, ("1 2 3 4 5", "1 2 3 4 5 6")),
    "corners": Subject("cube-3x3", "corners", {"hidden": (128, 32, 32), "target_interval": 5000}, ()),
    "6 edges": Subject("cube-3x3", "6", {"hidden": (240, 32, 32), "target_interval": 5000}, ("4", "5")),
    "7 edges small": Subject("cube-3x3", "7", {"hidden": (64, 32, 32), "target_interval": 5000}, ("5", "6")),
    "7 edges": Subject("cube-3x3", "7", {"hidden": (320, 32, 32), "target_interval": 5000}, ("5", "6")),
}
LOSSES = {"ours": "asymmetric", "cross-entropy": "cross-entropy"}


def losses(subject: Subject, device: str, steps: int, which: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    from undershoot.training.on_patterns import PatternLearner
    from undershoot.training.recipe import Loss
    from undershoot.training.recipes import recipe

    puzzle, pattern = us.puzzle(subject.puzzle), subject.pattern
    table = table_of(pattern, puzzle.name)
    residuals = residuals_of(table, puzzle.base_heuristic)
    yield "the table", {"arrangements": len(table.unpacked()), "mean": round(table.mean, 4)}
    for name in which:
        settings = {**subject.settings, "steps": steps, "loss": Loss(LOSSES[name]), "device": device, "tf32": device == "cuda"}
        rules = dataclasses.replace(recipe(puzzle, "exact", subject.patterns), **settings)
        learner = PatternLearner(table, residuals, rules)
        began = time.perf_counter()
        trained = learner.train()
        seconds = time.perf_counter() - began
        some = np.random.default_rng(0).integers(0, int(pattern.folded.size), 8192)
        whole = to_whole_numbers(trained, encoding_of(pattern, pairs=True), codes_at(pattern.folded, some))
        network = PatternNetwork(pattern, whole, residuals, (0,) * whole.widths[-1])
        figures: dict[str, Any] = {"bytes": sum(weight.size for weight in whole.weights), "seconds": round(seconds, 1)}
        yield name, {**figures, **with_thresholds(network, table, device)}


def with_thresholds(network: PatternNetwork, table: PatternTable, device: str) -> dict[str, Any]:
    before = check_every_arrangement(network, table, device=device)
    size, made = len(table.unpacked()), fitting(network, table, device=device)
    fitted = made.fit()
    after = check_every_arrangement(fitted, table, device=device)
    figures: dict[str, Any] = {
        "mean before": round(before.mean, 4),
        "too high": before.violations / before.arrangements,
        "mean, none listed": round(after.mean, 4),
        "violations after": after.violations,
    }
    for share in (1e-4, 1e-3):
        (some,) = fit_within([made], round(share * size))
        figures[f"mean, {share:.2%} listed"] = round(drawn_mean(some, made), 4)
        figures[f"list, {share:.2%}"] = LISTED_BYTES * len(some.listed)
    likeliest = read_at_the_largest(network, made)
    figures["read where it is largest, before: mean"] = round(float(likeliest.mean()), 4)
    figures["read where it is largest, before: too high"] = float((likeliest > made.sample.costs).mean())
    figures["mean, all that were too high listed"] = round(drawn_mean(network, made), 4)
    figures["list, all that were too high"] = LISTED_BYTES * before.violations
    return figures


def read_at_the_largest(network: PatternNetwork, made: Fitting) -> I64:
    """Values of the arrangements drawn, if levels are logarithms of the ratios of neighbours in a distribution, as the
    cross-entropy loss has it: the cost that is likeliest. Thresholds cannot be fitted to that, but it is how such a network is
    read elsewhere."""
    whole, sample = network.network, made.sample
    steps = np.cumsum(sample.sums * whole.scales[-1], axis=1)
    likeliest = np.concatenate([np.zeros((len(steps), 1)), steps], axis=1).argmax(axis=1)
    return np.asarray(sample.shares + network.residuals.step * likeliest, dtype=np.int64)


def drawn_mean(network: PatternNetwork, made: Fitting) -> float:
    """Of values, those that are too high taken for listed; over arrangements drawn uniformly."""
    costs = made.sample.costs.astype(np.int64)
    values = dataclasses.replace(network, listed=network.listed[:0], listed_costs=network.listed_costs[:0]).values(
        made.sample.numbers
    )
    known = np.isin(made.sample.numbers, network.listed)
    return float(np.where(known, costs, np.minimum(values, costs))[costs < 255].mean())


def searches(named: dict[str, str], boards: int) -> Iterator[tuple[str, dict[str, Any]]]:
    puzzle = us.puzzle("tiles-4x4")
    chosen, states = pattern_set(puzzle, SEARCHED), puzzle.sample(boards, seed=3)
    room = 0
    for name, path in named.items():
        bundle = read_pattern_bundle(path, with_calibration=False)
        of = {network.pattern.followed: table_of(network.pattern, puzzle.name) for network in bundle.networks}
        made = [fitting(network, of[network.pattern.followed]) for network in bundle.networks]
        size = sum(int(network.pattern.folded.size) for network in bundle.networks)
        before = above(bundle.networks, of)
        ways = {"none listed": fit_within(made, 0), "0.1 % listed": fit_within(made, size // 1000)}
        ways["side table"] = [with_side_table(network, of[network.pattern.followed]) for network in bundle.networks]
        for way, networks in ways.items():
            weights = sum(weight.size for network in networks for weight in network.network.weights)
            room = room or weights
            figures = {"bytes": weights, "bytes of the list": LISTED_BYTES * sum(len(one.listed) for one in networks)}
            figures |= {"too high before": before, "after": above(networks, of)}
            heuristic = learned_patterns(name, puzzle, SEARCHED, networks, PROVEN)
            yield f"{name}, {way}", {**figures, **searched(puzzle, heuristic, states)}
    whole = {pattern: table_of(pattern, puzzle.name) for pattern in distinct_patterns(chosen.patterns)}
    block = -(-sum(len(table.entries) for table in whole.values()) // room)
    least = {pattern: written_out(puzzle, table, block) for pattern, table in whole.items()}
    for what, tables, each in (("tables", whole, 1), (f"minima over blocks of {block}", least, block)):
        asked = PatternHeuristic(what, chosen.pieces, sums_of_looks(chosen, tables.__getitem__), tuple(tables.values()))
        taken = sum(-(-len(table.entries) // each) for table in tables.values())
        yield what, {"bytes": taken, **searched(puzzle, asked, states)}
    for smaller in ("4-4-4-3+reflected", "5-5-5+reflected"):
        other = us.patterns(puzzle, smaller)
        taken = sum(len(table.entries) for table in other.tables)
        yield f"tables {smaller}", {"bytes": taken, **searched(puzzle, other, states)}


def above(networks: Sequence[PatternNetwork], of: dict[tuple[int, ...], PatternTable]) -> int:
    return sum(check_every_arrangement(network, of[network.pattern.followed]).violations for network in networks)


def with_side_table(network: PatternNetwork, table: PatternTable) -> PatternNetwork:
    """All that it puts too high listed, instead of thresholds."""
    entries, size = table.unpacked(), int(network.pattern.folded.size)
    too_high = []
    for first in range(0, size, DRAWN):
        numbers = np.arange(first, min(first + DRAWN, size))
        too_high.append(numbers[network.values(numbers) > entries[numbers]])
    listed = np.concatenate(too_high)
    return dataclasses.replace(network, listed=listed, listed_costs=entries[listed])


def written_out(puzzle: us.Puzzle, table: PatternTable, block: int) -> PatternTable:
    """The least of each block, or h0's shares, whichever is more, in place of every entry of it."""
    entries, pattern = table.unpacked(), table.pattern
    least = np.repeat(np.minimum.reduceat(entries, np.arange(0, len(entries), block)), block)[: len(entries)]
    shares = sums_of(shares_of(pattern, puzzle.base_heuristic), codes_at(pattern.folded, np.arange(len(entries))))
    return PatternTable(pattern, np.where(entries < 255, np.maximum(least, shares), 255).astype(np.uint8), 0.0)


def searched(puzzle: us.Puzzle, heuristic: Heuristic, states: States) -> dict[str, Any]:
    solve_by_deepening(puzzle, puzzle.table.goals[:1], heuristic, us.SearchOptions())
    began = time.process_time()
    results = solve_by_deepening(puzzle, states, heuristic, us.SearchOptions())
    taken, children = time.process_time() - began, sum(result.generated for result in results)
    return {
        "mean h": round(float(heuristic(states).mean()), 3),
        "mean cost": sum(result.cost or 0 for result in results) / len(states),
        "proven": sum(result.optimality.kind is OptimalityKind.PROVEN for result in results),
        "children each": round(children / len(states)),
        "milliseconds each": round(1000 * taken / len(states), 1),
    }


def packed_bytes(entries: int, largest: int) -> int:
    return -(-entries // 2) if largest <= MOST_HALF else entries


def tables(subject: Subject) -> Iterator[tuple[str, dict[str, Any]]]:
    puzzle, pattern = us.puzzle(subject.puzzle), subject.pattern
    table = table_of(pattern, puzzle.name)
    entries = table.unpacked()
    yield "the table", {"bytes": packed_bytes(len(entries), table.largest), "mean": round(table.mean, 4)}
    shares = drawn_shares(puzzle, pattern)
    for most in (100_000, 350_000, 1_000_000, 2_000_000, 4_000_000):
        block = -(-packed_bytes(len(entries), table.largest) // most)
        size = packed_bytes(-(-len(entries) // block), table.largest)
        yield f"minima over blocks of {block}", {"bytes": size, **minima(entries, block, shares)}
    for fewer in subject.smaller:
        small = table_of(pattern_set(puzzle, fewer).patterns[0], puzzle.name)
        own, others = small.pattern, [p for p in pattern.followed if p not in small.pattern.followed]
        figures = {"bytes": packed_bytes(len(small.unpacked()), small.largest), "mean": round(small.mean, 4)}
        if pattern.is_additive and others:  # the others count by h0
            rest = Pattern(pattern.pieces, tuple(others), is_additive=True)
            figures["mean with h0 of the other pieces"] = round(small.mean + float(drawn_shares(puzzle, rest)[1].mean()), 3)
        yield f"of {len(own.followed)} pieces", figures
    if (classes := symmetry_classes(pattern)) is not None:
        yield "one entry for each class", {"bytes": packed_bytes(round(classes), table.largest), "mean": round(table.mean, 4)}


def drawn_shares(puzzle: us.Puzzle, pattern: Pattern) -> tuple[I64, I64]:
    """Arrangements drawn uniformly, and the sums of their shares of h0."""
    numbers = np.random.default_rng(0).integers(0, int(pattern.folded.size), DRAWN)
    return numbers, sums_of(shares_of(pattern, puzzle.base_heuristic), codes_at(pattern.folded, numbers))


def minima(entries: U8, block: int, drawn: tuple[I64, I64]) -> dict[str, float]:
    """Means of the least of each block, and of that or h0's shares, whichever is more, over arrangements drawn uniformly."""
    whole = len(entries) // block * block
    least: AnyArray = entries[:whole].reshape(-1, block).min(axis=1)
    if whole < len(entries):
        least = np.append(least, entries[whole:].min())
    numbers, shares = drawn
    values = least[numbers // block].astype(np.int64)
    return {"mean": round(float(values.mean()), 3), "mean, at least h0": round(float(np.maximum(values, shares).mean()), 3)}


def symmetry_classes(pattern: Pattern) -> float | None:
    """About how many classes of arrangements are images of each other, from arrangements drawn uniformly."""
    pieces, how = pattern.pieces, pattern.folded
    own = [s for s in pieces.table.symmetries if keeps(pattern, s)]
    if len(own) < 2:
        return None
    numbers = np.random.default_rng(0).integers(0, int(how.size), 4096)
    codes = codes_at(how, numbers).astype(np.int64)
    places, turns = np.divmod(codes, how.all_turns)
    slots = np.stack([how.slots[i, places[:, i], turns[:, i]] for i in range(codes.shape[1])])
    of_piece = {int(piece): i for i, piece in enumerate(how.pieces)}
    looks = [Look(_Of(pattern), symmetry) for symmetry in own]
    sizes = []
    for b in range(len(numbers)):
        seen = set()
        for look in looks:
            image = [look.slots[i, slots[of_piece[int(piece)], b]] for i, piece in enumerate(look.asked)]
            seen.add(int(rank_of(how, np.array(image, dtype=np.int64))))
        sizes.append(len(seen))
    return float(int(how.size) * np.mean(1 / np.array(sizes)))


@dataclass(frozen=True)
class _Of:
    pattern: Pattern


def keeps(pattern: Pattern, symmetry: Any) -> bool:
    """Whether a symmetry maps a pattern onto itself, and keeps the goal."""
    table = pattern.pieces.table
    if (symmetry.image(table.goals) != table.goals).any():
        return False
    return symmetry_between(pattern, pattern) is not None and set(Look(_Of(pattern), symmetry).asked.tolist()) == set(
        pattern.followed
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("losses", "tables", "searches"))
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--subjects", default=",".join(SUBJECTS), help="of " + ", ".join(SUBJECTS))
    parser.add_argument("--losses", default=",".join(LOSSES), help="of " + ", ".join(LOSSES))
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no subject after so many")
    parser.add_argument("--networks", nargs="*", default=[], metavar="NAME=PATH")
    parser.add_argument("--boards", type=int, default=100)
    arguments = parser.parse_args()
    if arguments.part == "searches":
        for what, figures in searches(dict(one.split("=", 1) for one in arguments.networks), arguments.boards):
            print(f"{what:38}{json.dumps(figures)}", flush=True)
        return
    began = time.perf_counter()
    for name in arguments.subjects.split(","):
        if time.perf_counter() - began > arguments.seconds:
            break
        subject = SUBJECTS[name]
        which = arguments.losses.split(",")
        rows = losses(subject, arguments.device, arguments.steps, which) if arguments.part == "losses" else tables(subject)
        for what, figures in rows:
            print(f"{name:10}{what:28}{json.dumps(figures)}", flush=True)


if __name__ == "__main__":
    main()
