"""Puzzle files: a move table in TOML, with moves as permutations in cycle notation. See docs/add-a-puzzle.md."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from undershoot.arrays import U8, AnyArray, Bools
from undershoot.errors import MoveTableError, PuzzleFileError, UndershootError
from undershoot.files import is_endless
from undershoot.puzzles.base_heuristics import zero_heuristic
from undershoot.puzzles.encoding import one_hot
from undershoot.puzzles.moves import MAX_CELLS, MoveTable
from undershoot.puzzles.notation import Words
from undershoot.puzzles.pictures import Picture
from undershoot.puzzles.puzzle import Puzzle
from undershoot.puzzles.spaces import OrbitSpace, UnknownSpace

KEYS = {
    "name",
    "summary",
    "goal",
    "goals",
    "symbols",
    "cursor",
    "powers",
    "moves",
    "symmetries",
    "picture",
    "pieces",
    "patterns",
}
MOVE_KEYS = {"cycles", "at", "add", "cost"}
PICTURE_KEYS = {"rows", "colours"}
SETS_OF_OURS = ("all", "corners", "edges")
MAX_POWER = 12
MAX_SYMBOLS = 256
LONGEST_SUMMARY = 200
MAX_GROUP_CELLS = 64  # above, finding the group may take minutes


def read(path: Path) -> str:
    """What stands in a puzzle file."""
    try:
        if is_endless(path):
            raise PuzzleFileError(f"cannot read the puzzle file {path}: it is a pipe or a device; give the path of a file")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise PuzzleFileError(f"cannot read the puzzle file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise PuzzleFileError(f"{path} is not a TOML file: {error}") from error
    except ValueError as error:
        raise PuzzleFileError(f"cannot read the puzzle file {path!s}: {error}") from error


def parse(text: str, source: str) -> Puzzle:
    """The puzzle that the text of a file describes; PuzzleFileError names the source and what is wrong with it."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        hint = "; is a name given twice?" if "overwrite" in str(error) else ""
        raise PuzzleFileError(f"{source} is not a TOML file: {error}{hint}") from error
    except (RecursionError, ValueError) as error:
        raise PuzzleFileError(f"cannot read the puzzle file {source}: {error}") from error
    try:
        return replace(_build(data), definition=text)
    except UndershootError as error:
        raise PuzzleFileError(f"{source}: {error}") from error
    except (RecursionError, ValueError) as error:  # of tables in tables, and of numbers with thousands of digits
        raise PuzzleFileError(f"{source}: a value is too deep or too long: {error}") from error


def _build(data: dict[str, Any]) -> Puzzle:
    _only(data, KEYS, "a puzzle file")
    name = _text(data, "name")
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise MoveTableError(f'name is "{name}"; it may hold small letters, digits and hyphens')
    texts = [_text(data, "goal")] if "goals" not in data else _texts(data, "goals")
    if "goal" in data and "goals" in data:
        raise MoveTableError("both goal and goals are given; one of them says it")
    words = [text.split() for text in texts]
    cells = len(words[0])
    if not 1 <= cells <= MAX_CELLS or any(len(row) != cells for row in words):
        raise MoveTableError(
            f"goals hold {sorted({len(row) for row in words})} symbols; all need one number from 1 to {MAX_CELLS}"
        )
    symbols = _texts(data, "symbols") if "symbols" in data else list(dict.fromkeys(s for row in words for s in row))
    if len(symbols) > MAX_SYMBOLS:
        raise MoveTableError(f"there are {len(symbols)} symbols; at most {MAX_SYMBOLS} are allowed")
    for symbol in symbols:
        _check_word("symbol", symbol)
        if symbols.count(symbol) > 1:
            raise MoveTableError(f'two symbols are called "{symbol}"')
    value_of = {symbol: value for value, symbol in enumerate(symbols)}
    for symbol in (s for row in words for s in row):
        if symbol not in value_of:
            raise MoveTableError(f'the goal holds "{symbol}", which is not among the symbols {" ".join(symbols)}')
    cursor = _cursor(data, value_of, words)
    table = MoveTable(
        **_moves(data, cells, len(symbols), cursor is not None),
        modulus=np.full(cells, len(symbols), dtype=np.uint16),
        goals=np.array([[value_of[s] for s in row] for row in words], dtype=np.uint8),
        cursor=cursor,
    )
    if listed := data.get("symmetries"):
        if not isinstance(listed, list):
            raise MoveTableError("symmetries must be a list of tables, [[symmetries]]")
        table = table.with_symmetries(_symmetry(entry, cells, value_of) for entry in listed)
    return Puzzle(
        name=name,
        summary=_summary(data, name),
        table=table,
        space=OrbitSpace(table) if table.is_permutation_puzzle and cells <= MAX_GROUP_CELLS else UnknownSpace(table),
        notation=Words(
            table, symbols, cells, f'{cells} symbols such as "{texts[0]}", or moves such as "{table.action_names[0]}"'
        ),
        picture=_picture(data, cells, symbols),
        encoding=one_hot(table.modulus),
        base_heuristic=zero_heuristic(cells, len(symbols)),
        pieces=_pieces(data, table),
        pattern_sets=_pattern_sets(data),
    )


