"""The report of a compilation: where each operator went and why, what it needs, what it costs.

As a file it is beside the artifact, so that later runs can name the model's operators.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from mizzen.diagnostics import Device, Diagnostic, Origin, Reason, Severity
from mizzen.report.board_figures import BoardFigures
from mizzen.report.code import CodeChoice, NetworkChoice, choice_of, network_choice_of
from mizzen.report.cost import InferenceTime
from mizzen.report.energy import EnergyFigure, InferenceEnergy
from mizzen.report.proof import NOT_PROVED, Proof

SRAM = "Sram"
"""The compiler's name of the memory that is scarce."""


@dataclass(frozen=True, slots=True)
class OperatorPlacement:
    """One operator of the model; `macs` of one inference, `cycles` by the timing model.

    after     operators whose results it takes, by index
    shape     what it takes and gives in the model: ``49x10x1 -> 25x5x64``
    subgraph  whose operator it is, where the network has several
    """

    index: int
    kind: str
    name: str
    device: Device
    macs: int
    cycles: int = 0
    reasons: tuple[Reason, ...] = ()
    after: tuple[int, ...] = ()
    subgraph: str = ""
    shape: str = ""

    @property
    def region(self) -> Device:
        """`device`, by its name in the JSON report."""
        return self.device


@dataclass(frozen=True, slots=True)
class Measure:
    """What the compiler estimates for one kind of memory.

    used_bytes     peak use
    access_cycles  cycles that the NPU waits for it
    accesses       bytes read and written, by what they hold
    """

    memory: str
    used_bytes: int
    access_cycles: int = 0
    accesses: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


@dataclass(frozen=True, slots=True)
class Area:
    """A part of the compiled network's data, and the memory that the memory mode puts it in.

    `name` is ``constants``, ``arena`` (feature maps) or ``cache`` (the SRAM that stages them).
    """

    name: str
    memory: str
    used_bytes: int

    @property
    def is_sram(self) -> bool:
        """Whether it takes of the scarce memory."""
        return self.memory == SRAM


