"""Bundles and heuristics by name or path."""

import difflib
from pathlib import Path

from undershoot.bundles.bundle import CONFIG, SHIPPED
from undershoot.errors import UndershootError, what_came
from undershoot.files import check_contents, put_back
from undershoot.puzzles import catalogue

LEARNED = {"learned": "", "label-free": "-label-free", "small": "-small", "paper": "-paper"}
"""Heuristics that come with the package, and how the names of their bundles end: the best, one that was trained without a true
cost, one of few bytes, and one by the paper's recipe."""


def bundle_folder(path: str | Path) -> Path:
    """The folder of a bundle; for a run folder, the bundle in it; by a name alone, one that comes with the package."""
    if not isinstance(path, (str, Path)) or not str(path):
        raise UndershootError(f"the path of a bundle is needed, or a name such as tiles-3x3; {what_came(path)} came")
    folder = Path(catalogue.ALIASES.get(str(path), path))
    missing = folder if not folder.exists() else folder / "bundle"
    if missing == folder or not missing.is_symlink():  # only what was given may be a link
        put_back(missing)
    if any((place / CONFIG).exists() for place in (folder, folder / "bundle")):
        check_contents(folder)
    if (folder / "bundle" / CONFIG).exists():
        return folder / "bundle"
    if not (folder / CONFIG).exists() and len(folder.parts) == 1 and (SHIPPED / folder / CONFIG).exists():
        return SHIPPED / folder
    if not folder.is_dir():
        close = difflib.get_close_matches(str(path), [known.name for known in SHIPPED.iterdir()], n=1)
        hint = f'; did you mean "{close[0]}"?' if close else f"; train one: undershoot train PUZZLE --out {folder}"
        raise UndershootError(f"there is no bundle at {folder}{hint}")
    if (folder / "recipe.toml").exists() and not (folder / CONFIG).exists():
        raise UndershootError(f"the run in {folder} has not ended, so it has no bundle yet; go on with --resume")
    if not (folder / CONFIG).exists():
        raise UndershootError(
            f"there is no bundle in the folder {folder.resolve()}: {CONFIG} is missing; give the folder of a bundle or of a run"
        )
    return folder
