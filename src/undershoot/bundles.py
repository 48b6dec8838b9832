"""A learned heuristic on disk, a folder as model hubs have it.

    config.json          the puzzle, the architecture, the recipe; checksums of model, card and puzzle
    model.safetensors    the weights
    README.md            a model card
    puzzle.toml          the puzzle, if it comes from a file
    calibration.json     the margin and what is known then; exceptions.safetensors holds the states that are looked up
    certificate.json     that every state was checked

config.json, calibration.json and certificate.json each hold a checksum of themselves, the latter two also of the weights (and
the calibration) that they are for.
"""

import dataclasses
import difflib
import hashlib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as read_tensors
from safetensors.numpy import save as tensor_bytes

from undershoot.arrays import AnyArray
from undershoot.errors import UndershootError
from undershoot.files import put_back, write_folder
from undershoot.guarantees import Guarantee, Heuristic, Rounding, Standing, Subject
from undershoot.heuristics.calibrated import CalibratedHeuristic, Calibration
from undershoot.heuristics.catalogue import HEURISTICS
from undershoot.heuristics.catalogue import heuristic as named
from undershoot.heuristics.combined import Largest
from undershoot.heuristics.neural import LearnedHeuristic, Network, NeuralHeuristic
from undershoot.heuristics.whole_numbers import WholeNetwork
from undershoot.puzzles import catalogue, puzzle_file
from undershoot.puzzles.puzzle import Puzzle

FORMAT = "undershoot bundle 2"
CONFIG, MODEL, CARD, DEFINITION = "config.json", "model.safetensors", "README.md", "puzzle.toml"
CALIBRATION, EXCEPTIONS, CERTIFICATE = "calibration.json", "exceptions.safetensors", "certificate.json"
FLOAT, WHOLE = "float32, fixed order of additions, 1", "whole numbers, exact on every device, 1"
"""How networks are evaluated; the number at the end grows when values may change."""
CERTIFIED = "undershoot certificate 1"
SHIPPED = Path(__file__).parent / "shipped"
"""Bundles that come with the package, in folders named after their puzzle, and after what they are if not the best."""
LEARNED = {
    "learned": ("", "the best that comes with the package: a network of whole numbers, certified on every state"),
    "label-free": ("-label-free", "likewise, trained without a true cost"),
    "small": ("-small", "likewise, of at most a quarter of the bytes of a table of all true costs"),
    "paper": ("-paper", "likewise, by the paper's recipe, for comparison"),
}


