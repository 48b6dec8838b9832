"""What workers do, by name. Each task takes arguments, a call for events, and a call that says whether it should stop."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

Tell = Callable[[dict[str, Any]], None]
Task = Callable[[dict[str, Any], Tell, Callable[[], bool]], dict[str, Any]]
HOMES = {
    "known": "known",
    "make": "known",
    "solve": "solving",
    "watch": "watching",
    "example": "examples",
    "margins": "margins",
    "calibrators": "margins",
    "bundle": "bundles",
    "check": "bundles",
    "train": "training",
    "recipes": "training",
    "curve": "training",
}


def _task(name: str) -> Task:
    def do(arguments: dict[str, Any], tell: Tell, should_stop: Callable[[], bool]) -> dict[str, Any]:
        task: Task = getattr(import_module(f"undershoot.studio.tasks.{HOMES[name]}"), name)
        return task(arguments, tell, should_stop)

    return do


TASKS: dict[str, Task] = {name: _task(name) for name in HOMES}


def warm() -> None:
    """Load what the most frequent tasks need, so that they begin at once."""
    for name in ("known", "solving"):
        import_module(f"undershoot.studio.tasks.{name}")
