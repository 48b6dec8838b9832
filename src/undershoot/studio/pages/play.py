"""Play: a board, what is known there, and a search from there."""

import asyncio

from nicegui import ui

from undershoot.arrays import U8
from undershoot.errors import UndershootError
from undershoot.studio.boards import Board
from undershoot.studio.elements import EMIT_FILE, Choice, Field, box, button, escaped, markup, text
from undershoot.studio.games import Game
from undershoot.studio.pages.instances import Instance
from undershoot.studio.pages.known import KnownCard
from undershoot.studio.pages.layout import Links, Saying, beginning, page, puzzle_options
from undershoot.studio.pages.solve import SolveCard
from undershoot.studio.studio import Studio

USUAL_DEPTH = 12


async def play_page(studio: Studio, name: str, state: str, moves: int, seed: int) -> None:
    """The page of a puzzle: at this state if one is given, otherwise so many random moves from the goal."""
    try:
        puzzle = await asyncio.to_thread(studio.folders.puzzle, name)
    except UndershootError as error:
        with page("play", "Play"):
            Saying().say(str(error))
            button("To the 8-puzzle", lambda: ui.navigate.to(beginning("tiles-3x3")))
        return
    game, wrong = Game(puzzle, name), ""
    try:
        if state:
            await asyncio.to_thread(game.read, state)
        else:
            await asyncio.to_thread(game.begin_near, moves, seed)
    except UndershootError as error:
        wrong = str(error)
    with page("play", "", puzzle=name) as links:
        Playing(studio, game, links, wrong)


class Playing:
    """One visitor at one board."""

    def __init__(self, studio: Studio, game: Game, links: Links, wrong: str) -> None:
        self.studio, self.game = studio, game
        with box("us-columns"):
            with box("us-stack"), box("us-card"):
                with box("us-row"):
                    Choice("", puzzle_options(studio, game.name), game.name, self._open, pick=True).element.props[
                        "aria-label"
                    ] = "Puzzle"
                    text(game.puzzle.summary, "us-soft us-grow us-summary")
                self.board = Board(game, self.act, self.go)
                self.instance = Instance(game, "play", links, USUAL_DEPTH, self._begun)
                self.saying = self.instance.saying
                self.saying.say(wrong)
                self._other_puzzles()
            with box("us-stack"):
                self.known = KnownCard(studio, game)
                self.solve = SolveCard(studio, game, self.found, self.known)
        self.known.ask()

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
                    markup(f'<span class="us-small">It is kept in <code>{escaped(self.studio.folders.puzzles)}</code>.</span>')

    async def _open(self, name: str) -> None:
        try:
            await asyncio.to_thread(self.studio.folders.puzzle, name)
        except UndershootError as error:
            self.saying.say(str(error))
            return
        ui.navigate.to(beginning(name))

    async def add(self) -> None:
        """Keep a puzzle file that was pasted or chosen."""
        try:
            name = await asyncio.to_thread(self.studio.folders.add_puzzle, self.file.value)
        except UndershootError as error:
            self.saying.say(str(error))
            return
        ui.navigate.to(beginning(name))

    def act(self, move: str) -> None:
        """A move was chosen."""
        start = self.game.at
        try:
            self.game.act(move)
        except UndershootError as error:
            self.board.replace(self.game)
            self.saying.say(str(error))
            return
        self.board.push(self.game, start)
        self._moved()

    def go(self, to: int) -> None:
        """Another place of the history was chosen, which the browser shows already."""
        try:
            self.game.go(to)
        except UndershootError:
            self.board.replace(self.game)
        self._moved()

    def _begun(self) -> None:
        """The game has begun anew."""
        self.board.replace(self.game)
        self._moved()

    def found(self, start: U8, moves: list[str]) -> None:
        """A search found a solution of a state: it comes next, and plays."""
        is_elsewhere = bool((start != self.game.state).any())
        if is_elsewhere:
            self.game.begin(start)
        self.game.show(moves)
        self.board.replace(self.game, play=True)
        if is_elsewhere:
            self._moved()

    def _moved(self) -> None:
        """The state is another one."""
        self.instance.show()
        self.board.show_address(self.instance.address)
        self.solve.moved()
        self.known.ask()