@dataclass(frozen=True, slots=True)
class CompileReport:
    """Everything that is known about a compiled network.

    configuration  the configuration in force, JSON-ready
    arena_bytes    the runtime's tensor arena, the cache included
    flash_bytes    the artifact's file
    areas          bytes by what they hold, from the artifact itself
    memories       use by kind of memory, as the compiler counts it
    time           how long one inference takes; None where no timing model knows the programs
    figures        numbers of the compiler's own report, by its names
    performance    per NPU operator: the performance data that its driver's users know, JSON-ready;
                   empty where there is not one
    origins        per NPU operator: byte offset of a command to the model's operator
    diagnostics    what happened on the way
    proof          what executing the code showed
    code           per NPU operator, whose code it has; empty where there was no choice
    board_figures  what the board, or a clock that was asked for, says of time; None for neither
    energy         of an inference; None where figures of the board are not known
    subgraph       whose report it is, where the network has several
    subgraphs      the reports of all subgraphs, in the file's order; empty where there is one
    """

    model: str
    configuration: dict[str, Any]
    compiler: str
    placements: tuple[OperatorPlacement, ...]
    arena_bytes: int
    flash_bytes: int
    areas: tuple[Area, ...]
    memories: tuple[Measure, ...]
    time: InferenceTime | None = None
    figures: dict[str, int] = field(default_factory=dict[str, int])
    performance: tuple[dict[str, Any], ...] = ()
    origins: tuple[dict[int, Origin], ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    log: str = field(default="", repr=False, compare=False)
    proof: Proof = NOT_PROVED
    code: tuple[CodeChoice, ...] = ()
    choice: NetworkChoice | None = None
    board_figures: BoardFigures | None = None
    energy: InferenceEnergy | None = None
    subgraph: str = ""
    subgraphs: tuple[CompileReport, ...] = ()

    def __str__(self) -> str:
        """Return what the command line prints of it."""
        from mizzen.notebook import text_of

        return text_of(self)

    def _repr_html_(self) -> str | None:
        """Return the HTML that a notebook shows; None for its text."""
        from mizzen.notebook import html_of

        return html_of(self)

    @property
    def cycles(self) -> int:
        """Estimated cycles of an inference, CPU operators included; 0 where nothing says."""
        return 0 if self.time is None else self.time.cycles

    def with_conversions(self) -> CompileReport:
        """Return the report of a file that converts a program's floats itself."""
        return self if self.time is None else replace(self, time=self.time.with_conversions())

    @property
    def on_npu(self) -> tuple[OperatorPlacement, ...]:
        """Operators on the NPU."""
        return tuple(placement for placement in self.placements if placement.device is Device.NPU)

    @property
    def on_cpu(self) -> tuple[OperatorPlacement, ...]:
        """Operators on the CPU."""
        return tuple(placement for placement in self.placements if placement.device is Device.CPU)

    def of_subgraph(self, name: str) -> CompileReport:
        """Return the report of one subgraph; this one where there are not several."""
        return next((subgraph for subgraph in self.subgraphs if subgraph.subgraph == name), self)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one inference."""
        return sum(placement.macs for placement in self.placements)

    @property
    def macs_on_npu(self) -> int:
        """Multiply-accumulates on the NPU."""
        return sum(placement.macs for placement in self.on_npu)

    @property
    def sram_bytes(self) -> int:
        """SRAM that the network needs at its peak."""
        return sum(area.used_bytes for area in self.areas if area.is_sram)


VERSION = 2
"""Of the file's layout; files of another version are passed over."""

LARGEST_FILE_BYTES = 64 << 20
"""No report is nearly as long; what is longer is something else."""

LARGEST_NUMBER = (1 << 63) - 1

Value = TypeVar("Value", int, str)


def sidecar_path(artifact: Path) -> Path:
    """Return the place of an artifact's report: its name with ``.json``."""
    return artifact.with_suffix(".json")


def sidecar(report: CompileReport, artifact: bytes) -> bytes:
    """Return the file with the report of an artifact of these bytes."""
    digest = hashlib.sha256(artifact).hexdigest()
    document = {"version": VERSION, "artifact_sha256": digest, **as_dict(report)}
    return (json.dumps(document, indent=1) + "\n").encode()


def read_sidecar(artifact: Path, data: bytes) -> CompileReport | None:
    """Read the report beside an artifact; None if there is not one of exactly these bytes."""
    try:
        with sidecar_path(artifact).open("rb") as file:
            document = json.loads(file.read(LARGEST_FILE_BYTES))
        if document["version"] != VERSION:
            return None
        if document["artifact_sha256"] != hashlib.sha256(data).hexdigest():
            return None
        return from_dict(document)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None  # the artifact works without; a stray .json is not our file to judge


COMPILED = (".tflite", ".pte", ".zip", ".npz")
"""How the names of files end that may have one report beside them."""


def digest_of_other(artifact: Path, data: bytes) -> str | None:
    """Return the digest that the report beside an artifact has, if it is of no file there is.

    Files that differ in their endings have one report: it is of the one that was written last.
    """
    try:
        with sidecar_path(artifact).open("rb") as file:
            digest = json.loads(file.read(LARGEST_FILE_BYTES))["artifact_sha256"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None  # no report of ours
    if not isinstance(digest, str) or digest == hashlib.sha256(data).hexdigest():
        return None
    others = (artifact.with_suffix(suffix) for suffix in COMPILED if suffix != artifact.suffix)
    return None if any(_is_of(digest, path) for path in others) else digest


def _is_of(digest: str, path: Path) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == digest
    except OSError:
        return False


def as_dict(report: CompileReport) -> dict[str, Any]:
    """Return a report as JSON-ready data; the compiler's log is left out."""
    return {
        "model": report.model,
        "configuration": report.configuration,
        "compiler": report.compiler,
        "operators": [_placement_data(placement) for placement in report.placements],
        "totals": {
            "operators": len(report.placements),
            "operators_on_npu": len(report.on_npu),
            "macs": report.macs,
            "macs_on_npu": report.macs_on_npu,
            "sram_bytes": report.sram_bytes,
        },
        "arena_bytes": report.arena_bytes,
        "flash_bytes": report.flash_bytes,
        "areas": [asdict(area) for area in report.areas],
        "memories": [asdict(measure) for measure in report.memories],
        **(time_data(report.time) if report.time else {}),
        "figures": report.figures,
        "performance": list(report.performance),
        "origins": [
            {str(offset): asdict(origin) for offset, origin in stream.items()}
            for stream in report.origins
        ],
        "diagnostics": [_diagnostic_data(diagnostic) for diagnostic in report.diagnostics],
        "proof": asdict(report.proof),
        "code": [asdict(row) for row in report.code],
        **({"choice": asdict(report.choice)} if report.choice else {}),
        **({"board_figures": asdict(report.board_figures)} if report.board_figures else {}),
        **({"energy": asdict(report.energy)} if report.energy else {}),
        **({"subgraph": report.subgraph} if report.subgraph else {}),
        **(
            {"subgraphs": [as_dict(subgraph) for subgraph in report.subgraphs]}
            if report.subgraphs
            else {}
        ),
    }


def time_data(time: InferenceTime) -> dict[str, Any]:
    """Return how long an inference takes as JSON-ready data."""
    return {
        **asdict(time),
        "cpu_cycles": time.cpu_cycles,
        "seconds": time.seconds,
        "inferences_per_second": time.inferences_per_second,
    }


def _placement_data(placement: OperatorPlacement) -> dict[str, Any]:
    """Return a placement as JSON-ready data; its device is the key "region"."""
    fields = asdict(placement)
    if not placement.subgraph:
        del fields["subgraph"]
    fields |= {"device": placement.device.value, "reasons": list(map(asdict, placement.reasons))}
    return {"region" if name == "device" else name: value for name, value in fields.items()}


def from_dict(document: dict[str, Any]) -> CompileReport:
    """Take a report out of JSON data; KeyError, TypeError or ValueError if it is not one."""
    return CompileReport(
        model=_text(document, "model"),
        configuration=_configuration(document["configuration"]),
        compiler=_text(document, "compiler"),
        placements=tuple(_placement(entry) for entry in document["operators"]),
        arena_bytes=_number(document, "arena_bytes"),
        flash_bytes=_number(document, "flash_bytes"),
        areas=tuple(_area(entry) for entry in document["areas"]),
        memories=tuple(_measure(entry) for entry in document["memories"]),
        time=_time(document) if "cycles" in document else None,
        figures={name: _of(int, value) for name, value in document["figures"].items()},
        performance=tuple(dict(entry) for entry in document.get("performance", ())),
        origins=tuple(
            {int(offset): _origin(origin) for offset, origin in stream.items()}
            for stream in document["origins"]
        ),
        diagnostics=tuple(_diagnostic(entry) for entry in document["diagnostics"]),
        proof=_proof(document["proof"]) if "proof" in document else NOT_PROVED,
        code=tuple(choice_of(row) for row in document.get("code", ())),
        choice=network_choice_of(document.get("choice")),
        board_figures=_board_figures(document.get("board_figures")),
        energy=_energy(document.get("energy")),
        subgraph=_of(str, document.get("subgraph", "")),
        subgraphs=tuple(from_dict(entry) for entry in document.get("subgraphs", ())),
    )


CYCLES = ("cycles", "npu_cycles", "compute_cycles")


def _time(data: dict[str, Any]) -> InferenceTime:
    cycles, npu, compute = (_number(data, key) for key in CYCLES)
    processor, more = _text(data, "processor"), _of(int, data.get("conversion_cycles", 0))
    clock_hz, core_hz = _positive(data["clock_hz"]), _positive(data.get("processor_clock_hz", 0))
    return InferenceTime(cycles, npu, compute, clock_hz, processor, more, core_hz)


def _positive(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{value!r} is finite number from 0")
    if not 0 <= value < LARGEST_NUMBER:
        raise ValueError(f"{value!r} is finite number from 0")
    return float(value)


def _board_figures(data: dict[str, Any] | None) -> BoardFigures | None:
    if data is None:
        return None
    clock_hz, core_hz = (_positive(data[key]) for key in ("clock_hz", "processor_clock_hz"))
    energy = tuple(map(_energy_figure, data["energy"]))
    return BoardFigures(_text(data, "board"), clock_hz, _text(data, "processor"), core_hz, energy)


def _energy_figure(data: dict[str, Any]) -> EnergyFigure:
    value, error = _positive(data["value"]), _positive(data["error"])
    return EnergyFigure(_text(data, "of"), value, error, _text(data, "source"))


def _energy(data: dict[str, Any] | None) -> InferenceEnergy | None:
    if data is None:
        return None
    parts = {_of(str, name): _positive(part) for name, part in data["parts_mj"].items()}
    sources = tuple(_of(str, source) for source in data["sources"])
    mj, low, high = (_positive(data[key]) for key in ("mj", "low_mj", "high_mj"))
    return InferenceEnergy(mj, low, high, parts, sources)


def _of(kind: type[Value], value: object) -> Value:
    if type(value) is not kind:
        raise TypeError(f"{value!r} is no {kind.__name__}")
    if isinstance(value, int) and not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
        raise ValueError("a number is larger than any of a network")
    if isinstance(value, str) and "\0" in value:
        raise ValueError("a text has a zero, which no name of a file has")
    return value


def _number(data: dict[str, Any], key: str) -> int:
    return _of(int, data[key])


def _text(data: dict[str, Any], key: str) -> str:
    return _of(str, data[key])


def _configuration(data: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration in force, which is named by words."""
    _text(data, "accelerator")
    for key in {"system_config", "memory_mode", "optimise"} & data.keys():
        _text(data, key)
    for setting in data.get("settings", ()):
        if not {"name", "value", "source"} <= setting.keys():
            raise ValueError(f"a setting has {', '.join(setting)}")
        _text(setting, "name")
        _text(setting, "source")
    return dict(data)


def _placement(data: dict[str, Any]) -> OperatorPlacement:
    return OperatorPlacement(
        index=_number(data, "index"),
        kind=_text(data, "kind"),
        name=_text(data, "name"),
        device=Device(data["region"]),
        macs=_number(data, "macs"),
        cycles=_number(data, "cycles"),
        reasons=tuple(_reason(reason) for reason in data["reasons"]),
        after=tuple(_of(int, index) for index in data.get("after", ())),
        subgraph=_of(str, data.get("subgraph", "")),
        shape=_of(str, data.get("shape", "")),
    )


def _reason(data: dict[str, Any]) -> Reason:
    return Reason(
        *(_text(data, key) for key in ("rule", "message", "limit", "actual", "help", "source"))
    )


def _proof(data: dict[str, Any]) -> Proof:
    inputs, seed, parts, equal, watched = (
        _number(data, key) for key in ("inputs", "seed", "parts", "equal", "watched")
    )
    names = (
        tuple(_of(str, name) for name in data[key]) for key in ("bounded", "unproved", "differing")
    )
    against = _of(str, data.get("against", ""))
    digest = _text(data, "digest")
    constants, own = (_of(int, data.get(key, 0)) for key in ("constants", "own"))
    return Proof(
        inputs, seed, digest, parts, equal, watched, *names,
        against=against, constants=constants, own=own,
    )  # fmt: skip


def _area(data: dict[str, Any]) -> Area:
    return Area(_text(data, "name"), _text(data, "memory"), _number(data, "used_bytes"))


def _measure(data: dict[str, Any]) -> Measure:
    accesses = {
        what: (_of(int, read), _of(int, written))
        for what, (read, written) in data["accesses"].items()
    }
    used, waited = _number(data, "used_bytes"), _number(data, "access_cycles")
    return Measure(_text(data, "memory"), used, waited, accesses)


def _origin(data: dict[str, Any]) -> Origin:
    return Origin(
        model=_optional(str, data, "model"),
        operator=_optional(int, data, "operator"),
        kind=_optional(str, data, "kind"),
        name=_optional(str, data, "name"),
        command=_optional(int, data, "command"),
        module=_optional(str, data, "module"),
        source=_optional(str, data, "source"),
    )


def _optional(kind: type[Value], data: dict[str, Any], key: str) -> Value | None:
    value = data.get(key)
    return None if value is None else _of(kind, value)


def _diagnostic_data(diagnostic: Diagnostic) -> dict[str, Any]:
    """Return a diagnostic with its place in words and in parts."""
    origin = diagnostic.origin
    return {**diagnostic.as_dict(), "origin": None if origin is None else asdict(origin)}


def _diagnostic(data: dict[str, Any]) -> Diagnostic:
    origin = data["origin"]
    return Diagnostic(
        _text(data, "code"),
        _text(data, "message"),
        Severity(data["severity"]),
        None if origin is None else _origin(origin),
        rule=_optional(str, data, "rule"),
        help=_optional(str, data, "help"),
    )
