"""The cost of versions of networks, side by side: models, accelerators, memory modes, artifacts.

Written to a file they are a baseline, which later versions are held against (`growths`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mizzen.diagnostics import Device, fail
from mizzen.documents import Form, Syntax, content_of, parse
from mizzen.report.compilation import SRAM
from mizzen.report.energy import InferenceEnergy

if TYPE_CHECKING:
    from mizzen.report.file_formats import VersionKeys

SCHEMA = "mizzen-versions"
"""What a file of versions says that it is."""

SCHEMA_VERSION = 1

FORM = Form(
    f"a baseline of {SCHEMA} {SCHEMA_VERSION}",
    Syntax.JSON,
    "E485",
    "E485",
    largest_bytes=16 << 20,
    help="write one with `mizzen compare MODEL --write-baseline FILE`",
    wording="{name} must be a baseline of mizzen-versions 1: {place} must {must}",
)

OTHER = "transfers of constants"
"""What of an inference's cycles belongs to no operator."""


CONSTANTS = "constants"
"""The area of what is only read, as it lies in the file."""


@dataclass(frozen=True, slots=True)
class AreaName:
    """What an area holds and the memory that it lies in, as a baseline's keys have both."""

    area: str
    memory: str

    @classmethod
    def parse(cls, text: str) -> AreaName:
        """Read one as `str` writes it."""
        area, _, memory = text.rpartition(" in ")
        return cls(area, memory)

    @property
    def is_flash(self) -> bool:
        """Whether it is only read, and takes no SRAM."""
        return self.area == CONSTANTS and self.memory != SRAM

    def __str__(self) -> str:
        """Return it as a key: ``arena in Sram``."""
        return f"{self.area} in {self.memory}"


@dataclass(frozen=True, slots=True)
class LayerCost:
    """An operator of the model, and the cycles that an inference takes for it."""

    index: int
    kind: str
    name: str
    device: Device
    cycles: int


@dataclass(frozen=True, slots=True)
class Version:
    """A network for a configuration.

    configuration    accelerator, system configuration, memory mode and so on, by those names
    cycles           of one inference, estimated; operators on the CPU included where they are
                     estimated too
    inferences_per_second  one after the other, at the NPU's clock; 0 where a baseline has none
    sram_bytes       that the network needs at its peak
    flash_bytes      of what is only read and lies in memory that is not SRAM
    file_bytes       of the artifact
    areas            bytes by what they hold, by `AreaName`: ``arena in Sram``
    peak             bytes alive in SRAM where the most is, by the names of tensors
    energy           of an inference; None where figures of the board are not known
    utilisation      multiply-accumulates of the NPU over what its array could have done, 0 to 1
    """

    model: str
    configuration: Mapping[str, str]
    operators: int
    cpu_operators: int
    macs: int
    cycles: int
    inferences_per_second: float
    utilisation: float | None
    sram_bytes: int
    flash_bytes: int
    file_bytes: int
    areas: Mapping[str, int] = field(default_factory=dict[str, int])
    peak: Mapping[str, int] = field(default_factory=dict[str, int])
    layers: tuple[LayerCost, ...] = ()
    energy: InferenceEnergy | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What makes it the same version of another day."""
        return self.model, *(f"{name}={self.configuration[name]}" for name in self.configuration)

    def named(self, model: str | None) -> Version:
        """Return it with another name of its model, where there is one."""
        return self if model is None else replace(self, model=model)

    @property
    def other_cycles(self) -> int:
        """Cycles of what belongs to no operator of the model: transfers of constants."""
        return self.cycles - sum(layer.cycles for layer in self.layers)

    @property
    def areas_in_sram(self) -> dict[str, int]:
        """What makes up `sram_bytes`."""
        return {
            named: size
            for named, size in self.areas.items()
            if AreaName.parse(named).memory == SRAM
        }

    @property
    def areas_in_flash(self) -> dict[str, int]:
        """What makes up `flash_bytes`."""
        return {named: size for named, size in self.areas.items() if AreaName.parse(named).is_flash}

    @property
    def title(self) -> str:
        """Its model and configuration, as people say it."""
        return ", ".join((self.model, *self.configuration.values()))


class GrowthMeasure(Enum):
    """What may not grow; the value is the user's word."""

    CYCLES = "cycles"
    SRAM = "sram"
    FLASH = "flash"
    FILE = "file"
    CPU_OPERATORS = "cpu-operators"

    def of(self, version: Version) -> int:
        """Return how much of it a version takes."""
        match self:
            case GrowthMeasure.CYCLES:
                return version.cycles
            case GrowthMeasure.SRAM:
                return version.sram_bytes
            case GrowthMeasure.FLASH:
                return version.flash_bytes
            case GrowthMeasure.FILE:
                return version.file_bytes
            case GrowthMeasure.CPU_OPERATORS:
                return version.cpu_operators

    @property
    def unit(self) -> str:
        """What it is counted in."""
        if self in (GrowthMeasure.SRAM, GrowthMeasure.FLASH, GrowthMeasure.FILE):
            return "bytes"
        return "cycles" if self is GrowthMeasure.CYCLES else "operators"


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much something may grow: by an amount, or by a part of what it was."""

    amount: int = 0
    part: float = 0.0

    def limit(self, before: int) -> int:
        """Return the most that it may be now."""
        return before + max(self.amount, int(before * self.part))

    def __str__(self) -> str:
        """Return it as it is written: ``2%`` or ``1024``."""
        return f"{100 * self.part:g}%" if self.part else str(self.amount)


@dataclass(frozen=True, slots=True)
class Growth:
    """What became of a measure since the baseline.

    allowed  whether it is within its allowance
    where    what grew with it, the most first: layers for cycles, areas for memory
    """

    measure: GrowthMeasure
    before: int
    now: int
    allowance: Allowance
    allowed: bool
    where: tuple[tuple[str, int], ...] = ()

    @property
    def difference(self) -> int:
        """How much more it is."""
        return self.now - self.before


@dataclass(frozen=True, slots=True)
class VersionGrowth:
    """A version beside the one of the baseline; `growths` is empty where there is not one."""

    version: Version
    before: Version | None
    growths: tuple[Growth, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing grew more than it may."""
        return all(growth.allowed for growth in self.growths)


