"""The instance that a page is about: its state as text, and the ways to another one."""

import asyncio
import json
import random
from collections.abc import Callable

from nicegui import ui

from undershoot.errors import UndershootError
from undershoot.studio.elements import Field, box, button, text
from undershoot.studio.games import MOST_MOVES, Game, address, usual_depth
from undershoot.studio.pages.layout import Links, Saying

MOST_SEED = 2**62
COPY = "navigator.clipboard ? navigator.clipboard.writeText(%s).then(() => true, () => false) : false"
ANSWER_SECONDS = 3.0
"""A browser may ask its visitor whether a page may copy."""


class Instance:
    """Fields and buttons that begin a game anew: a scramble, any state, or what somebody pastes."""

    def __init__(self, game: Game, page: str, links: Links, depth: int, begun: Callable[[], None]) -> None:
        """page: whose address holds the state; begun: called when the game has begun anew."""
        self.game, self.page, self.links, self.begun = game, page, links, begun
        with box("us-state"):
            text("State", tag="span")
            self.state = text(game.text, tag="code").props('tabindex=0 data-say=state aria-label="The state as text"')
        with box("us-row").style("align-items: flex-end"):
            usual = str(usual_depth(game.puzzle, depth))
            self.depth = Field("Moves", usual, "number", "is-number", min=0, max=MOST_MOVES, data_do="depth")
            self.seed = Field("Seed", str(random.randrange(1000)), "number", "is-number", min=0, data_do="seed")
            button("Scramble", self.scramble, "is-main" if page == "play" else "", "scramble")
            button("Any state", self.draw, name="draw")
            button("Reset", self.reset, name="reset")
        with box("us-row").style("align-items: flex-end"):
            self.text = Field("State or scramble", "", classes="is-wide", data_do="text", spellcheck="false")
            self.text.element.on("keydown.enter", self.read)
            button("Set", self.read, name="set")
            button("Copy address", self.copy, name="copy")
        text(f"Takes {game.puzzle.notation.help}.", "us-small us-notation")
        self.saying = Saying()
        self.show()

    @property
    def address(self) -> str:
        """Of the page, in this state."""
        return address(self.page, self.game.name, self.game.text)

    def show(self) -> None:
        """The state is another one."""
        self.saying.say("")
        self.state.say(self.game.text)
        self.links.lead_to(self.game.name, self.game.text)

    async def _begin(self, how: Callable[[Game], None]) -> None:
        beside = Game(self.game.puzzle, self.game.name)
        try:
            await asyncio.to_thread(how, beside)  # a long scramble of many moves takes seconds
        except UndershootError as error:
            self.saying.say(str(error))
            return
        if not self.state.client.is_deleted:
            self.game.take(beside)
            self.begun()

    def _seed(self) -> int:
        return self.seed.whole("the seed", 0, MOST_SEED)

    async def scramble(self) -> None:
        """From the goal by random moves."""
        await self._begin(lambda game: game.scramble(self.depth.whole("the number of moves", 0, MOST_MOVES), self._seed()))

    async def draw(self) -> None:
        """Any state, each equally likely."""
        await self._begin(lambda game: game.draw(self._seed()))

    async def reset(self) -> None:
        """To the goal."""
        await self._begin(lambda game: game.begin(game.puzzle.table.goals[0]))

    async def read(self) -> None:
        """What was pasted."""
        await self._begin(lambda game: game.read(self.text.value))

    async def copy(self) -> None:
        """The address, if the browser lets a page do that; otherwise it is shown."""
        client = ui.context.client
        whole = str(client.request.base_url).rstrip("/") + self.address
        try:
            is_copied = await ui.run_javascript(COPY % json.dumps(whole), timeout=ANSWER_SECONDS)
        except TimeoutError:
            is_copied = False
        if client.is_deleted:
            return
        if is_copied is True:
            self.saying.say("The address of this page holds the puzzle and the state; it is copied.", "is-open")
        else:
            self.saying.say(f"The browser did not let the address be copied; it is {whole}", "is-open")
