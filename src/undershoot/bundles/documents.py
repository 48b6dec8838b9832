"""JSON documents that hold a checksum of themselves. That finds damage, not forgery; see `trust`."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any, NoReturn

from undershoot.errors import UndershootError

MOST_BYTES = 1 << 30
"""Of any file of a bundle: far more than one holds, and less than would be a nuisance."""


def signed(document: dict[str, Any]) -> bytes:
    """The document with its checksum, for people to read."""
    plain = json.loads(json.dumps(document, allow_nan=False))
    return (json.dumps({**plain, "digest": digest(plain)}, indent=2) + "\n").encode()


def read_signed(path: Path) -> dict[str, Any]:
    """A document without its checksum, which must be right."""
    try:
        document = json.loads(read_bytes(path), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise UndershootError(f"{path} is damaged: {error}") from error
    if not isinstance(document, dict) or "digest" not in document:
        raise UndershootError(f"{path} is no file of this version of undershoot")
    if document.pop("digest") != digest(document):
        raise UndershootError(f"{path} was changed: it does not match its own checksum")
    return document


def digest(document: dict[str, Any]) -> str:
    """A checksum of what the document says, however it is laid out."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def read_bytes(path: Path) -> bytes:
    """All of a file."""
    try:
        if path.exists() and not path.is_file():
            raise UndershootError(f"{path} is no plain file, but a folder, a device or a pipe")
        if path.stat().st_size > MOST_BYTES:
            raise UndershootError(f"{path} has {path.stat().st_size:,} bytes, more than any file of a bundle")
        return path.read_bytes()
    except FileNotFoundError as error:
        raise UndershootError(f"{path} is missing; the bundle is not complete") from error
    except OSError as error:
        raise UndershootError(f"cannot read {path}: {error.strerror}") from error


def expect(document: dict[str, Any], path: Path, **kinds: Any) -> None:
    """Refuse a document whose fields are not all there and of these types: a type, or a tuple of them (None for null)."""
    for name, kind in kinds.items():
        allowed = tuple(type(None) if one is None else one for one in (kind if isinstance(kind, tuple) else (kind,)))
        value = document.get(name)
        # In Python True is a number; in a document it is not.
        if name not in document or not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            raise UndershootError(f"{path} does not hold what it should: its {name} is missing, or not of the right kind")


def expect_plain(config: dict[str, Any], path: Path) -> None:
    """Refuse a command or figures that a card would not show as what they are: one line, and numbers by plain names."""
    command, figures = config["command"], config.get("figures", {})
    if not command.isprintable() or "```" in command:
        raise UndershootError(f"{path} does not hold what it should: its command is not one line of text: {command[:40]!a}")
    for name, value in figures.items():
        is_number = value is None or (isinstance(value, int | float) and not isinstance(value, bool))
        if not re.fullmatch("[a-z_]{1,40}", name) or not is_number:
            raise UndershootError(f"{path} does not hold what it should: among its figures is {name[:40]!a}")


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")
