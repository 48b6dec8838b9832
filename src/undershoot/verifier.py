"""A second pair of eyes on certificates: `python -m undershoot.verifier BUNDLE`. Exit codes: 0 confirmed, 1 refuted, 2 neither.

It stands alone (numpy, no other code of the package), is written from docs/bundles.md, and believes nothing: it enumerates all
states, with their true costs, computes h of each, and compares. States are uint8[n, N] here: a row a cell, a column a state.
"""

import argparse
import hashlib
import json
import math
import runpy
import sys
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
FORMATS = ["undershoot bundle 3", "undershoot certificate 2", "whole numbers, whole thresholds, exact on every device, 2"]
KINDS = {"U8": "u1", "I8": "i1", "U16": "<u2", "I32": "<i4", "I64": "<i8", "U64": "<u8", "F32": "<f4"}
# Arrays of files: name, type (? may be absent, + is 0 or more, * is 1 or more, ! is 0 or 1), lengths (one letter, one length).
PUZZLE = """table.source U8 C A n; table.shift U8 C A n; table.modulus U16 n; table.legal U8! C A; table.cost I32* A;
    table.goals U8 G n; table.cursor I32 1; h0.cell_cost I32 n V; h0.pair_cost I32? W W; h0.divisor I32* 1;
    parity.bits U8!? n B; parity.constant I32? 1; parity.places I32+? P J; parity.factors I32+? J; parity.numbers I32? M;
    0.keys I64? S n K; 0.image_cells U8? S n; 0.image_values U8? S L; 0.cells I32+? Q F; 0.factors I32+? Q F; 0.values U16? Q D;
    0.pairs I32!? 1; 0.size I32+? 1; 0.features I32? T X Y; 0.inputs U8!? T X Y; 0.width I32+ 1"""
LAYER = "layers.{0}.weight I8 w{0} w{1}; layers.{0}.bias I32 w{1}; layers.{0}.scale F32 w{1}"
WHOLE, CHUNK = 2**24, 4096  # float32 holds every whole number up to the first; the second, states at a time, fit into caches
MOST_KEYS, MOST_BYTES = 2**27, 2**26  # larger spaces (above about 50 million states) and larger files are not checked
TEXT = """{name}: {states:,} states{within} enumerated, h above the true cost on {violations:,} of them.
The mean of h is {mean_h:.4f}, of the true cost {mean_true:.4f}; {inconsistent_edges:,} of {edges:,} moves are inconsistent.
The certificate is {verdict}, for the puzzle whose moves the bundle holds, whatever its name: fingerprint {fingerprint}."""


def need(holds: Any, why: str) -> bool:
    """True, or the bundle cannot be checked, and this is why."""
    if not holds:
        raise ValueError(why)
    return True


def load(path: Path, schema: str = "") -> Any:
    """What a plain file of bounded size holds, arrays if there is a schema or a JSON object, and its SHA-256 or digest."""
    try:
        need(path.is_file() and path.stat().st_size <= MOST_BYTES, f"there is no such file of at most {MOST_BYTES:,} bytes")
        return arrays_of(path.read_bytes(), schema) if schema else parse(path.read_bytes())
    except (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"{path.name} is missing or malformed ({type(error).__name__}: {str(error)!a:.200})") from error


def parse(text: bytes) -> tuple[dict[str, Any], str]:
    """A JSON object, and its digest. NaN, and fields that stand twice, are refused: readers may take them differently."""
    document = json.loads(
        text.decode(), parse_constant=int, object_pairs_hook=lambda x: need(len(dict(x)) == len(x), "a field twice") and dict(x)
    )  # int("NaN") is an error
    rest = {field: value for field, value in document.items() if field != "digest"}
    return document, hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def arrays_of(data: bytes, schema: str) -> tuple[dict[str, Array], str]:
    """The arrays of a safetensors file, which must be as the schema says, and its SHA-256."""
    wanted, start = {name: how for name, *how in map(str.split, schema.split(";"))}, 8 + int.from_bytes(data[:8], "little")
    arrays, lengths = dict[str, Array](), {str(i): i for i in range(256)}
    for name, entry in parse(data[8:start])[0].items():
        (begin, end), shape, (kind, *letters) = entry["data_offsets"], entry["shape"], wanted[name]
        fits = all(type(x) is int and 0 <= x == lengths.setdefault(y, x) for x, y in zip(shape, letters, strict=True))
        need(fits and 0 <= begin <= end and entry["dtype"] == kind.rstrip("+*!?"), f"{name} has the wrong type, shape or place")
        arrays[name] = np.frombuffer(data[start + begin : start + end], KINDS[entry["dtype"]]).reshape(shape)
        inside = np.clip(arrays[name], 1 if "*" in kind else 0, 1 if "!" in kind else None)
        need(not set("+*!") & set(kind) or (inside == arrays[name]).all(), f"{name} is out of range")
    need(all(name in arrays or "?" in kind for name, (kind, *_) in wanted.items()), "an array is missing")
    return arrays, hashlib.sha256(data).hexdigest()