@dataclass(frozen=True, eq=False)
class Bundle:
    """Everything that stands in the folder."""

    puzzle: Puzzle
    network: Network | WholeNetwork
    recipe: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    """What was measured, for the model card."""
    command: str = ""
    """What makes it again."""
    encoding: str = "cells"
    """See `Puzzle.encoded`."""
    canonical: bool = False
    calibration: Calibration | None = None
    certificate: dict[str, Any] | None = None
    name: str = "network"

    @property
    def raw(self) -> NeuralHeuristic:
        """The network alone."""
        return NeuralHeuristic(self.puzzle, self.network, self.name, self.puzzle.encoded(self.encoding, self.canonical))

    @property
    def heuristic(self) -> NeuralHeuristic | CalibratedHeuristic:
        """The network as it is calibrated, with the guarantee of its certificate if there is one."""
        if self.calibration is None:
            return self.raw
        calibration = self.calibration
        if self.certificate is not None:
            guarantee = Guarantee(Standing.PROVEN, within=self.certificate["radius"])
            calibration = dataclasses.replace(calibration, guarantee=guarantee)
        return CalibratedHeuristic(self.raw, calibration)

    @property
    def arithmetic(self) -> str:
        """How the network is evaluated."""
        return WHOLE if isinstance(self.network, WholeNetwork) else FLOAT

    @property
    def weights_digest(self) -> str:
        """Of model.safetensors."""
        return hashlib.sha256(self._model()).hexdigest()

    @property
    def calibration_digest(self) -> str | None:
        """Of calibration.json, which covers the exceptions."""
        return None if self.calibration is None else json.loads(self._calibration_files()[CALIBRATION])["digest"]

    def _model(self) -> bytes:
        tensors: dict[str, AnyArray] = {}
        for number, (weight, bias) in enumerate(zip(self.network.weights, self.network.biases, strict=True)):
            tensors[f"layers.{number}.weight"], tensors[f"layers.{number}.bias"] = np.asarray(weight), np.asarray(bias)
            if isinstance(self.network, WholeNetwork):
                tensors[f"layers.{number}.scale"] = self.network.scales[number]
        # What is written is memory, whatever the strides say.
        return tensor_bytes({name: np.ascontiguousarray(array) for name, array in tensors.items()})

    def _calibration_files(self) -> dict[str, bytes]:
        calibration = self.calibration
        if calibration is None:
            return {}
        files = {}
        fields = {f.name: getattr(calibration, f.name) for f in dataclasses.fields(calibration)}
        keys, costs = fields.pop("exceptions"), fields.pop("exception_costs")
        # JSON knows no infinity; "inf" answers h0, and every state passes "-inf".
        fields["margin"] = _to_json(calibration.margin)
        for name in ("group_margins", "level_margins"):
            fields[name] = [_to_json(margin) for margin in fields[name]]
        fields["guarantee"] = dataclasses.asdict(calibration.guarantee)
        fields |= {"weights": self.weights_digest, "sentence": str(calibration.guarantee)}
        if len(keys):
            files[EXCEPTIONS] = tensor_bytes({"keys": np.ascontiguousarray(keys), "costs": np.ascontiguousarray(costs)})
            fields["exceptions"] = hashlib.sha256(files[EXCEPTIONS]).hexdigest()
        files[CALIBRATION] = _signed(fields)
        return files

    def save(self, folder: Path) -> None:
        """Write the folder; a bundle that is there already is replaced once the new one is complete."""
        check_replaceable(folder)
        model = self._model()
        config = {
            "format": FORMAT,
            "puzzle": self.puzzle.name,
            "fingerprint": self.puzzle.table.fingerprint,
            "architecture": "multilayer perceptron, ReLU, weights [in, out]",
            "encoding": self.encoding,
            "canonical": self.canonical,
            "inputs": self.raw.encoding.digest,
            "arithmetic": self.arithmetic,
            "widths": [*self.network.widths],
            "recipe": self.recipe,
            "figures": self.figures,
            "command": self.command,
        }
        covered = {MODEL: model, CARD: _card(self, config).encode()}
        if self.puzzle.definition:
            covered[DEFINITION] = self.puzzle.definition.encode()
        config["sha256"] = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(covered.items())}
        files = {**covered, **self._calibration_files(), CONFIG: _signed(config)}
        if self.certificate is not None:
            files[CERTIFICATE] = _signed(self.certificate)
        write_folder(folder, files)


def read_bundle(path: str | Path, with_calibration: bool = True, with_certificate: bool = True) -> Bundle:
    """A bundle, or that of a run folder; what is damaged, changed or foreign is refused by name.

    Without its calibration or certificate where these are about to be replaced, and may be out of date.
    """
    folder = bundle_folder(path)
    try:
        bundle = _read_bundle(folder, str(path))
        if with_calibration:
            bundle = dataclasses.replace(bundle, calibration=_read_calibration(folder, bundle))
            if with_certificate:
                bundle = dataclasses.replace(bundle, certificate=_read_certificate(folder, bundle))
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise UndershootError(f"{folder} does not hold what a bundle holds: {error!r}") from error
    return bundle


