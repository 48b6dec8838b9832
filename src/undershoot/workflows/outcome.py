"""What a training leaves: its bundle in the folder of the run, beside what was there."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from undershoot.bundles.bundle import CALIBRATION, FLOAT, Bundle
from undershoot.bundles.reading import read_bundle
from undershoot.errors import UndershootError
from undershoot.files import check_contents, contents_digest, copy_folder, free_place, put_back
from undershoot.training.runs import Run


@dataclass(frozen=True)
class Outcome:
    """What became of a bundle."""

    is_there: bool
    """Whether it was there already, as it was or calibrated since, and is left as it is."""
    kept: Path | None
    """Where the one is kept that it replaced."""
    digest: str
    """Of the folder as it is now."""


def write_outcome(run: Run, bundle: Bundle, warn: Callable[[str], None]) -> Outcome:
    """Write the bundle of a run that has ended, unless it is there.

    What the run itself wrote after fewer steps is not kept, unless something was done to it since.
    """
    check_contents(run.folder)  # links may have come while it trained
    put_back(run.bundle)
    before = contents_digest(run.bundle)
    is_there, kept = _what_is_there(run, bundle, warn)
    if not is_there:
        bundle.save(run.bundle, before)
    return Outcome(is_there, kept, contents_digest(run.bundle))


def _what_is_there(run: Run, bundle: Bundle, warn: Callable[[str], None]) -> tuple[bool, Path | None]:
    if not run.bundle.exists() or not any(run.bundle.iterdir()):
        return False, None
    steps = bundle.figures["steps"]
    try:
        there = read_bundle(run.bundle, with_calibration=False)
    except UndershootError as error:
        warn(f"the bundle that was there is set aside: {error}")
    else:
        is_of_run = {**there.recipe, "steps": steps} == {**bundle.recipe, "steps": steps}
        if is_of_run and there.figures.get("steps") == steps:
            return True, None
        if is_of_run and there.arithmetic == FLOAT and not (run.bundle / CALIBRATION).exists():
            return False, None
    kept = free_place(run.folder / f"bundle-before-{steps}")
    copy_folder(run.bundle, kept)
    return False, kept
