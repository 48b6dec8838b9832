"""Who checked it: what this installation has checked, signed, so that no file can claim it for itself.

Checksums find damage, not forgery: whoever changes a file can make its checksum right. Trusted are the installed source and the
user's own state folder. There a key that only the user can read signs "this digest passed, by these checks". The cache is not
trusted, since it may be shared, nor is anything that a bundle says of itself.
"""

import hashlib
import hmac
import json
import os
import secrets
import stat
import sys
import tempfile
import warnings
from enum import StrEnum
from functools import cache
from pathlib import Path

import undershoot
from undershoot.files import written_atomically

CHECKS = "undershoot checks 2"
"""Grows when checks become stricter: what passed earlier ones then counts no more."""
KEY_BYTES = 32
PRIVATE, OTHERS_WRITE = 0o077, 0o022


class Passed(StrEnum):
    """What a digest is the digest of."""

    CERTIFICATE = "certificate"
    """Every state was compared with its true cost, in a heuristic that the certificate determines."""
    CALIBRATION = "calibration"
    """It was fitted here, to labels that were drawn here."""
    DISTANCES = "distances"
    """A table of true costs was computed here, or verified."""
    PATTERN = "pattern"
    """A table of a pattern's costs was made here and verified, or verified."""


class Untrusted(Exception):
    """There is no state folder that only the user can write to; the message says why."""


_of_this_process: set[tuple[str, str]] = set()


def state_folder() -> Path:
    """UNDERSHOOT_STATE_DIR, or the folder this platform keeps a user's state in. Untrusted if there is none."""
    if chosen := os.environ.get("UNDERSHOOT_STATE_DIR"):
        return Path(chosen)
    try:
        home = Path.home()
    except RuntimeError as error:
        raise Untrusted("this user has no home folder; set UNDERSHOOT_STATE_DIR to one of their own") from error
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "undershoot" / "state"
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "undershoot"
    return Path(os.environ.get("XDG_STATE_HOME") or home / ".local" / "state") / "undershoot"


def private_folder(name: str) -> Path:
    """A folder in it that nobody else can write to, made on first use; Untrusted if there is no place for one."""
    key()
    folder = state_folder() / name
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        _check_owner(folder, OTHERS_WRITE, "written to")
    except OSError as error:
        raise Untrusted(f"{folder} cannot be used: {error.strerror}") from error
    return folder


def key() -> bytes:
    """The user's key, made on first use; Untrusted if there is no place for one that only the user can read and write."""
    return _key(state_folder())


@cache
def _key(folder: Path) -> bytes:
    path = folder / "key"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_owner(folder, OTHERS_WRITE, "written to")
        if not path.exists():
            _make_key(path)
        _check_owner(path, PRIVATE, "read")
        found = path.read_bytes()
    except OSError as error:
        raise Untrusted(f"{path} cannot be used: {error.strerror}") from error
    if len(found) != KEY_BYTES:
        raise Untrusted(f"{path} is damaged; remove it, and what was checked is checked again")
    return found


def _make_key(path: Path) -> None:
    """Complete or not at all; of two processes that make one at once, the first wins."""
    handle, temporary = tempfile.mkstemp(prefix=".key.", dir=path.parent)  # readable for this user only
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        Path(temporary).unlink(missing_ok=True)


def _check_owner(path: Path, others: int, verb: str) -> None:
    if sys.platform == "win32":
        return  # the folder is the user's by the access lists it inherits
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        status = path.stat()
    if status.st_uid != os.geteuid():
        raise Untrusted(f"{path} belongs to another user; remove it, or set UNDERSHOOT_STATE_DIR to a folder of your own")
    if status.st_mode & others:
        raise Untrusted(f"{path} can be {verb} by others; remove it, and what was checked is checked again")


def sign(what: bytes) -> bytes:
    """32 bytes that only the holder of the key can make; Untrusted if there is no key."""
    return hmac.digest(key(), what, hashlib.sha256)


def is_signed(what: bytes, signature: bytes) -> bool:
    """Whether this user signed it; False, too, if there is no key."""
    try:
        return hmac.compare_digest(sign(what), signature)
    except Untrusted:
        return False


def private_seed(seed: int, what: str) -> int:
    """A seed that nobody else can foresee: it follows from the user's key, this seed, and what it is for.

    Whoever could foresee which states are drawn could make a network that behaves on these alone. The same user draws the same
    again; where there is no key, a process does.
    """
    try:
        secret = key()
    except Untrusted:
        secret = _secret_of_this_process()
    return int.from_bytes(hmac.digest(secret, json.dumps(["draws", seed, what]).encode(), hashlib.sha256)[:6], "little")


@cache
def _secret_of_this_process() -> bytes:
    return secrets.token_bytes(KEY_BYTES)


def record(kind: Passed, digest: str) -> None:
    """Remember that this digest passed: in the state folder, or where that cannot be, in this process, with a warning."""
    _of_this_process.add((kind, digest))
    try:
        document = {"passed": kind, "digest": digest, "checks": CHECKS, "version": undershoot.__version__}
        document["signature"] = sign(_statement(kind, digest, undershoot.__version__)).hex()
        with written_atomically(_place(kind, digest), follow_links=False) as file:
            file.write(json.dumps(document, indent=2).encode())
    except Untrusted as reason:
        _warn(f"what was checked is forgotten when this process ends: {reason}")
    except OSError as error:
        _warn(f"what was checked is forgotten when this process ends: cannot write {error.filename}: {error.strerror}")


def has_passed(kind: Passed, digest: str) -> bool:
    """Whether this installation has recorded it."""
    if (kind, digest) in _of_this_process:
        return True
    try:
        document = json.loads(_place(kind, digest).read_bytes())
        return is_signed(_statement(kind, digest, document["version"]), bytes.fromhex(document["signature"]))
    except (Untrusted, OSError, ValueError, KeyError, TypeError, RecursionError):
        return False  # no record, or none of ours


def _place(kind: Passed, digest: str) -> Path:
    return state_folder() / "passed" / f"{kind}-{digest}.json"


def _statement(kind: Passed, digest: str, version: str) -> bytes:
    """That a digest passed these checks, made by this version of the code."""
    return json.dumps([CHECKS, version, kind, digest]).encode()


@cache
def _warn(message: str) -> None:
    """Once."""
    warnings.warn(message, stacklevel=3)