def _read_bundle(folder: Path, name: str) -> Bundle:
    config = _read_signed(folder / CONFIG)
    if config.get("format") != FORMAT:
        raise UndershootError(f"{folder / CONFIG} is no bundle of this version of undershoot")
    contents = {}
    for part, stated in config["sha256"].items():
        contents[part] = _read(folder / part)
        if hashlib.sha256(contents[part]).hexdigest() != stated:
            after = " after it was certified" if (folder / CERTIFICATE).exists() and part == MODEL else ""
            raise UndershootError(f"{folder / part} was changed{after}: it does not match the checksum in {CONFIG}")
    puzzle = puzzle_file.load(folder / DEFINITION) if DEFINITION in contents else catalogue.puzzle(config["puzzle"])
    if puzzle.table.fingerprint != config["fingerprint"]:
        raise UndershootError(f"{folder} was made for another {config['puzzle']} than this version of undershoot has")
    bundle = Bundle(
        puzzle,
        _network(folder / MODEL, contents[MODEL], config["widths"], config["arithmetic"]),
        config["recipe"],
        config["figures"],
        config["command"],
        config["encoding"],
        config["canonical"],
        name=name,
    )
    if bundle.raw.encoding.digest != config["inputs"]:
        raise UndershootError(
            f"{folder} was trained on another encoding of states than this version of undershoot has; train it again"
        )
    return bundle


def load(path: str | Path, device: str = "cpu") -> LearnedHeuristic | CalibratedHeuristic:
    """The heuristic in a bundle, in the bundle of a run folder, or in one that comes with the package, such as "cube-2x2".

    device: cpu, or cuda, where the network is then evaluated.

    A network of whole numbers has the same values on both. Those of a float network differ by less than the margin that its
    calibration leaves for that, so what is known of it holds on both.
    """
    if device not in ("cpu", "cuda"):
        raise UndershootError(f'the device is "{device}"; allowed are cpu and cuda')
    bundle = read_bundle(path)
    if device == "cpu":
        return bundle.heuristic
    if bundle.calibration is not None and bundle.calibration.group_margins and not bundle.raw.is_exact:
        # Across the edge of a group h may jump up, however small the step.
        raise UndershootError(f"{path} has a margin for each group, which needs exact values; use cpu, or --whole-numbers")
    from undershoot.heuristics.neural_cuda import on_cuda

    network, heuristic = on_cuda(bundle.raw), bundle.heuristic
    return CalibratedHeuristic(network, heuristic.calibration) if isinstance(heuristic, CalibratedHeuristic) else network


def heuristic(puzzle: Puzzle, name: str) -> Heuristic:
    """The heuristic of this name for a puzzle, or in the bundle at this path; joined by "+", the largest of several."""
    put_back(Path(name))
    parts = name.split("+")
    if len(parts) > 1 and not Path(name).exists():
        return Largest(tuple(heuristic(puzzle, part) for part in parts))
    if name in LEARNED:
        folder = SHIPPED / f"{puzzle.name}{LEARNED[name][0]}"
        if not folder.exists() or puzzle.definition:
            raise UndershootError(
                f"no heuristic `{name}` for {puzzle.name} comes with the package; train one: undershoot train PUZZLE"
            )
        return dataclasses.replace(read_bundle(folder), name=name).heuristic
    if name in HEURISTICS or not (Path(name).exists() or (SHIPPED / catalogue.ALIASES.get(name, name)).exists()):
        return named(puzzle, name, tuple(LEARNED))
    loaded = load(name)
    if loaded.fingerprint != puzzle.table.fingerprint:
        mine = "another puzzle of that name" if loaded.puzzle.name == puzzle.name else puzzle.name
        raise UndershootError(f"the bundle {name} is for {loaded.puzzle.name}, not for {mine}")
    return loaded


def default_heuristic(puzzle: Puzzle) -> str:
    """The name of the best that there is at once: learned, if such a bundle comes with the package."""
    return "base" if puzzle.definition or not (SHIPPED / puzzle.name).exists() else "learned"