def growths(
    versions: Sequence[Version],
    baseline: Sequence[Version],
    allowances: Mapping[GrowthMeasure, Allowance],
) -> tuple[VersionGrowth, ...]:
    """Hold versions against those of a baseline; what has no allowance may not grow at all."""
    known = {version.key: version for version in baseline}
    return tuple(_growth(version, known.get(version.key), allowances) for version in versions)


def _growth(
    version: Version, before: Version | None, allowances: Mapping[GrowthMeasure, Allowance]
) -> VersionGrowth:
    if before is None:
        return VersionGrowth(version, None, ())
    grown: list[Growth] = []
    for measure in GrowthMeasure:
        was, now = measure.of(before), measure.of(version)
        allowance = allowances.get(measure, Allowance())
        where = tuple(grown_where(measure, before, version)) if now > was else ()
        grown.append(Growth(measure, was, now, allowance, now <= allowance.limit(was), where))
    return VersionGrowth(version, before, tuple(grown))


def grown_where(measure: GrowthMeasure, before: Version, now: Version) -> Iterator[tuple[str, int]]:
    """Return what of a version takes more of a measure than before, and how much, most first."""
    match measure:
        case GrowthMeasure.CYCLES:
            parts = [_layers(version) for version in (before, now)]
        case GrowthMeasure.SRAM:
            parts = [{**version.areas_in_sram, **version.peak} for version in (before, now)]
        case GrowthMeasure.FLASH:
            parts = [version.areas_in_flash for version in (before, now)]
        case GrowthMeasure.CPU_OPERATORS:
            parts = [_on_cpu(version) for version in (before, now)]
        case GrowthMeasure.FILE:
            return
    more = {name: size - parts[0].get(name, 0) for name, size in parts[1].items()}
    for name, size in sorted(more.items(), key=lambda pair: -pair[1]):
        if size > 0:
            yield name, size


def layer_key(layer: LayerCost) -> str:
    """Return by what a layer is the same one in two versions: ``CONV_2D conv1``."""
    return f"{layer.kind} {layer.name or layer.index}"


def _layers(version: Version) -> dict[str, int]:
    cycles = {layer_key(layer): layer.cycles for layer in version.layers}
    return cycles | {OTHER: version.other_cycles}


def _on_cpu(version: Version) -> dict[str, int]:
    layers = (layer for layer in version.layers if layer.device is Device.CPU)
    return {layer_key(layer): 1 for layer in layers}


def versions_as_dict(versions: Sequence[Version]) -> dict[str, Any]:
    """Return versions as JSON-ready data."""
    return {
        "schema": SCHEMA,
        "version": SCHEMA_VERSION,
        "versions": [
            {
                **asdict(version),
                "configuration": dict(version.configuration),
                "areas": dict(version.areas),
                "peak": dict(version.peak),
                "layers": [{**asdict(i), "device": i.device.value} for i in version.layers],
            }
            for version in versions
        ],
    }


def versions_file(versions: Sequence[Version]) -> bytes:
    """Return a file of versions."""
    return (json.dumps(versions_as_dict(versions), indent=1) + "\n").encode()


def read_versions(path: Path) -> tuple[Version, ...]:
    """Read a file of versions. E485 for one that is not one, E498 for a version twice."""
    from mizzen.report.file_formats import VersionsKeys

    keys = parse(VersionsKeys, content_of(path, FORM), str(path), FORM)
    versions = tuple(_version(version) for version in keys.versions)
    twice = doubles(versions)
    if twice:
        raise fail(
            "E498",
            f"{path} must have each version once, and has {twice[0].title} twice",
            rule="docs/how-to/fail-when-it-grows.md",
            help=FORM.help,
        )
    return versions


def doubles(versions: Sequence[Version]) -> tuple[Version, ...]:
    """Return the versions whose identity an earlier one has."""
    keys = [version.key for version in versions]
    return tuple(one for place, one in enumerate(versions) if one.key in keys[:place])


def _version(keys: VersionKeys) -> Version:
    layers = tuple(LayerCost(**vars(layer)) for layer in keys.layers)
    energy = keys.energy and InferenceEnergy(**vars(keys.energy))
    values: dict[str, Any] = {**vars(keys), "layers": layers, "energy": energy}
    values.pop("compiler_cycles")
    return Version(**values)