def _only(data: dict[str, Any], allowed: set[str], where: str) -> None:
    for key in data:
        if key not in allowed:
            raise MoveTableError(f'"{key}" is not known in {where}; known are {", ".join(sorted(allowed))}')


def _text(data: dict[str, Any], key: str, default: str | None = None) -> str:
    value = data.get(key, default)
    if not isinstance(value, str) or not value.strip() or not value.replace("\n", " ").isprintable():
        raise MoveTableError(f"{key} is missing, or is not a text in quotes of letters that can be printed")
    return value


def _summary(data: dict[str, Any], name: str) -> str:
    """In one line, or a file could say what looks like ours."""
    if "summary" not in data:
        return name
    found = _text(data, "summary").strip()
    if "\n" in found or len(found) > LONGEST_SUMMARY:
        raise MoveTableError(f"summary is one line of at most {LONGEST_SUMMARY} characters; shorten it")
    return found


def _texts(data: dict[str, Any], key: str) -> list[str]:
    value = data[key]
    if not isinstance(value, list) or not value or not all(isinstance(v, str) and v.strip() for v in value):
        raise MoveTableError(f"{key} must be a list of texts")
    return value


def _cursor(data: dict[str, Any], value_of: dict[str, int], words: list[list[str]]) -> int | None:
    if "cursor" not in data:
        return None
    symbol = _text(data, "cursor")
    for row in words:
        if row.count(symbol) != 1:
            raise MoveTableError(
                f'the cursor "{symbol}" occurs {row.count(symbol)} times in the goal; it must occur exactly once'
            )
    return value_of[symbol]


def _moves(data: dict[str, Any], cells: int, values: int, has_cursor: bool) -> dict[str, Any]:
    """source, shift, legal, cost and action_names."""
    written = data.get("moves")
    if not isinstance(written, dict) or not written:
        raise MoveTableError("there are no moves; a [moves] table needs at least one")
    powers = data.get("powers", False)
    if not isinstance(powers, bool):
        raise MoveTableError("powers must be true or false")
    contexts = cells if has_cursor else 1
    names: list[str] = []
    rows: list[tuple[U8, U8, Bools, int]] = []
    for name, entry in written.items():
        move = {"cycles": entry} if isinstance(entry, str) else entry
        if not isinstance(move, dict):
            raise MoveTableError(f'move {name} must be cycles such as "(1 2 3)" or a table')
        _check_word("move", name)
        _only(move, MOVE_KEYS, f"move {name}")
        source, shift, legal = _move(name, move, cells, values, contexts)
        cost = move.get("cost", 1)
        if not isinstance(cost, int) or isinstance(cost, bool) or not 1 <= cost < 2**16:
            raise MoveTableError(f"move {name} costs {cost!r}; costs are whole numbers from 1 to 65535")
        names.append(name)
        rows.append((source, shift, legal, cost))
        if powers:
            if has_cursor or shift.any():
                raise MoveTableError("powers = true needs moves that only permute cells, without a cursor")
            for suffix, power in _powers(name, source[0]):
                names.append(suffix)
                rows.append((power[None], shift, legal, cost))
    return {
        "source": np.stack([row[0] for row in rows], axis=1),
        "shift": np.stack([row[1] for row in rows], axis=1),
        "legal": np.stack([row[2] for row in rows], axis=1),
        "cost": np.array([row[3] for row in rows], dtype=np.int32),
        "action_names": tuple(names),
    }


def _check_word(kind: str, word: str) -> None:
    if not word.isprintable() or not re.fullmatch(r"[^\s/|,;:\[\]#]+", word):
        raise MoveTableError(f"a {kind} is called {word[:40]!a}; it must be one word without / | , ; : # and brackets")


