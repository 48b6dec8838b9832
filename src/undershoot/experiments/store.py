"""What was made so far, on disk: a file for each item, which is there completely or not at all."""

import hashlib
import io
import json
import math
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from undershoot import trust
from undershoot.errors import UndershootError, cannot
from undershoot.experiments.items import VOUCHED, Files, Item
from undershoot.files import check_contents, check_writable, is_endless, read_json, written_atomically

if TYPE_CHECKING:
    import pyarrow

PROFILE, RUNS, ITEMS, RECORDS, SECONDS = "profile.json", "runs.json", "items", "records.parquet", "seconds.txt"


NETWORKS = ("train", "space")
"""Kinds of items that hold networks."""


class Store:
    """The folder of a reproduction. Nothing is written before there is something to keep."""

    def __init__(self, folder: Path, profile: dict[str, Any]) -> None:
        self.folder, self.profile = folder, profile
        self._run: dict[str, Any] | None = None
        self._made: set[bytes] = set()
        self.foreign: dict[str, str] = {}
        """Of items that were read and that this installation did not make, as far as it knows: key and kind."""
        self.is_new = not (folder / PROFILE).exists()
        try:
            if self.is_new and folder.exists() and any(folder.iterdir()):
                raise UndershootError(f"{folder} holds other files and no reproduction; choose another folder with --out")
        except OSError as error:
            raise cannot(f"use {folder}", error, "choose another folder with --out") from error
        if not self.is_new:
            _check_profile(folder / PROFILE, profile)
        if folder.is_dir():
            check_contents(folder)
        if (folder / ITEMS).exists() and not (folder / ITEMS).is_dir():
            raise UndershootError(f"{folder / ITEMS} is a file, but what is done goes into a folder of that name; move it away")

    def begin(self, run: dict[str, Any]) -> None:
        """What is kept from now on was made by this: the command, the machine, the versions."""
        self.runs()  # refused now, not when there is something to keep
        try:
            check_writable(self.folder / PROFILE)
        except OSError as error:
            raise cannot(f"write to {self.folder}", error, "mend that, or choose another folder with --out") from error
        self._run = run

    def runs(self) -> list[dict[str, Any]]:
        """All that added to it."""
        path = self.folder / RUNS
        if not path.exists():
            return []
        found = read_json(path, "the list of runs")
        if not isinstance(found, list) or not all(isinstance(run, dict) for run in found):
            raise UndershootError(f"the list of runs {path} is damaged: it is no list of tables; move it away")
        return found

    def path(self, item: Item) -> Path:
        """Where an item's files are."""
        return self.folder / ITEMS / f"{item.key}.zip"

    def read(self, item: Item) -> Files | None:
        """The files of an item; None if it is not done. One that is damaged is named, and set aside."""
        path = self.path(item)
        try:
            if is_endless(path):
                raise UndershootError(f"cannot read {path}: it is a pipe or a device; remove it")
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise cannot(f"read {path}", error, "mend that, or choose another folder with --out") from error
        try:
            files, statement, signature = _unpacked(data, item)
        except Exception as error:  # a damaged archive fails in more ways than can be listed
            self._set_aside(path, str(error))
            return None
        if statement in self._made or trust.is_signed(statement, signature):
            self.foreign.pop(item.key, None)
            return {**files, VOUCHED: b""}
        self.foreign[item.key] = item.kind
        if item.kind in NETWORKS:  # others rest on what it claims
            again = "it is not used, and a run with --resume does its work again"
            warnings.warn(f"{path} was not made by this installation; {again}", stacklevel=2)
            return None
        return files

    def write(self, item: Item, files: Files) -> None:
        """Completely or not at all."""
        buffer = io.BytesIO()
        about = {"key": item.key, "kind": item.kind, "spec": item.spec, "sha256": _checksums(files)}
        self._made.add(_statement(about))
        with suppress(trust.Untrusted):  # then only this process knows who made it
            about["signature"] = trust.sign(_statement(about)).hex()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in {"item.json": json.dumps(about, indent=2).encode(), **files}.items():
                # Without the time, so that the same files are the same bytes.
                archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
        if self.is_new:
            self._write(self.folder / PROFILE, json.dumps(self.profile, indent=2).encode())
            self.is_new = False
        if self._run is not None:
            with suppress(trust.Untrusted):  # then it is told as what others say
                self._run = {**self._run, "signature": trust.sign(_statement_of_run(self._run)).hex()}
            self._write(self.folder / RUNS, json.dumps([*self.runs(), self._run], indent=2).encode())
            self._run = None
        self._write(self.path(item), buffer.getvalue())

    def seconds(self, items: list[Item]) -> list[float]:
        """How long each item took that is done."""
        found = []
        for item in items:
            if self.path(item).exists():
                with suppress(zipfile.BadZipFile, KeyError, ValueError), zipfile.ZipFile(self.path(item)) as archive:
                    seconds = float(archive.read(SECONDS))
                    found.append(seconds if 0 <= seconds < math.inf else 0.0)
        return found

    def _write(self, path: Path, data: bytes) -> None:
        try:
            with written_atomically(path, follow_links=False) as file:
                file.write(data)
        except OSError as error:
            raise cannot(f"write {path}", error, "what was done so far is kept, go on with --resume") from error

    def records(self, items: list[Item]) -> "pyarrow.Table":
        """The records of these items, in their order; those that have none, or are not done, are left out."""
        import pyarrow
        import pyarrow.parquet

        tables = []
        for item in items:
            files = self.read(item)
            if files is not None and RECORDS in files:
                try:
                    tables.append(pyarrow.parquet.read_table(io.BytesIO(files[RECORDS])))
                except pyarrow.ArrowException as error:
                    self._set_aside(self.path(item), str(error))
        return pyarrow.concat_tables(tables, promote_options="default") if tables else pyarrow.table({})

    def write_table(self, name: str, records: "pyarrow.Table") -> None:
        """All records of a kind as one file, for whoever wants to look further."""
        import pyarrow.parquet

        if len(records):
            buffer = io.BytesIO()
            pyarrow.parquet.write_table(records, buffer, compression="zstd", compression_level=19)
            self._write(self.folder / "records" / f"{name}.parquet", buffer.getvalue())

    def _set_aside(self, path: Path, why: str) -> None:
        warnings.warn(f"{path} is damaged ({why}); it is set aside, and a run with --resume does its work again", stacklevel=3)
        path.replace(path.with_suffix(".damaged"))


