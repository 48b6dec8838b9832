"""Play: a board, what is known there, and a search from there."""

import asyncio
import random
from urllib.parse import quote

from nicegui import ui

from undershoot.errors import UndershootError
from undershoot.studio.boards import Board
from undershoot.studio.elements import EMIT_FILE, Choice, Field, box, button, markup, text
from undershoot.studio.games import MOST_MOVES, Game, usual_depth
from undershoot.studio.pages.known import KnownCard
from undershoot.studio.pages.layout import Saying, page, puzzle_options
from undershoot.studio.pages.solve import SolveCard
from undershoot.studio.studio import Studio


async def play_page(studio: Studio, name: str, state: str) -> None:
    """The page of a puzzle, at this state if one is given."""
    try:
        puzzle = await asyncio.to_thread(studio.folders.puzzle, name)
    except UndershootError as error:
        with page("play", "Play"):
            Saying().say(str(error))
            button("To the 2x2 cube", lambda: ui.navigate.to("/play/cube-2x2"))
        return
    game, wrong = Game(puzzle, name), ""
    if state:
        try:
            game.read(state)
        except UndershootError as error:
            wrong = str(error)
    with page("play", "", puzzle=quote(name, safe="")):
        Playing(studio, game, wrong)


class Playing:
    """One visitor at one board."""

    def __init__(self, studio: Studio, game: Game, wrong: str) -> None:
        self.studio, self.game = studio, game
        with box("us-columns"):
            with box("us-stack"), box("us-card"):
                with box("us-row"):
                    Choice("", puzzle_options(studio, game.name), game.name, self._open, pick=True).element.props[
                        "aria-label"
                    ] = "Puzzle"
                    text(game.puzzle.summary, "us-soft us-grow us-summary")
                self.board = Board(game, self.act, self.go)
                self._controls()
                self.saying = Saying()
                self.saying.say(wrong)
                self._other_puzzles()
            with box("us-stack"):
                self.known = KnownCard(studio, game)
                self.solve = SolveCard(studio, game, self.found, self.known)
        self.known.ask()

    def _controls(self) -> None:
        with box("us-row"):
            usual = str(usual_depth(self.game.puzzle, 12))
            self.depth = Field("Moves", usual, "number", "is-number", min=0, max=MOST_MOVES, data_do="depth")
            self.seed = Field("Seed", str(random.randrange(1000)), "number", "is-number", min=0, data_do="seed")
            with box("us-row").style("align-self: flex-end"):
                button("Scramble", self.scramble, "is-main", "scramble")
                button("Any state", self.draw, name="draw")
                button("Reset", self.reset, name="reset")
        with box("us-row").style("align-items: flex-end"):
            self.text = Field(
                "State or scramble", "", classes="is-wide", placeholder=self.game.text, data_do="text", spellcheck="false"
            )
            self.text.element.on("keydown.enter", self.read)
            button("Set", self.read, name="set")
            button("Copy address", self._copy, name="copy")
        text(f"Takes {self.game.puzzle.notation.help}.", "us-small")

    def _other_puzzles(self) -> None:
        with ui.element("details").classes("us-more"):
            text("Another size, or a puzzle of your own", tag="summary")
            with box("us-row").style("align-items: flex-end"):
                self.other = Field(
                    "Any name of the catalogue",
                    "",
                    classes="is-wide",
                    placeholder="lights-out-4x6, tiles-3x4, topspin-12-4",
                    data_do="other",
                )
                self.other.element.on("keydown.enter", lambda: self._open(self.other.value))
                button("Open", lambda: self._open(self.other.value), name="open")
            with box("us-stack").style("margin-top: .8rem; gap: .6rem"):
                self.file = Field(
                    "A puzzle file (TOML)",
                    "",
                    "textarea",
                    placeholder='name = "my-puzzle"\ngoal = "A B C"\n\n[moves]\nX = "(1 2 3)"',
                    data_do="file",
                )
                with box("us-row"):
                    chosen = ui.element("input").props('type=file accept=".toml" aria-label="A puzzle file" data-do=choose')
                    chosen.on("change", lambda event: self.file.set(str(event.args)), js_handler=EMIT_FILE)
                    button("Keep and open it", self.add, name="add")
                    markup(f'<span class="us-small">It is kept in <code>{self.studio.folders.puzzles}</code>.</span>')

    async def _open(self, name: str) -> None:
        try:
            await asyncio.to_thread(self.studio.folders.puzzle, name)
        except UndershootError as error:
            self.saying.say(str(error))
            return
        ui.navigate.to(f"/play/{quote(name, safe='')}")

    async def add(self) -> None:
        """Keep a puzzle file that was pasted or chosen."""
        try:
            name = await asyncio.to_thread(self.studio.folders.add_puzzle, self.file.value)
        except UndershootError as error:
            self.saying.say(str(error))
            return
        ui.navigate.to(f"/play/{quote(name, safe='')}")

    def act(self, move: str) -> None:
        """A move was chosen."""
        try:
            self.game.act(move)
        except UndershootError as error:
            self.board.replace(self.game)
            self.saying.say(str(error))
            return
        self.board.push(self.game)
        self._moved()

    def go(self, to: int) -> None:
        """Another place of the history was chosen, which the browser shows already."""
        try:
            self.game.go(to)
        except UndershootError:
            self.board.replace(self.game)
        self._moved()

    def _begin(self, how: "list[object]") -> None:
        """Begin anew in one of the ways of a game."""
        do, *arguments = how
        assert callable(do)
        try:
            do(*arguments)
        except UndershootError as error:
            self.saying.say(str(error))
            return
        self.board.replace(self.game)
        self._moved()

    def scramble(self) -> None:
        """From the goal by random moves."""
        try:
            depth = self.depth.whole("the number of moves", 0, MOST_MOVES)
            seed = self.seed.whole("the seed", 0, 2**62)
        except UndershootError as error:
            self.saying.say(str(error))
            return
        self._begin([self.game.scramble, depth, seed])

    def draw(self) -> None:
        """Any state, each equally likely."""
        try:
            seed = self.seed.whole("the seed", 0, 2**62)
        except UndershootError as error:
            self.saying.say(str(error))
            return
        self._begin([self.game.draw, seed])

    def reset(self) -> None:
        """To the goal."""
        self._begin([self.game.begin, self.game.puzzle.table.goals[0]])

    def read(self) -> None:
        """What was pasted."""
        self._begin([self.game.read, self.text.value])

    def found(self, moves: list[str]) -> None:
        """A search found a solution of the state at hand: it comes next, and plays."""
        self.game.show(moves)
        self.board.replace(self.game, play=True)

    def _moved(self) -> None:
        """The state is another one."""
        self.saying.say("")
        self.board.show_address(self.game.address)
        self.solve.moved()
        self.known.ask()

    def _copy(self) -> None:
        ui.run_javascript("navigator.clipboard?.writeText(location.href)")
        self.saying.say("The address of this page holds the puzzle and the state; it is copied.", "is-open")
