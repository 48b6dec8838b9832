"""Tests keep their distance tables and what they checked to themselves, and share compiled code with everything else."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from undershoot import trust
from undershoot.kernels.compiler import compiled_folder

# Child processes find the machine code although their cache folder is another one.
os.environ.setdefault("NUMBA_CACHE_DIR", compiled_folder())

# In the background of a shell Ctrl-C is ignored, which child processes would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("seeded", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("seeded")


LONG = (
    *("test_documented_commands", "test_reproduction", "test_coverage"),
    *("test_device_best_first", "test_astar", "test_false_patterns", "test_both"),
)
"""Files that take long: first, so that no process is left alone with one in the end. Browsers come when all is compiled."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path.stem, len(LONG)))


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cache")
    os.environ["UNDERSHOOT_CACHE_DIR"] = str(folder)
    yield folder
    del os.environ["UNDERSHOOT_CACHE_DIR"]


@pytest.fixture(autouse=True)
def foreseeable_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drawn for a seed depends on the user's key, and that on the machine; tests draw the same everywhere."""
    monkeypatch.setattr(trust, "private_seed", lambda seed, what: seed)


@pytest.fixture(autouse=True, scope="session")
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    trust.key()
    folder = tmp_path_factory.mktemp("state")
    shutil.copy(trust.state_folder() / "key", folder)  # the key that compiled code is signed with
    os.environ["UNDERSHOOT_STATE_DIR"] = str(folder)
    yield folder
    del os.environ["UNDERSHOOT_STATE_DIR"]
