"""A game: one puzzle, one line of states, and where in it somebody is."""

from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import quote

import numpy as np

from undershoot.arrays import U8, States
from undershoot.errors import NotAvailable, UndershootError
from undershoot.puzzles.definitions import definition_of
from undershoot.puzzles.notation import play
from undershoot.puzzles.pairs import Pair, Pairs
from undershoot.puzzles.puzzle import Puzzle

MOST_MOVES = 2000
"""That a history keeps, and a scramble may have."""
MOST_TEXT = 4000
"""Letters that are read of what somebody pastes."""


@dataclass
class Game:
    """States from a start on, each with the move that led to it."""

    puzzle: Puzzle
    name: str
    """As it stands in addresses: of the catalogue, or of a file in the folder of puzzles."""
    states: list[U8] = field(default_factory=list)
    moves: list[str] = field(default_factory=list)
    """moves[i] leads from states[i] to states[i + 1]."""
    at: int = 0
    found_from: int | None = None
    """Moves from this one on were found by a search."""

    def __post_init__(self) -> None:
        self.states = self.states or [self.puzzle.table.goals[0]]

    @property
    def state(self) -> States:
        """uint8[1, n], where the game is."""
        return self.states[self.at][None]

    @property
    def definition(self) -> dict[str, str]:
        """The puzzle, as tasks are told of it."""
        return asdict(definition_of(self.puzzle))

    @property
    def text(self) -> str:
        """The state as people write it."""
        return self.puzzle.format(self.state)

    @property
    def is_solved(self) -> bool:
        """Whether the state is a goal."""
        return _is_goal(self.puzzle, self.states[self.at])

    def act(self, move: str) -> None:
        """Play a move; what came after is forgotten."""
        if move not in self.puzzle.table.action_names:
            raise UndershootError(f"{self.puzzle.name} has no move {move[:20]!a}")
        after = play(self.puzzle.table, self.states[self.at], [self.puzzle.table.action_names.index(move)])
        self._keep()
        self.states.append(after)
        self.moves.append(move)
        self.at += 1
        if len(self.moves) > MOST_MOVES:  # the board in the browser does the same
            del self.states[0], self.moves[0]
            self.at -= 1
            if self.found_from is not None:
                self.found_from -= 1

    def go(self, to: int) -> None:
        """To another place of the history."""
        if not 0 <= to < len(self.states):
            raise UndershootError(f"there is no place {to} in a history of {len(self.moves)} moves")
        self.at = to

    def read(self, text: str) -> None:
        """Begin anew from a state or a scramble that somebody wrote."""
        if len(text) > MOST_TEXT:
            raise UndershootError(f"{len(text):,} letters came; at most {MOST_TEXT:,} are read")
        self.begin(self.puzzle.parse(text)[0])

    def begin(self, state: U8) -> None:
        """Begin anew from a state."""
        self.states, self.moves, self.at, self.found_from = [state], [], 0, None

    def take(self, other: "Game") -> None:
        """What somebody began beside this one."""
        self.states, self.moves, self.at, self.found_from = other.states, other.moves, other.at, other.found_from

    def draw(self, seed: int) -> None:
        """Begin anew from a uniformly random state."""
        if self.puzzle.space.sample is None:
            raise NotAvailable(f"{self.puzzle.name} cannot draw uniformly random states; scramble it, or paste a state")
        self.begin(self.puzzle.sample(1, seed)[0])

    def begin_near(self, depth: int, seed: int) -> None:
        """Begin with a scramble of about so many moves, or at the goal where a scramble may lead to a dead end."""
        if self.puzzle.table.is_reversible:
            self.scramble(usual_depth(self.puzzle, depth), seed)

    def scramble(self, depth: int, seed: int) -> None:
        """Begin at the goal and walk so many random steps away, none of which undoes the one before it."""
        moves = scramble_moves(self.puzzle, depth, seed)
        self.begin(self.puzzle.table.goals[0])
        for move in moves:
            self.act(move)

    def show(self, moves: list[str]) -> None:
        """Let these moves, which a search found, come next."""
        self._keep()
        self.found_from = self.at
        state = self.states[self.at]
        for move in moves:
            state = play(self.puzzle.table, state, [self.puzzle.table.action_names.index(move)])
            self.states.append(state)
            self.moves.append(move)

    def _keep(self) -> None:
        """Only what led here."""
        del self.states[self.at + 1 :], self.moves[self.at :]
        if self.found_from is not None and self.found_from >= self.at:
            self.found_from = None

    def frame(self, place: int) -> dict[str, Any]:
        """What a board shows at this place of the history."""
        state = self.states[place]
        found = self.found_from is not None and place > self.found_from
        move = self.moves[place - 1] if place else ""
        return {
            "state": state.tolist(),
            "legal": legal_moves(self.puzzle, state),
            "solved": _is_goal(self.puzzle, state),
            "move": move,
            "undo": _inverse(self.puzzle, move),
            "found": found,
        }

    def frames(self) -> list[dict[str, Any]]:
        """Those of the whole history."""
        return [self.frame(place) for place in range(len(self.states))]