def bundle_folder(path: str | Path) -> Path:
    """The folder of a bundle; for a run folder, the bundle in it; by a name alone, one that comes with the package."""
    folder = Path(catalogue.ALIASES.get(str(path), path))
    put_back(folder if not folder.exists() else folder / "bundle")
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


def _network(path: Path, data: bytes, widths: list[int], arithmetic: str) -> Network | WholeNetwork:
    if arithmetic not in (FLOAT, WHOLE):
        raise UndershootError(f"{path} is evaluated by arithmetic that this version of undershoot does not know: {arithmetic}")
    network: Network | WholeNetwork
    try:
        tensors = read_tensors(data)
        weights, biases = (tuple(tensors[f"layers.{k}.{n}"] for k in range(len(widths) - 1)) for n in ("weight", "bias"))
        if arithmetic == WHOLE:
            network = WholeNetwork(weights, biases, tuple(tensors[f"layers.{k}.scale"] for k in range(len(widths) - 1)))
        else:
            network = Network(weights, biases)
    except (SafetensorError, KeyError) as error:
        raise UndershootError(f"{path} does not hold the layers that {CONFIG} names: {error}") from error
    kinds = {array.dtype for array in (*network.weights, *network.biases)}
    if [*network.widths] != widths or (arithmetic == FLOAT and kinds != {np.dtype(np.float32)}):
        raise UndershootError(f"{path} holds layers of widths {network.widths}, {CONFIG} says {widths}")
    return network


def _read_calibration(folder: Path, bundle: Bundle) -> Calibration | None:
    path = folder / CALIBRATION
    if not path.exists():
        return None
    fields = _read_signed(path)
    if fields.pop("weights") != bundle.weights_digest:
        raise UndershootError(f"{path} was fitted to other weights than those in {MODEL}; calibrate again")
    fields.pop("sentence")
    stated = fields.pop("exceptions", None)
    if stated is not None:
        data = _read(folder / EXCEPTIONS)
        if hashlib.sha256(data).hexdigest() != stated:
            raise UndershootError(f"{folder / EXCEPTIONS} was changed: it does not match the checksum in {CALIBRATION}")
        tensors = read_tensors(data)
        fields["exceptions"], fields["exception_costs"] = tensors["keys"], tensors["costs"]
    claim = fields.pop("guarantee")
    return Calibration(
        **{
            **fields,
            "margin": float(fields["margin"]),
            "group_margins": tuple(float(margin) for margin in fields["group_margins"]),
            "level_margins": tuple(float(margin) for margin in fields["level_margins"]),
            "rounding": Rounding(fields["rounding"]),
            "guarantee": Guarantee(**{**claim, "standing": Standing(claim["standing"]), "subject": Subject(claim["subject"])}),
        }
    )


def _to_json(margin: float) -> float | str:
    return margin if math.isfinite(margin) else str(margin)


def _read_certificate(folder: Path, bundle: Bundle) -> dict[str, Any] | None:
    path = folder / CERTIFICATE
    if not path.exists():
        return None
    certificate = _read_signed(path)
    if certificate.get("fingerprint") != bundle.puzzle.table.fingerprint:
        raise UndershootError(f"{path} is the certificate of another puzzle ({certificate.get('puzzle')})")
    if certificate["weights"] != bundle.weights_digest:
        raise UndershootError(f"{path} was issued for other weights than those in {MODEL}; certify again")
    if certificate["inputs"] != bundle.raw.encoding.digest:
        raise UndershootError(f"{path} was issued for another encoding of states than {CONFIG} names; certify again")
    if certificate["calibration"] != bundle.calibration_digest:
        raise UndershootError(f"{path} was issued for another calibration than {CALIBRATION}; certify again")
    whole = certificate["format"] == CERTIFIED and certificate["checked"] == certificate["states"]
    if not whole or "radius" not in certificate or certificate["violations"] or certificate["arithmetic"] != bundle.arithmetic:
        raise UndershootError(f"{path} does not say that all states were checked by this arithmetic; certify again")
    return certificate