class Puzzle:
    """Goals, and moves (cell, source, shift, cost), bijections for states with the cursor, if there is one, in this cell."""

    def __init__(self, arrays: dict[str, Array], names: list[str]) -> None:
        order = [arrays[f"table.{name}"] for name in ("source", "shift", "modulus", "legal", "cost", "goals")]
        (source, shift, modulus, legal, cost, goals), [cursor] = order, arrays["table.cursor"].tolist()
        text = [b"undershoot move table 1\n", *(repr(x.shape).encode() + x.tobytes() for x in order)]
        text.append(repr((None if cursor == -1 else cursor, tuple(names))).encode())
        self.fingerprint, self.cursor, self.goals = hashlib.sha256(b"".join(text)).hexdigest(), cursor, goals.T
        need(goals.size and (goals < modulus).all() and (modulus <= 256).all(), "no goal, or a value or modulus out of range")
        need(len(source) == (1 if cursor == -1 else len(modulus)) and len(names) == len(cost), "contexts or names do not fit")
        need(cursor == -1 or (((goals == cursor).sum(axis=1) == 1).all() and not shift.any()), "no cursor, or values change")
        need((np.sort(source[legal == 1]) == np.arange(len(modulus))).all(), "a legal move does not permute the cells")
        need(((modulus[source[legal == 1]] == modulus) & (shift[legal == 1] < modulus)).all(), "a legal move leaves a modulus")
        self.modulus, self.places, word, product = modulus.tolist(), list[Any](), 0, 1
        for m in self.modulus:  # a state is packed into words of 64 bits: a cell has its word, and its factor there
            word, product = (word, product) if product * m <= 2**64 else (word + 1, 1)
            self.places.append((word, np.uint64(product if m > 1 else 1), np.uint64(m)))
            product *= m
        self.words, self.key = word + 1, np.dtype("u8" if word == 0 else f"V{8 * word + 8}")
        effects = np.concatenate([source, shift, np.ones_like(source)], axis=2) * legal[:, :, None]
        kept = {effects[:, a].tobytes(): a for a in np.argsort(cost, kind="stable")[::-1]}  # of the same, the first cheapest
        self.moves, self.moves_back = list[Any](), list[Any]()
        for c, a in (pair for pair in np.argwhere(legal) if pair[1] in kept.values()):
            price, by, back = int(cost[a]), shift[c, a].astype(np.uint16), np.argsort(source[c, a])
            self.moves.append((c, source[c, a], by, price))
            self.moves_back.append((back[c], back, ((modulus - by) % modulus)[back], price))

    def keys(self, states: Array) -> Array:
        """A key for each state: the words that it is packed into, as one value."""
        packed = np.zeros((states.shape[1], self.words), np.uint64)
        for cell, (word, factor, _) in zip(states, self.places, strict=True):
            packed[:, word] += cell.astype(np.uint64) * factor
        return packed.view(self.key)[:, 0]

    def states(self, keys: Array) -> Array:
        """The states with these keys."""
        packed = keys.view("u8").reshape(len(keys), -1)
        return np.array([(packed[:, word] // factor % modulus).astype(np.uint8) for word, factor, modulus in self.places])

    def apply(self, move: Any, states: Array) -> tuple[Any, Array]:
        """The columns of the states that a move is for, and the states that it makes of them."""
        cell, source, shift, _ = move
        columns = slice(None) if self.cursor == -1 else np.flatnonzero(states[cell] == self.cursor)
        made = states[:, columns][source]
        for i in np.flatnonzero(shift):
            made[i] = (made[i].astype(np.uint16) + shift[i]) % self.modulus[i]
        return columns, made

    def enumerate(self, radius: int | None) -> tuple[Array, Array]:
        """The keys, sorted, of all states that can reach a goal (at a cost up to the radius), and their true costs int64[N]."""
        settled = new = np.unique(self.keys(self.goals))
        costs, cost, waiting = np.zeros(len(new), np.int64), 0, dict[int, list[Array]]()
        while True:  # Dijkstra's algorithm from the goals over moves taken back, all states of one cost at a time
            for first in range(0, len(new), 8 * CHUNK):
                states = self.states(new[first : first + 8 * CHUNK])
                for move in self.moves_back:
                    if radius is None or cost + move[-1] <= radius:
                        keys = self.keys(self.apply(move, states)[1])
                        waiting.setdefault(cost + move[-1], []).append(keys[~find(settled, keys)[1]])
                held = len(settled) + sum(len(part) for parts in waiting.values() for part in parts)
                need(held <= MOST_KEYS, "there are more states than this verifier has room for, about 50 million")
            if not waiting:
                return settled, costs
            new = np.unique(np.concatenate(waiting.pop(cost := min(waiting))))
            new = new[~find(settled, new)[1]]
            places = np.searchsorted(settled, new)
            settled, costs = np.insert(settled, places, new), np.insert(costs, places, cost)


def find(keys: Array, wanted: Array) -> tuple[Array, Array]:
    """Where wanted keys stand among sorted keys (at least one), and whether they are there."""
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return place, keys[place] == wanted


def sum_over_cells(table: Array, states: Array) -> Array:
    """Sum over i of table[i, s[i]], mod 2^64, for each state s: int64[N]."""
    return np.asarray(np.sum([row[cells] for row, cells in zip(table.astype(np.int64), states, strict=True)], axis=0))


class Heuristic:
    """h of states that are neither goals nor listed."""

    def __init__(self, arrays: dict[str, Array], model: dict[str, Array], widths: list[int], calibration: Any) -> None:
        self.arrays, self.rounding, self.layers = arrays, calibration["rounding"], list[Any]()
        need(self.rounding in ("none", "integer", "parity"), "there is no such rounding")
        on = arrays.get("0.inputs", np.zeros(0)) == 1
        features = arrays.get("0.features", np.where(on, np.cumsum(on).reshape(on.shape) - 1, -1))
        used = features[features >= 0]
        need(features.min(initial=0) >= -1 and len(np.unique(used)) == len(used), "an input is switched on twice")
        need(arrays["0.width"][0] == widths[0] > used.max(initial=-1), "the inputs are not those of the first layer")
        self.features = np.where(features < 0, widths[0], features)  # the first weights have a row of zeros there
        for i, shape in enumerate(pairwise(widths)):
            weight, bias, scale = (model[f"layers.{i}.{part}"] for part in ("weight", "bias", "scale"))
            largest = (255 if i else 1) * np.abs(weight.astype(np.int64)).sum(axis=0) + np.abs(bias.astype(np.int64))
            need(weight.shape == shape and (weight >= -127).all() and (largest < WHOLE).all(), f"layer {i} need not be exact")
            need(((scale >= 2.0**-64) & (scale <= 2.0**64)).all(), f"a scale of layer {i} is not in 2^-64..2^64")
            self.layers.append((np.pad(weight, ((0, i == 0), (0, 0))).astype(np.float64), bias, scale))
        levels, groups, self.scale = calibration["level_margins"], calibration["group_margins"], scale.astype(np.float64)
        need(calibration["arithmetic_margin"] == 0 and (not levels or (len(scale) > 1 and not groups)), "margins do not fit")
        rows = [levels] if levels else [[margin] * len(scale) for margin in groups or [calibration["margin"]]]
        infinite, up = {"inf": 2**200, "-inf": -(2**200)}, math.ceil if len(scale) == 1 else math.floor
        need(all(m in infinite or type(m) in (int, float) for row in rows for m in row), "a margin is not a number")
        exact = [[up(Fraction(infinite.get(m, m)) / Fraction(s)) for m, s in zip(row, self.scale, strict=True)] for row in rows]
        self.thresholds = np.clip(np.array(exact, object), -WHOLE, WHOLE).astype(np.int64)

    def tokens(self, states: Array) -> list[Array]:
        """What a network that reads pieces reads of the states, token by token: int64[N] each."""
        x = self.arrays
        if len(x["0.keys"]):
            s = np.argmin([sum_over_cells(table, states) for table in x["0.keys"]], axis=0)  # the first with the least
            states = x["0.image_values"][s, states[x["0.image_cells"][s].T, np.arange(len(s))]]
        codes = [factors.astype(np.int64) @ states[cells] for cells, factors in zip(x["0.cells"], x["0.factors"], strict=True)]
        pieces = [values[code].astype(np.int64) for values, code in zip(x["0.values"], codes, strict=True)]
        return [a * x["0.size"][0] + b for a, b in combinations(pieces, 2)] if x["0.pairs"][0] == 1 else pieces

    def outputs(self, states: Array) -> Array:
        """The whole sums of the last layer: int64[N, K]."""
        sums = np.repeat(self.layers[0][1][None].astype(np.float64), states.shape[1], axis=0)
        for features, values in zip(self.features, self.tokens(states) if "0.cells" in self.arrays else states, strict=True):
            for inputs in features[values].T:
                sums += self.layers[0][0][inputs]
        for (_, _, scale), (weight, bias, _) in pairwise(self.layers):
            active = np.clip(np.rint(sums.astype(np.float32) * scale), 0, 255)
            sums = active.astype(np.float64) @ weight + bias  # whole numbers below 2^24: float64 adds them exactly
        return sums.astype(np.int64)

    def __call__(self, states: Array) -> Array:
        """The values: float64[N]. Products of whole numbers below 2^26 and scales, which are float32, are exact in float64."""
        x, sums, one = self.arrays, self.outputs(states), len(self.scale) == 1
        says = np.floor(sums[:, 0] * self.scale) if one else np.cumprod(sums > 0, axis=1).sum(axis=1)
        above = sums - self.thresholds[np.clip(says, 0, len(self.thresholds) - 1).astype(np.int64)]
        lowered = above[:, 0] * self.scale if one else np.cumprod(above > 0, axis=1).sum(axis=1)
        pairs = x.get("h0.pair_cost", np.zeros((256, 256), np.int32))[states[:-1], states[1:]]
        h0 = -(-(sum_over_cells(x["h0.cell_cost"], states) + pairs.sum(axis=0)) // x["h0.divisor"][0])
        h: Array = np.maximum(h0, lowered).astype(np.float64)
        if self.rounding == "none":
            return h.astype(np.float32).astype(np.float64)
        h = np.ceil(h)
        if self.rounding == "parity":
            pieces = [x["parity.numbers"][x["parity.factors"].astype(np.int64) @ states[cells]] for cells in x["parity.places"]]
            wrong = np.sum([a > b for a, b in combinations(pieces, 2)], axis=0)
            h += (h - sum_over_cells(x["parity.bits"], states) - wrong - x["parity.constant"][0]) % 2
        return h


def measure(puzzle: Puzzle, heuristic: Heuristic, listed: Any, radius: int | None) -> tuple[dict[str, Any], list[str]]:
    """The figures of a certificate as they are, and examples of states with h above the true cost."""
    keys, costs = puzzle.enumerate(radius)
    h = np.concatenate([heuristic(puzzle.states(keys[first : first + CHUNK])) for first in range(0, len(keys), CHUNK)])
    place, there = find(keys, listed["keys"].view(puzzle.key)[:, 0])
    need(len(np.unique(place[there])) == there.sum() and costs[place[there]].all(), "a goal is listed, or a state twice")
    h[place[there]] = listed["costs"][there]
    h[costs == 0] = 0
    above, edges = np.flatnonzero(h > costs), np.zeros(2, np.int64)  # moves, and how many of them are inconsistent
    for first in range(0, len(keys), 8 * CHUNK):
        states = puzzle.states(keys[first : first + 8 * CHUNK])
        for move in puzzle.moves:
            columns, made = puzzle.apply(move, states)
            place, there = find(keys, puzzle.keys(made))
            edges += there.sum(), (there & (h[first : first + 8 * CHUNK][columns] > move[-1] + h[place])).sum()
    found: dict[str, Any] = {"states": len(keys), "checked": len(keys), "violations": len(above), "marginal": 0}
    found |= {"supremum": float((h - costs)[costs > 0].max()) if costs.any() else 0.0, "mean_h": float(h.mean())}
    found |= {"mean_true": float(costs.mean()), "edges": int(edges[0]), "inconsistent_edges": int(edges[1])}
    return found, [f"h is {h[i]:g}, the cost {costs[i]}, of {puzzle.states(keys[i : i + 1])[:, 0].tolist()}" for i in above[:3]]


def verify(folder: Path) -> tuple[list[str], str]:
    """What is not as the certificate says, and what was found, in sentences."""
    paths = [folder / name for name in ("config.json", "calibration.json", "certificate.json")]
    (config, config_sum), (calibration, calibration_sum), (certificate, certificate_sum) = map(load, paths)
    if config.get("format") == "undershoot pattern bundle 1":
        return tuple(runpy.run_path(str(Path(__file__).with_name("pattern_verifier.py")))["verify"](folder))
    formats = [config.get("format"), certificate.get("format"), certificate.get("arithmetic")]
    need(formats == FORMATS, f"this verifier checks networks of whole numbers ({'; '.join(FORMATS)}), nothing else")
    [network], radius = config["networks"], certificate["radius"]
    single = config["combined"] == "one" and network["pattern"] is None and network["arithmetic"] == FORMATS[2]
    need(single and type(radius) in (int, type(None)), "it is not one such network, or the radius is not a whole number")
    arrays, puzzle_sum = load(folder / "puzzle.safetensors", PUZZLE)
    layers = ";".join(LAYER.format(i, i + 1) for i in range(len(network["widths"]) - 1))
    model, weights = load(folder / "model.safetensors", layers)
    puzzle, heuristic = Puzzle(arrays, config["actions"]), Heuristic(arrays, model, network["widths"], calibration)
    listed, exceptions = {"keys": np.zeros((0, puzzle.words), np.uint64), "costs": np.zeros(0)}, None
    if calibration["exceptions"] is not None:
        listed, exceptions = load(folder / "exceptions.safetensors", f"keys U64 E {puzzle.words}; costs U16 E")
    found, wrong = measure(puzzle, heuristic, listed, radius)
    found |= {"fingerprint": puzzle.fingerprint, "weights": weights, "calibration": calibration_sum, "digest": certificate_sum}
    unseen = {"edges": None, "inconsistent_edges": None} if certificate["edges"] is None else {}
    for file, said, truth in (
        ("certificate.json", certificate, found | unseen),
        ("certificate.json", certificate, {"puzzle": config["puzzle"], "inputs": network["inputs"]}),
        ("config.json", config, {"fingerprint": puzzle.fingerprint, "digest": config_sum}),
        ("config.json", config["sha256"], {"model.safetensors": weights, "puzzle.safetensors": puzzle_sum}),
        ("calibration.json", calibration, {"weights": weights, "exceptions": exceptions, "digest": calibration_sum}),
    ):
        for name, true in truth.items():
            stated = said.get(name)
            if type(true) is not type(stated) or not (math.isclose(true, stated) if type(true) is float else true == stated):
                wrong.append(f"{file} says {name}: {stated!a:.99}, but it is {true!a}")
    name, within = ascii(config["puzzle"])[1:-1][:99], "" if radius is None else f" within {radius} of a goal"
    return wrong, TEXT.format(name=name, within=within, verdict="refuted" if wrong else "confirmed", **found)


def main(arguments: list[str] | None = None) -> int:
    """Check a bundle, print what was found, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m undershoot.verifier", description="Check the certificate of a bundle.")
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--quiet", action="store_true", help="print only what is wrong")
    asked = parser.parse_args(arguments)
    try:
        wrong, text = verify(in_run if (in_run := asked.bundle / "bundle").is_dir() else asked.bundle)
        if wrong or not asked.quiet:
            print(text, *wrong, sep="\n", flush=True)
    except (Exception, KeyboardInterrupt) as error:  # whatever it is: nothing was confirmed
        reason = error if type(error) is ValueError else f"it does not hold what it must, or was interrupted ({error!r})"
        sys.stdout = sys.stderr  # what cannot be written is not tried again
        print(f"{asked.bundle} cannot be checked: {reason}.", file=sys.stderr)
        return 130 if isinstance(error, KeyboardInterrupt) else 2
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