def table_bytes(rows: list[dict[str, Any]] | dict[str, Any]) -> bytes:
    """Records as Parquet: a list of rows, or a column for each name."""
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.Table.from_pylist(rows) if isinstance(rows, list) else pyarrow.table(rows)
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def _unpacked(data: bytes, item: Item) -> tuple[Files, bytes, bytes]:
    """The files of an item, the statement that this installation made it, and the signature under that."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if name != VOUCHED}
    about = json.loads(files.pop("item.json"))
    signature = bytes.fromhex(about.pop("signature", ""))
    if about["sha256"] != _checksums(files):
        raise ValueError("its checksums do not match")
    if about["key"] != item.key or about["spec"] != json.loads(json.dumps(item.spec)):
        raise ValueError("it is of other work")
    return files, _statement(about), signature


def _statement(about: dict[str, Any]) -> bytes:
    """That this installation made an item, to be signed."""
    return json.dumps(["undershoot made this", about], sort_keys=True).encode()


def _statement_of_run(run: dict[str, Any]) -> bytes:
    """That this installation wrote down a run, to be signed."""
    return json.dumps(["undershoot ran this", run], sort_keys=True).encode()


def is_own(run: dict[str, Any]) -> bool:
    """Whether this installation wrote down a run."""
    try:
        signature = bytes.fromhex(run.get("signature", ""))
    except (TypeError, ValueError):
        return False
    return trust.is_signed(_statement_of_run({key: value for key, value in run.items() if key != "signature"}), signature)


def _checksums(files: Files) -> dict[str, str]:
    return {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}


def _check_profile(path: Path, profile: dict[str, Any]) -> None:
    theirs = read_json(path, "the profile")
    if not isinstance(theirs, dict) or "name" not in theirs:
        raise UndershootError(f"the profile {path} is damaged: it names no profile; choose another folder with --out")
    if theirs != json.loads(json.dumps(profile)):
        differing = ", ".join(key for key in profile if theirs.get(key) != json.loads(json.dumps(profile[key])))
        name = theirs["name"]
        raise UndershootError(
            f"{path.parent} holds a reproduction of the profile {name} (with another {differing}); choose another --out"
        )
