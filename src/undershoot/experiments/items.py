"""Pieces of work, each named by what it does: done once, anywhere, in any order that their needs allow."""

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

VERSION = 2
"""Grows when the same work would give other records."""


@dataclass(frozen=True, eq=False)
class Item:
    """A training, the calibrations of a network, a slice of searches, or timings."""

    kind: str
    """See `work.KINDS`."""
    spec: dict[str, Any]
    """Plain values that say all of it."""
    needs: dict[str, "Item"] = field(default_factory=dict)
    """Items whose files it reads, by the names it knows them by."""

    @cached_property
    def key(self) -> str:
        """The same for the same work, on any machine."""
        needs = {name: item.key for name, item in sorted(self.needs.items())}
        content = json.dumps([VERSION, self.kind, self.spec, needs], sort_keys=True)
        return f"{self.kind}-{hashlib.sha256(content.encode()).hexdigest()[:20]}"

    @property
    def name(self) -> str:
        """For people."""
        parts = [str(self.spec[part]) for part in ("puzzle", "heuristic", "recipe") if part in self.spec]
        population = f", {self.spec['population']['name']}" if "population" in self.spec else ""
        seed = "" if self.spec.get("seed") is None else f", seed {self.spec['seed']}"
        return f"{self.kind} {' '.join(parts)}{population}{seed}"


Files = dict[str, bytes]
"""What an item makes: names, which may hold "/", and contents."""
VOUCHED = "vouched for"
"""No file, but a name that stands among those of an item if this installation made it: then what its bundles claim is known."""