def address(page: str, name: str, text: str | None = None) -> str:
    """Of a page about a puzzle, or one of its states."""
    of = f"/watch?puzzle={quote(name, safe='')}" if page == "watch" else f"/{page}/{quote(name, safe='')}"
    return of + ("" if text is None else f"{'&' if '?' in of else '?'}state={quote(text, safe='')}")


def legal_moves(puzzle: Puzzle, state: U8) -> list[str]:
    """Names of the moves that are possible in a state."""
    legal = puzzle.table.legal[int(puzzle.table.contexts_of(state[None])[0])]
    return [name for name, is_legal in zip(puzzle.table.action_names, legal.tolist(), strict=True) if is_legal]


def usual_depth(puzzle: Puzzle, depth: int) -> int:
    """So many moves of a scramble, or as many as there are where each counts only once."""
    return min(depth, puzzle.table.actions) if puzzle.table.presses_commute else depth


def scramble_moves(puzzle: Puzzle, depth: int, seed: int) -> list[str]:
    """Random moves from the goal. Where presses commute, distinct ones."""
    table = puzzle.table
    if seed < 0:
        raise UndershootError(f"a scramble with seed {seed} was asked for; allowed are 0 and more")
    random = np.random.default_rng(seed)
    if not 0 <= depth <= MOST_MOVES:
        raise UndershootError(f"a scramble of {depth} moves was asked for; allowed are 0 to {MOST_MOVES:,}")
    if not table.is_reversible:
        raise NotAvailable(
            f"moves of {puzzle.name} cannot be undone, so a scramble may lead to a dead end; paste a state instead"
        )
    names = np.array(table.action_names)
    if table.presses_commute:
        if depth > table.actions:
            raise UndershootError(f"a scramble of {depth} distinct presses is impossible; this puzzle has {table.actions}")
        return [str(name) for name in random.permutation(names)[:depth]]
    pairs = Pairs(table, table.forward)
    state, moves, before = table.goals[0], list[str](), None
    for _ in range(depth):
        here = int(table.contexts_of(state[None])[0])
        allowed = table.forward.legal[here]
        if before is not None:  # only of steps that are played, since a file may have thousands
            allowed = allowed & (pairs.after(*before)[0] == Pair.NEW)
        if not allowed.any():
            break
        step = int(random.choice(np.flatnonzero(allowed)))
        before, action = (np.array([here]), np.array([step])), int(table.forward.action[here, step])
        moves.append(str(names[action]))
        state = play(table, state, [action])
    return moves


def costs_on_the_way(puzzle: Puzzle, state: U8, moves: list[str]) -> dict[bytes, int]:
    """The true cost of every state of a cheapest solution, by its bytes: what is left to pay from there."""
    table = puzzle.table
    actions = [table.action_names.index(move) for move in moves]
    left, found = int(table.cost[actions].sum()), dict[bytes, int]()
    for action in actions:
        found[state.tobytes()] = left
        state, left = play(table, state, [action]), left - int(table.cost[action])
    return found


def _is_goal(puzzle: Puzzle, state: U8) -> bool:
    return bool((puzzle.table.goals == state).all(axis=1).any())


def _inverse(puzzle: Puzzle, move: str) -> str:
    """The name of a move that undoes another, if its name says it all."""
    if not move or puzzle.table.cursor is not None:
        return ""
    index = int(puzzle.table.inverse[0, puzzle.table.action_names.index(move)])
    return puzzle.table.action_names[index] if index >= 0 else ""
