"""What was made so far, on disk: a file for each item, which is there completely or not at all."""

import hashlib
import io
import json
import warnings
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from undershoot.errors import UndershootError
from undershoot.experiments.items import Files, Item
from undershoot.files import written_atomically

if TYPE_CHECKING:
    import pyarrow

PROFILE, ITEMS, RECORDS = "profile.json", "items", "records.parquet"


class Store:
    """The folder of a reproduction."""

    def __init__(self, folder: Path, profile: dict[str, Any]) -> None:
        self.folder = folder
        known = folder / PROFILE
        try:
            if folder.exists() and not known.exists() and any(folder.iterdir()):
                raise UndershootError(f"{folder} holds other files and no reproduction; choose another folder with --out")
            if known.exists():
                _check_profile(known, profile)
            (folder / ITEMS).mkdir(parents=True, exist_ok=True)
            with written_atomically(known) as file:
                file.write(json.dumps(profile, indent=2, sort_keys=True).encode())
        except OSError as error:
            raise UndershootError(f"cannot write to {folder}: {error.strerror}") from error

    def path(self, item: Item) -> Path:
        """Where an item's files are."""
        return self.folder / ITEMS / f"{item.key}.zip"

    def read(self, item: Item) -> Files | None:
        """The files of an item; None if it is not done. One that is damaged is named, and set aside."""
        path = self.path(item)
        try:
            with zipfile.ZipFile(path) as archive:
                files = {name: archive.read(name) for name in archive.namelist()}
            stated = json.loads(files.pop("item.json"))["sha256"]
        except FileNotFoundError:
            return None
        except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
            self._set_aside(path, str(error))
            return None
        if stated != _checksums(files):
            self._set_aside(path, "its checksums do not match")
            return None
        return files

    def write(self, item: Item, files: Files) -> None:
        """Completely or not at all."""
        buffer = io.BytesIO()
        about = {"kind": item.kind, "spec": item.spec, "sha256": _checksums(files)}
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in {"item.json": json.dumps(about, indent=2).encode(), **files}.items():
                archive.writestr(zipfile.ZipInfo(name), data)  # without the time, so that the same files are the same bytes
        try:
            with written_atomically(self.path(item)) as file:
                file.write(buffer.getvalue())
        except OSError as error:
            raise UndershootError(
                f"cannot write {self.path(item)}: {error.strerror}; what was done so far is kept, go on with --resume"
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

        path = self.folder / "records" / f"{name}.parquet"
        if len(records):
            with written_atomically(path) as file:
                pyarrow.parquet.write_table(records, file, compression="zstd", compression_level=19)

    def _set_aside(self, path: Path, why: str) -> None:
        warnings.warn(f"{path} is damaged ({why}); it is set aside, and its work is done again", stacklevel=3)
        path.replace(path.with_suffix(".damaged"))


def table_bytes(rows: list[dict[str, Any]] | dict[str, Any]) -> bytes:
    """Records as Parquet: a list of rows, or a column for each name."""
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.Table.from_pylist(rows) if isinstance(rows, list) else pyarrow.table(rows)
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


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
