"""What was made so far, on disk: a file for each item, which is there completely or not at all."""

import hashlib
import io
import json
import warnings
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from undershoot import trust
from undershoot.errors import UndershootError
from undershoot.experiments.items import VOUCHED, Files, Item
from undershoot.files import written_atomically

if TYPE_CHECKING:
    import pyarrow

PROFILE, RUNS, ITEMS, RECORDS, SECONDS = "profile.json", "runs.json", "items", "records.parquet", "seconds.txt"
DAMAGE = (zipfile.BadZipFile, zlib.error, KeyError, ValueError, TypeError, EOFError, RuntimeError, OSError)
"""What reading a damaged archive may end in."""


class Store:
    """The folder of a reproduction. Nothing is written before there is something to keep."""

    def __init__(self, folder: Path, profile: dict[str, Any]) -> None:
        self.folder, self.profile = folder, profile
        self._run: dict[str, Any] | None = None
        self._made: set[bytes] = set()
        self.is_new = not (folder / PROFILE).exists()
        try:
            if self.is_new and folder.exists() and any(folder.iterdir()):
                raise UndershootError(f"{folder} holds other files and no reproduction; choose another folder with --out")
        except OSError as error:
            raise UndershootError(f"cannot use {folder}: {error.strerror}; choose another folder with --out") from error
        if not self.is_new:
            _check_profile(folder / PROFILE, profile)

    def begin(self, run: dict[str, Any]) -> None:
        """What is kept from now on was made by this: the command, the machine, the versions."""
        self._run = run

    def runs(self) -> list[dict[str, Any]]:
        """All that added to it."""
        try:
            found: list[dict[str, Any]] = json.loads((self.folder / RUNS).read_text())
        except FileNotFoundError:
            return []
        except ValueError as error:
            raise UndershootError(f"{self.folder / RUNS} is damaged; move it away") from error
        return found

    def path(self, item: Item) -> Path:
        """Where an item's files are."""
        return self.folder / ITEMS / f"{item.key}.zip"

    def read(self, item: Item) -> Files | None:
        """The files of an item; None if it is not done. One that is damaged is named, and set aside."""
        path = self.path(item)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UndershootError(
                f"cannot read {path}: {error.strerror}; mend that, or choose another folder with --out"
            ) from error
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                files = {name: archive.read(name) for name in archive.namelist()}
            about = json.loads(files.pop("item.json"))
            if about["sha256"] != _checksums(files):
                raise ValueError("its checksums do not match")
            if about["key"] != item.key or about["spec"] != json.loads(json.dumps(item.spec)):
                raise ValueError("it is of other work")
            signature = bytes.fromhex(about.pop("signature", ""))
        except DAMAGE as error:
            self._set_aside(path, str(error))
            return None
        files.pop(VOUCHED, None)
        statement = _statement(about)
        return {**files, VOUCHED: b""} if statement in self._made or trust.is_signed(statement, signature) else files

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
            self._write(self.folder / RUNS, json.dumps([*self.runs(), self._run], indent=2).encode())
            self._run = None
        self._write(self.path(item), buffer.getvalue())

    def seconds(self, items: list[Item]) -> list[float]:
        """How long each item took that is done."""
        found = []
        for item in items:
            if self.path(item).exists():
                with zipfile.ZipFile(self.path(item)) as archive:
                    found.append(float(archive.read(SECONDS)))
        return found

    def _write(self, path: Path, data: bytes) -> None:
        try:
            with written_atomically(path) as file:
                file.write(data)
        except OSError as error:
            raise UndershootError(
                f"cannot write {path}: {error.strerror}; what was done so far is kept, go on with --resume"
            ) from error

    def records(self, items: list[Item]) -> "pyarrow.Table":
        """The records of these items, in their order; those that have none, or are not done, are left out."""
        import pyarrow
        import pyarrow.parquet

        tables = []
        for item in items:
            files = self.read(item)
            if files is not None and RECORDS in files:
                tables.append(pyarrow.parquet.read_table(io.BytesIO(files[RECORDS])))
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


def _statement(about: dict[str, Any]) -> bytes:
    """That this installation made an item, to be signed."""
    return json.dumps(["undershoot made this", about], sort_keys=True).encode()


def _checksums(files: Files) -> dict[str, str]:
    return {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}


def _check_profile(path: Path, profile: dict[str, Any]) -> None:
    try:
        theirs = json.loads(path.read_text())
        name = theirs["name"]
    except (ValueError, KeyError, TypeError) as error:
        raise UndershootError(f"{path} is damaged; choose another folder with --out") from error
    if theirs != json.loads(json.dumps(profile)):
        differing = ", ".join(key for key in profile if theirs.get(key) != json.loads(json.dumps(profile[key])))
        raise UndershootError(
            f"{path.parent} holds a reproduction of the profile {name} (with another {differing}); choose another --out"
        )
