"""The model card of a bundle."""

from typing import Any

from undershoot.guarantees import Guarantee
from undershoot.heuristics.calibrated import Calibration


def card(
    title: str,
    puzzle: str,
    config: dict[str, Any],
    calibration: Calibration | None,
    guarantee: Guarantee | None,
    certificate: dict[str, Any] | None,
    is_whole: bool,
) -> str:
    """Markdown. puzzle: as one writes it after `undershoot solve`. guarantee: what is known of the calibrated network."""
    network, recipe = config["networks"][0], config["recipe"]
    known = "max(h0, network), 0 for goals. Nothing is known about overestimates."
    commands = [config["command"]]
    if calibration is not None and guarantee is not None:
        known = f"Calibrated by `{calibration.method}`. {guarantee.sentence}"
        more = " --whole-numbers" if is_whole else ""
        options = "" if calibration.method == "exhaustive" else " ..."  # the rest stands in calibration.json
        commands.append(
            f"undershoot calibrate RUN --method {calibration.method} --rounding {calibration.rounding}{more}{options}"
        )
    if certificate is not None:
        moves = "" if certificate["edges"] is None else f" and {certificate['edges']:,} moves"
        known += f" {certificate['checked']:,} states{moves} were checked."
        known += f" Mean h {certificate['mean_h']:.4f}, mean true cost {certificate['mean_true']:.4f}."
        commands.append("undershoot certify RUN")
    rows = "".join(f"| {name.replace('_', ' ')} | {_figure(value)} |\n" for name, value in config["figures"].items())
    measured = f"\n| measured before calibration | |\n|---|---|\n{rows}" if rows else ""
    made_by = "\n".join(commands)
    seen = f"encoding `{network['encoding']}`{' of canonical states' if network['canonical'] else ''}"
    widths = " - ".join(map(str, network["widths"]))
    return f"""# {title}: a learned heuristic

{known}

{network["architecture"]}, {network["arithmetic"]}; {seen}; widths {widths}.{_labels(recipe)} Made by

```
{made_by}
```
{measured}
Use it: `undershoot solve {puzzle} --heuristic THIS_FOLDER`, or `us.load("THIS_FOLDER")` in Python. `undershoot check
THIS_FOLDER` establishes what it claims; `python -m undershoot.verifier THIS_FOLDER` does so with numpy alone.
"""


def _labels(recipe: dict[str, Any]) -> str:
    share, radius = recipe.get("exact_share", 0), recipe.get("exact_radius", 0)
    within = f" within {radius} of the goal" if radius else ""
    if "exact_share" in recipe and not share:
        return " No true cost was among its targets."
    return f" True costs{within} were {100 * share:g} % of its targets." if share else ""


def _figure(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else str(value)
