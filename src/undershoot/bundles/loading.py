"""Heuristics by name, in bundles or by formula."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

from undershoot.bundles.bundle import CONFIG, SHIPPED, Bundle
from undershoot.bundles.documents import read_signed
from undershoot.bundles.names import LEARNED, bundle_folder
from undershoot.bundles.pattern_reading import is_pattern_bundle, read_pattern_bundle
from undershoot.bundles.reading import read_bundle
from undershoot.errors import SpaceTooLarge, UndershootError, what_came
from undershoot.files import put_back
from undershoot.guarantees import Guarantee, Heuristic, Standing
from undershoot.heuristics.calibrated import CalibratedHeuristic
from undershoot.heuristics.catalogue import HEURISTICS
from undershoot.heuristics.catalogue import heuristic as named
from undershoot.heuristics.combined import Largest
from undershoot.heuristics.learned_patterns import LearnedPatterns
from undershoot.heuristics.neural import LearnedHeuristic
from undershoot.heuristics.patterns import PatternHeuristic, pattern_heuristic
from undershoot.oracles.size import bytes_text
from undershoot.pattern_tables.cache import cached_bytes, cached_seconds
from undershoot.pattern_tables.looks import distinct_patterns
from undershoot.pattern_tables.room import memory_of
from undershoot.pattern_tables.sets import PatternSet, default_name, is_part_of_set, pattern_set
from undershoot.pattern_tables.tables import AUTO, CUDA_FROM
from undershoot.puzzles import catalogue
from undershoot.puzzles.pieces import pieces_of
from undershoot.puzzles.problem import check_puzzle
from undershoot.puzzles.puzzle import Puzzle

PATTERNS = "patterns"
Progress = Callable[[str, str, int, int], None]


def load(path: str | Path, device: str = "cpu") -> LearnedHeuristic | CalibratedHeuristic | LearnedPatterns:
    """The heuristic in a bundle, in the bundle of a run folder, or in one that comes with the package, such as "cube-2x2".

    device: cpu, or cuda, where the network is then evaluated.

    A network of whole numbers has the same values on both, and what is known of it holds on both. What is known of a float
    network holds for the arithmetic of the CPU only.

    Examples:
        >>> learned = us.load("tiles-3x3")
        >>> print(learned(learned.puzzle.parse("8 6 7 / 2 5 4 / 3 0 1")))
        [31.]
        >>> print(learned.guarantee)
        never overestimates
    """
    if device not in ("cpu", "cuda"):
        raise UndershootError(f'the device is "{device}"; allowed are cpu and cuda')
    if is_pattern_bundle(path):
        if device == "cuda":
            raise UndershootError(f"{path} holds networks on patterns, which searches ask on the CPU; use cpu")
        return read_pattern_bundle(path).heuristic
    bundle = read_bundle(path)
    return bundle.heuristic if device == "cpu" else _on_cuda(bundle)


def _on_cuda(bundle: Bundle) -> LearnedHeuristic | CalibratedHeuristic:
    calibration = bundle.calibration
    if calibration is not None and calibration.group_margins and not bundle.raw.is_exact:
        # Across the edge of a group h may jump up, however small the step.
        raise UndershootError(
            f"{bundle.name} has a margin for each group, which needs exact values; use cpu, or --whole-numbers"
        )
    from undershoot.heuristics.neural_cuda import on_cuda

    network, heuristic = on_cuda(bundle.raw), bundle.heuristic
    if not isinstance(heuristic, CalibratedHeuristic):
        return network
    guarantee = heuristic.guarantee
    if not network.is_exact and guarantee.standing is not Standing.NONE:
        claim = f"on the CPU it {guarantee}, but sums of floats come out differently on cuda"
        guarantee = Guarantee(Standing.NONE, claim=claim)
    return CalibratedHeuristic(network, dataclasses.replace(heuristic.calibration, guarantee=guarantee))


def heuristic(
    puzzle: Puzzle,
    name: str | Path,
    progress: Progress | None = None,
    max_memory: int | None = None,
    device: str = "cpu",
) -> Heuristic:
    """The heuristic of this name for a puzzle, or in the bundle at this path; joined by "+", the largest of several.

    progress, max_memory: see `patterns`, whose tables may have to be made. device: cuda for one set of patterns in the memory
    of a CUDA device, for searches there; large tables that are not in the cache are made there, and never come to the host.

    Examples:
        >>> tiles = us.puzzle("tiles-3x3")
        >>> state = tiles.parse("8 6 7 / 2 5 4 / 3 0 1")
        >>> for name in ("zero", "base", "linear-conflict", "learned", "base+small"):
        ...     print(name, us.heuristic(tiles, name)(state))
        zero [0.]
        base [21.]
        linear-conflict [23.]
        learned [31.]
        base+small [27.]
    """
    check_puzzle(puzzle, "us.heuristic")
    if not isinstance(name, (str, Path)) or not str(name):
        raise UndershootError(f'a heuristic has a name, such as "base", or the path of a bundle; {what_came(name)} came')
    name = str(name)
    is_path = _can_be_a_path(name)
    if is_path and not _is_known(name):
        put_back(Path(name))
    parts = _parts(name)
    if len(parts) > 1 and (all(map(_is_known, parts)) or not (is_path and Path(name).exists())):
        # What is wrong with a name is said before tables are made.
        made = {part: heuristic(puzzle, part, progress, max_memory) for part in parts if not _is_of_tables(part)}
        sets = {part: _set_named(puzzle, part, max_memory) for part in parts if _is_of_tables(part)}
        made |= {part: pattern_heuristic(puzzle, chosen, progress=progress) for part, chosen in sets.items()}
        return Largest(tuple(made[part] for part in parts))
    if _is_of_tables(name):
        return _patterns(puzzle, _set_named(puzzle, name, max_memory), progress, device)
    if name in LEARNED:
        folder = SHIPPED / f"{puzzle.name}{LEARNED[name]}"
        if not folder.exists() or puzzle.definition:
            raise UndershootError(
                f"no heuristic `{name}` for {puzzle.name} comes with the package; train one: undershoot train PUZZLE"
            )
        if is_pattern_bundle(folder):
            return dataclasses.replace(read_pattern_bundle(folder), name=name).heuristic
        return dataclasses.replace(read_bundle(folder), name=name).heuristic
    is_there = is_path and (Path(name).exists() or (SHIPPED / catalogue.ALIASES.get(name, name)).exists())
    if name in HEURISTICS or not is_there:
        return named(puzzle, name, (*LEARNED, PATTERNS, f"{PATTERNS}:SET"))
    loaded = load(name)
    if loaded.fingerprint != puzzle.table.fingerprint:
        other = read_signed(bundle_folder(name) / CONFIG)["puzzle"]
        mine = "another puzzle of that name" if other == puzzle.name else puzzle.name
        raise UndershootError(f"the bundle {name} is for {other}, not for {mine}")
    return loaded


def _can_be_a_path(name: str) -> bool:
    """Whether the system can be asked for it; some names are too long."""
    try:
        Path(name).exists()
    except OSError:
        return False
    return True


def are_cached(puzzle: Puzzle, chosen: PatternSet | None = None) -> bool:
    """Whether the tables of a set, or of the default one, lie in the cache."""
    patterns = distinct_patterns((chosen or pattern_set(puzzle)).patterns)
    return all(cached_seconds(pattern, puzzle.name) is not None for pattern in patterns)


def _parts(name: str) -> list[str]:
    """The names that "+" joins; that of a set of patterns may have it, too."""
    parts: list[str] = []
    for part in name.split("+"):
        if parts and parts[-1].startswith(f"{PATTERNS}:") and is_part_of_set(part):
            parts[-1] += f"+{part}"
        else:
            parts.append(part)
    return parts


def patterns(
    puzzle: Puzzle,
    name: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    device: str = AUTO,
    again: bool = False,
    max_memory: int | None = None,
) -> PatternHeuristic:
    """The heuristic of a set of patterns, by its name (`6-6-3`, `corners+6+6`), its pieces, or the puzzle's default set.

    Tables that are not in the cache are made and verified; `again` does so with all. device: on the cores (cpu), on cuda, or
    (auto) on cuda if they are large and it has memory for them. threads: as many as there are cores by default. progress:
    called with the pieces of a pattern, what is being done, how much of it is, and how much there is. max_memory: bytes that
    the tables of a default set may take, with the one that is being made.

    Examples:
        >>> tiles = us.puzzle("tiles-2x4")
        >>> halves = us.patterns(tiles, "1 2 5 6 / 3 4 7")
        >>> [table.largest for table in halves.tables]
        [20, 14]
        >>> print(halves.guarantee)
        never overestimates
    """
    check_puzzle(puzzle, "us.patterns")
    for what, given, least in (("threads", threads, 1), ("max_memory", max_memory, 0)):
        is_whole = isinstance(given, int) and not isinstance(given, bool)
        if given is not None and not (is_whole and given >= least):
            raise UndershootError(f"{what} is {given!a:.40}; allowed are whole numbers from {least} on, and None")
    if progress is not None and not callable(progress):
        raise UndershootError(f"progress is a function that is called; {what_came(progress)} came")
    if name is not None and max_memory is not None:
        raise UndershootError("a set of patterns is named, and max_memory chooses one; give one of the two")
    chosen = pattern_set(puzzle, name, max_memory)
    return pattern_heuristic(puzzle, chosen, threads=threads, progress=progress, device=device, again=again)


def _is_known(name: str) -> bool:
    """Whether a heuristic is called so, whatever is in the working folder."""
    return name in HEURISTICS or name in LEARNED or _is_of_tables(name)


def _is_of_tables(name: str) -> bool:
    return name == PATTERNS or name.startswith(f"{PATTERNS}:")


def _set_named(puzzle: Puzzle, name: str, max_memory: int | None) -> PatternSet:
    """The set of patterns that a heuristic's name names, or the default one. max_memory: bytes that its tables may take."""
    named_set = name.removeprefix(PATTERNS)[1:] or None
    if name == f"{PATTERNS}:":
        raise UndershootError(f"{PATTERNS}: names no set; give one, such as {PATTERNS}:6-6-3, or {PATTERNS} alone")
    chosen = pattern_set(puzzle, named_set, max_memory)
    if named_set is not None and max_memory is not None:
        most = memory_of(chosen.patterns, lambda pattern: cached_bytes(pattern, puzzle.name))
        if most > max_memory:
            raise SpaceTooLarge(
                f"the tables of {chosen.name} take {bytes_text(most)}, making and asking them included, and "
                f"{bytes_text(max_memory)} may be used (--max-memory); allow more, or name no set, and one that fits is taken"
            )
    return chosen