def _powers(name: str, source: U8) -> list[tuple[str, U8]]:
    """The further powers of a move: X2, X3 ... and X' for the last, its inverse."""
    result: list[tuple[str, U8]] = []
    power = source[source]
    while (power != np.arange(len(source))).any():
        result.append((f"{name}{len(result) + 2}", power))
        if len(result) > MAX_POWER:
            raise MoveTableError(f"move {name} comes back only after more than {MAX_POWER} repetitions; write its powers out")
        power = power[source]
    return [*result[:-1], (f"{name}'", result[-1][1])] if result else []


def _move(name: str, move: dict[str, Any], cells: int, values: int, contexts: int) -> tuple[U8, U8, Bools]:
    source = np.tile(np.arange(cells, dtype=np.uint8), (contexts, 1))
    shift = np.zeros((contexts, cells), dtype=np.uint8)
    legal = np.ones(contexts, dtype=np.bool_)
    if "at" in move:
        if contexts == 1 or "cycles" in move or not isinstance(move["at"], dict):
            raise MoveTableError(
                f"move {name}: `at` gives cycles by the cell of the cursor, and needs a cursor and no `cycles`"
            )
        legal[:] = False
        for cell, cycles in move["at"].items():
            c = _cell(f"move {name}", str(cell), cells)
            if legal[c]:
                raise MoveTableError(f"move {name} gives cell {c + 1} twice in `at`")
            source[c], legal[c] = _permutation(f"move {name}", cycles, cells), True
    elif "cycles" in move:
        source[:] = _permutation(f"move {name}", move["cycles"], cells)
    if "add" in move:
        if not isinstance(move["add"], dict):
            raise MoveTableError(f"move {name}: `add` must be a table such as {{ 1 = 1, 2 = 1 }}")
        for cell, amount in move["add"].items():
            if not isinstance(amount, int) or isinstance(amount, bool) or not 1 <= amount < values:
                raise MoveTableError(f"move {name} adds {amount!r}; with {values} symbols allowed are 1 to {values - 1}")
            c = _cell(f"move {name}", str(cell), cells)
            if shift[:, c].any():
                raise MoveTableError(f"move {name} gives cell {c + 1} twice in `add`")
            shift[:, c] = amount
    return source, shift, legal


def _cell(where: str, written: str, cells: int) -> int:
    if not re.fullmatch(r"0*\d{1,3}", written) or not 1 <= int(written) <= cells:
        raise MoveTableError(f'{where} names the cell "{written[:20]}"; cells are numbered 1 to {cells}')
    return int(written) - 1


def _permutation(where: str, text: Any, cells: int) -> U8:
    """uint8[n] source from cycles: in "(1 2 3)" what is on cell 1 goes to cell 2, from 2 to 3 and from 3 to 1."""
    if not isinstance(text, str) or not re.fullmatch(r"\s*(\([\d\s,]+\)\s*)+", text):
        raise MoveTableError(f'{where} is {text!r}; expected are cycles such as "(1 2 3)(4 5)"')
    source = np.arange(cells, dtype=np.uint8)
    seen: set[int] = set()
    for inside in re.findall(r"\(([^)]*)\)", text):
        cycle = [_cell(where, word, cells) for word in inside.replace(",", " ").split()]
        for here in cycle:
            if here in seen:
                raise MoveTableError(f"{where} is not a permutation: cell {here + 1} occurs twice in its cycles")
            seen.add(here)
        for here, there in zip(cycle, cycle[1:] + cycle[:1], strict=True):
            source[there] = here
    return source


def _symmetry(entry: Any, cells: int, value_of: dict[str, int]) -> tuple[AnyArray, AnyArray]:
    """Cells as cycles, values as a table of old and new symbols; what is not named stays."""
    if not isinstance(entry, dict):
        raise MoveTableError("symmetries must be tables with `cells` and `values`")
    _only(entry, {"cells", "values"}, "a symmetry")
    permutation = _permutation("a symmetry", entry["cells"], cells) if "cells" in entry else np.arange(cells)
    values = np.arange(len(value_of))
    renamed = entry.get("values", {})
    if not isinstance(renamed, dict):
        raise MoveTableError("the `values` of a symmetry must be a table of old and new symbols")
    for old, new in renamed.items():
        if old not in value_of or not isinstance(new, str) or new not in value_of:
            raise MoveTableError(f'a symmetry maps "{old}" to "{new}"; both must be symbols')
        values[value_of[old]] = value_of[new]
    return permutation, values