def _read_signed(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(_read(path))
    except ValueError as error:
        raise UndershootError(f"{path} is damaged: {error}") from error
    if not isinstance(document, dict) or "digest" not in document:
        raise UndershootError(f"{path} is no file of this version of undershoot")
    if document.pop("digest") != _digest(document):
        raise UndershootError(f"{path} was changed: it does not match its own checksum")
    return document


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise UndershootError(f"{path} is missing; the bundle is not complete") from error
    except OSError as error:
        raise UndershootError(f"cannot read {path}: {error.strerror}") from error


def _signed(document: dict[str, Any]) -> bytes:
    plain = json.loads(json.dumps(document))
    return (json.dumps({**plain, "digest": _digest(plain)}, indent=2) + "\n").encode()


def _digest(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def check_replaceable(folder: Path) -> None:
    """Refuse a folder that holds more than a bundle, since writing replaces all of it."""
    if SHIPPED in folder.resolve().parents:
        raise UndershootError(
            f"the bundle {folder.name} comes with the package and stays as it is; copy it first "
            f"(cp -r {folder} COPY), or calibrate it with --out COPY"
        )
    known = {CONFIG, MODEL, CARD, DEFINITION, CALIBRATION, EXCEPTIONS, CERTIFICATE}
    others = sorted({path.name for path in folder.iterdir()} - known) if folder.is_dir() else []
    if others or (folder.exists() and not folder.is_dir()):
        what = f": {others[0]}" if others else ""
        raise UndershootError(f"{folder} holds something else than a bundle{what}; choose another place, or move that away")


def _card(bundle: Bundle, config: dict[str, Any]) -> str:
    rows = "".join(f"| {name.replace('_', ' ')} | {_figure(value)} |\n" for name, value in config["figures"].items())
    given = f"THIS_FOLDER/{DEFINITION}" if bundle.puzzle.definition else config["puzzle"]
    certificate = bundle.certificate
    if bundle.calibration is None:
        known = "max(h0, network), 0 for goals. Nothing is known about overestimates."
    else:
        known = f"Calibrated by `{bundle.calibration.method}`. {bundle.heuristic.guarantee.sentence}"
    commands = [config["command"]]
    if bundle.calibration is not None:
        method, rounding = bundle.calibration.method, bundle.calibration.rounding
        more = " --whole-numbers" if bundle.arithmetic == WHOLE else ""
        options = "" if method == "exhaustive" else " ..."  # the rest stands in calibration.json
        commands.append(f"undershoot calibrate RUN --method {method} --rounding {rounding}{more}{options}")
    if certificate is not None:
        known += f" {certificate['checked']:,} states and {certificate['edges']:,} moves were checked."
        known += f" Mean h {certificate['mean_h']:.4f}, mean true cost {certificate['mean_true']:.4f}."
        commands.append("undershoot certify RUN")
    made_by = "\n".join(commands)
    measured = f"\n| measured before calibration | |\n|---|---|\n{rows}" if rows else ""
    seen = f"encoding `{bundle.encoding}`{' of canonical states' if bundle.canonical else ''}"
    share, radius = bundle.recipe.get("exact_share", 0), bundle.recipe.get("exact_radius", 0)
    within = f" within {radius} of the goal" if radius else ""
    labels = f" True costs{within} were {100 * share:g} % of its targets." if share else ""
    if "exact_share" in bundle.recipe and not share:
        labels = " No true cost was among its targets."
    return f"""# {config["puzzle"]}: a learned heuristic

{known}

{config["architecture"]}, {config["arithmetic"]}; {seen}; widths {" - ".join(map(str, config["widths"]))}.{labels} Made by

```
{made_by}
```
{measured}
Use it: `undershoot solve {given} --heuristic THIS_FOLDER`, or `us.load("THIS_FOLDER")` in Python.
"""


def _figure(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else str(value)
