"""What a version of a network costs: one model, one configuration, or an artifact as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.analysis.comparison.exactness import configuration_of
from mizzen.analysis.cost import cost_report
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.steps import is_npu, read_network
from mizzen.compiler.backend import ResolvedTarget
from mizzen.compiler.compile import TFLITE, compile_file, file_of
from mizzen.diagnostics import Device, ProgressCallback, fail
from mizzen.report import CompileReport, read_sidecar
from mizzen.report.versions import LayerCost, Version

if TYPE_CHECKING:
    from mizzen.report.cost import CostReport

ARTIFACTS = (".zip", ".pte", ".npz")
"""How the names of files end that are compiled already."""

NAMED = ("accelerator", "system_config", "memory_mode", "optimise")


def version_of(
    model: str | PathLike[str],
    target: ResolvedTarget,
    on_progress: ProgressCallback | None = None,
) -> Version:
    """Compile a model for a configuration and say what it costs.

    Raises what `mizzen.compile` does.
    """
    data, name = file_of(model)
    artifact = compile_file(data, name, target, on_progress)
    assert artifact.report is not None, "a compilation always reports"
    return cost_of(artifact, artifact.report, configuration_of(target))


def version_of_artifact(path: str | PathLike[str]) -> Version:
    """Say what an artifact costs. E494 without the report that was written beside it."""
    data, name = file_of(path)
    report = read_sidecar(Path(path), data)
    if report is None:
        raise fail(
            "E494",
            f"{path} must have the report of its compilation beside it, and has none",
            help="compile the model with `mizzen compile`, or give the model itself",
        )
    artifact = artifact_of(data, name, report, report.origins)
    named = {key: str(report.configuration[key]) for key in NAMED if report.configuration.get(key)}
    return cost_of(artifact, report, named)


def is_artifact(path: str | PathLike[str]) -> bool:
    """Whether a file is compiled already. E110 for one that cannot be read."""
    data, name = file_of(path)
    if TFLITE.recognises(data, name):
        return any(map(is_npu, read_network(data, name).main.operators))
    return name.endswith(ARTIFACTS)


def cost_of(artifact: Artifact, report: CompileReport, configuration: Mapping[str, str]) -> Version:
    """Return what an artifact costs, by its report and by what its streams take."""
    cost = cost_report(artifact)
    return Version(
        model=report.model,
        configuration=dict(configuration),
        operators=len(report.placements),
        cpu_operators=len(report.on_cpu),
        macs=report.macs,
        cycles=cost.cycles,
        compiler_cycles=cost.compiler_cycles,
        utilisation=_utilisation(cost, report),
        sram_bytes=report.sram_bytes,
        flash_bytes=sum(
            row.used_bytes for row in report.areas if row.name == "constants" and not row.is_sram
        ),
        file_bytes=len(artifact.data),
        areas={f"{row.name} in {row.memory}": row.used_bytes for row in report.areas},
        layers=tuple(_layers(cost, report)),
    )


def _utilisation(cost: CostReport, report: CompileReport) -> float | None:
    """Return the multiply-accumulates of the NPU's part over what its array could have done."""
    rate = max((row.macs_per_cycle for row in cost.operations), default=0)
    possible = rate * cost.npu_cycles
    return report.macs_on_npu / possible if possible else None


def _layers(cost: CostReport, report: CompileReport) -> Iterator[LayerCost]:
    """Return the model's operators; of a fused one the operation has the first one's name."""
    cycles: dict[object, int] = {}
    for row in cost.operations:
        if row.origin is not None:
            what = row.origin.name if row.origin.operator is None else row.origin.operator
            cycles[what] = cycles.get(what, 0) + row.cycles
    for row in report.placements:
        found = cycles.get(row.index, cycles.get(row.name, 0))
        yield LayerCost(row.index, row.kind, row.name, Device(row.device), found)