def _pieces(data: dict[str, Any], table: MoveTable) -> tuple[tuple[int, ...], ...]:
    """Cells that move as one; those that are not listed are pieces by themselves."""
    if "pieces" not in data:
        return ()
    listed: list[tuple[int, ...]] = []
    for text in _texts(data, "pieces"):
        words = text.split()
        if not all(word.isdecimal() and 1 <= int(word) <= table.cells for word in words):
            raise MoveTableError(f'a piece is "{text[:60]}"; it lists cells, numbers from 1 to {table.cells}')
        listed.append(tuple(int(word) - 1 for word in words))
    named = [cell for piece in listed for cell in piece]
    for cell in named:
        if named.count(cell) > 1:
            raise MoveTableError(f"cell {cell + 1} belongs to two pieces; it belongs to one")
    pieces = (*listed, *((cell,) for cell in range(table.cells) if cell not in named))
    whole = {frozenset(piece) for piece in pieces}
    for c, a in np.argwhere(table.legal):
        for piece in pieces:
            if frozenset(table.source[c, a, list(piece)].tolist()) not in whole:
                cells = " ".join(str(cell + 1) for cell in piece)
                raise MoveTableError(
                    f"move {table.action_names[a]} tears pieces apart: what comes to cells {cells} is no piece"
                )
    return pieces


def _pattern_sets(data: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Names, and what they stand for."""
    listed = data.get("patterns", {})
    if not isinstance(listed, dict) or not all(isinstance(text, str) and text.strip() for text in listed.values()):
        raise MoveTableError('[patterns] must name sets of pieces, such as halves = "1 2 3 / 4 5 6"')
    for name in listed:
        if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
            raise MoveTableError(f'a set of patterns is called "{name[:40]}"; names are small letters, digits and hyphens')
        if name in SETS_OF_OURS:
            raise MoveTableError(f'a set of patterns is called "{name}", which every puzzle has already; choose another name')
    return tuple(listed.items())


def _picture(data: dict[str, Any], cells: int, symbols: list[str]) -> Picture:
    """Cells where the rows of numbers put them, otherwise in one line; colours as named, otherwise by turns."""
    picture = data.get("picture", {})
    if not isinstance(picture, dict):
        raise MoveTableError("picture must be a table")
    _only(picture, PICTURE_KEYS, "the picture")
    places: dict[int, tuple[int, int]] = {i: (0, i) for i in range(cells)}
    if "rows" in picture:
        places = {}
        for r, row in enumerate(_texts(picture, "rows")):
            for c, word in enumerate(row.split()):
                if word != ".":
                    if _cell("the picture", word, cells) in places:
                        raise MoveTableError(f"the picture shows cell {word} twice")
                    places[_cell("the picture", word, cells)] = (r, c)
        if len(places) != cells:
            missing = next(i for i in range(cells) if i not in places)
            raise MoveTableError(
                f'the picture has no place for cell {missing + 1}; every cell needs one, "." is an empty place'
            )
    colours = picture.get("colours", {})
    if not isinstance(colours, dict) or not all(isinstance(colour, str) for colour in colours.values()):
        raise MoveTableError("the colours of the picture must be a table of symbols and colours")
    for symbol in colours:
        if symbol not in symbols:
            raise MoveTableError(f'the picture colours "{symbol}", which is not a symbol')
    width = max(map(len, symbols))
    turns = ("red3", "green3", "yellow1", "blue1", "dark_orange", "grey93", "purple", "cyan")
    styles = [_style(colours.get(symbol, turns[value % len(turns)])) for value, symbol in enumerate(symbols)]
    return Picture(tuple(places[i] for i in range(cells)), tuple(f" {s:<{width}} " for s in symbols), tuple(styles), gap=0)


def _style(colour: str) -> str:
    """A field of this colour, one word and no more: styles may also hold links, which terminals are sent as they stand."""
    from rich.color import Color, ColorParseError

    try:
        if re.fullmatch(r"[a-z0-9_]{1,40}|#[0-9A-Fa-f]{6}", colour):
            Color.parse(colour)
            return f"bold black on {colour}"
    except ColorParseError:
        pass
    raise MoveTableError(f'the picture has the unknown colour {colour[:40]!a}; write a name such as "red3", or "#ff8700"')
