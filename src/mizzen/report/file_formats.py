"""The keys of the files in which versions and evaluations are handed on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from mizzen.diagnostics import Device
from mizzen.documents.model import Limits, Rows, Section, key

Size = Annotated[int, Limits(ge=0, lt=1 << 62)]
Number = Annotated[float, Limits(ge=-1e300, le=1e300)]
Name = Annotated[str, Limits(max_length=1 << 20)]
"""Of a network or a tensor; it is escaped and cut where it is shown."""

MOST = 1 << 16
Sizes = Annotated[Mapping[Name, Size], Limits(max_length=MOST)]
Metrics = Annotated[Mapping[Name, Number], Limits(max_length=MOST)]


class LayerKeys(Section):
    """As `LayerCost`."""

    index: Size
    kind: Name
    name: Name
    device: Device
    cycles: Size


class EnergyKeys(Section):
    """As `InferenceEnergy`."""

    mj: Number
    low_mj: Number
    high_mj: Number
    parts_mj: Metrics
    sources: Annotated[Rows[Name], Limits(max_length=MOST)]


class VersionKeys(Section):
    """As `Version`."""

    model: Name
    configuration: Annotated[Mapping[Name, Name], Limits(max_length=MOST)]
    operators: Size
    cpu_operators: Size
    macs: Size
    cycles: Size
    inferences_per_second: Number = 0.0
    compiler_cycles: Size | None = None  # of baselines of before; it is not read
    utilisation: Number | None
    sram_bytes: Size
    flash_bytes: Size
    file_bytes: Size
    areas: Sizes
    peak: Sizes
    layers: Rows[LayerKeys]
    energy: EnergyKeys | None = None


class VersionsKeys(Section):
    """A baseline."""

    schema_: Literal["mizzen-versions"] = key(name="schema")
    version: Literal[1]
    versions: Rows[VersionKeys]


class _Part(Section):
    """A part of a document that has more than what is read."""

    OTHERS = True


class ConfusionKeys(_Part):
    """As `Confusion`."""

    classes: Annotated[Rows[Name], Limits(max_length=4096)]
    counts: Rows[Rows[Size]]

    def problem(self) -> str | None:
        """Return what must hold of the counts."""
        square = [len(self.classes)] * len(self.classes)
        if square != [len(of_class) for of_class in self.counts]:
            return "have a row and a column of counts for each class"
        return None


class AgreementKeys(_Part):
    """As `Agreement`."""

    equal: Size
    judged: Size
    largest_difference: Number
    mean_difference: Number


class ReferenceKeys(_Part):
    """As `Reference`."""

    name: Name
    metrics: Metrics
    agreement: AgreementKeys


class EvaluationKeys(_Part):
    """What a page takes of an evaluation."""

    data: Name
    samples: Size
    metrics: Metrics
    confusion: ConfusionKeys | None = None
    mistakes: Rows[Name] = ()
    wrong: Size = 0
    reference: ReferenceKeys | None = None