def _patterns(puzzle: Puzzle, chosen: PatternSet, progress: Progress | None, device: str) -> Heuristic:
    """Tables on the host, or on a device: copied there, if they are small after they were made and cached, or made there."""
    if device == "cpu":
        return pattern_heuristic(puzzle, chosen, progress=progress)
    from undershoot.heuristics.device_patterns import made_on_device
    from undershoot.search.device.choosing import torch_device
    from undershoot.search.device.solving import patterns_there

    if are_cached(puzzle, chosen) or all(pattern.ranking.size < CUDA_FROM for pattern in chosen.patterns):
        return patterns_there(pattern_heuristic(puzzle, chosen, progress=progress), device)
    return made_on_device(puzzle, chosen, torch_device(device), progress)


def _is_ready(puzzle: Puzzle, max_memory: int | None) -> bool:
    """Whether the tables of the default set are made, and are what would be taken within this memory."""
    chosen = pattern_set(puzzle, max_memory=max_memory)
    return chosen.name == default_name(puzzle) and are_cached(puzzle, chosen)


def default_heuristic(puzzle: Puzzle, device: str = "cpu", max_memory: int | None = None) -> str:
    """The name of the best that there is: learned, if such a bundle comes with the package; otherwise patterns, if the puzzle
    has pieces, but for pancakes, where the gaps between neighbours are better.

    Networks on patterns are for those who have not made the tables of the default set: on uniformly random boards these are
    quicker, though they take more bytes (docs/patterns.md, "Nodes and seconds against bytes"). Smaller sets, which are all that
    fits into less memory (max_memory, bytes), are slower than networks. And networks search on the cores, while a device makes
    tables in a moment.
    """
    if not puzzle.definition and (SHIPPED / puzzle.name).exists():
        if not is_pattern_bundle(SHIPPED / puzzle.name):
            return "learned"
        return PATTERNS if device != "cpu" or _is_ready(puzzle, max_memory) else "learned"
    if puzzle.base_heuristic.pair_cost is not None:
        return "base"
    try:
        pieces_of(puzzle)
    except UndershootError:
        return "base"
    return PATTERNS
