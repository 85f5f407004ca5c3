"""What a version of a network costs: one model, one configuration, or an artifact as it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from os import PathLike
from pathlib import PurePath
from typing import TYPE_CHECKING

from mizzen.analysis.comparison.exactness import configuration_of
from mizzen.analysis.cost import cost_report
from mizzen.analysis.memory import memory_report
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import is_npu, read_network
from mizzen.compiler.backend import ResolvedTarget
from mizzen.compiler.compile import TFLITE, compile_file, source_of
from mizzen.diagnostics import Device, ProgressCallback
from mizzen.report import CompileReport
from mizzen.report.compilation import SRAM
from mizzen.report.versions import AreaName, LayerCost, Version

if TYPE_CHECKING:
    from mizzen.report.board_figures import BoardFigures
    from mizzen.report.cost import CostReport
    from mizzen.report.memory import MemoryReport
    from mizzen.targets.ethos_u.machine.config import EthosUConfiguration

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
    artifact = compile_file(source_of(model), target, on_progress)
    assert artifact.report is not None, "a compilation always reports"
    return cost_of(artifact, artifact.report, configuration_of(target))


def version_of_artifact(artifact: Artifact, figures: BoardFigures | None = None) -> Version:
    """Say what an artifact costs, whatever made it; with its report in the model's own words.

    figures  what a board says of time; else what the artifact was compiled for
    """
    report = artifact.report
    if report is None:
        named = {"accelerator": artifact.accelerator} if artifact.accelerator else {}
        return cost_of(artifact, None, named, figures)
    named = {key: str(report.configuration[key]) for key in NAMED if report.configuration.get(key)}
    return cost_of(artifact, report, named, figures)


def identities(models: Iterable[str]) -> dict[str, str]:
    """Return what tells models of one file name apart: the shortest ends of their paths.

    ``p/model.tflite`` and ``q/model.tflite``; a model whose name no other has is not among them.
    """
    paths = {model: PurePath(model).parts for model in models}
    same = Counter(parts[-1:] for parts in set(paths.values()))
    return {
        model: "/".join(_apart(parts, set(paths.values()) - {parts}))
        for model, parts in paths.items()
        if same[parts[-1:]] > 1
    }


def _apart(parts: tuple[str, ...], others: Collection[tuple[str, ...]]) -> tuple[str, ...]:
    ends = (parts[-length:] for length in range(1, len(parts) + 1))
    return next((end for end in ends if all(other[-len(end) :] != end for other in others)), parts)


def is_artifact(path: str | PathLike[str]) -> bool:
    """Whether a file is compiled already. E110 for one that cannot be read."""
    source = source_of(path)
    if TFLITE.recognises(source.data, source.name):
        subgraphs = read_network(source.data, source.name).subgraphs
        return any(is_npu(operator) for subgraph in subgraphs for operator in subgraph.operators)
    return source.name.endswith(ARTIFACTS)


def cost_of(
    artifact: Artifact,
    report: CompileReport | None,
    configuration: Mapping[str, str],
    figures: BoardFigures | None = None,
    system: EthosUConfiguration | None = None,
) -> Version:
    """Return the costs of an artifact: its streams' time, and the memories that it must have.

    system  that it runs in; else the one that it was compiled for
    """
    cost = cost_report(artifact, configuration=system, figures=figures)
    memory = memory_report(artifact, configuration=system)
    layers = tuple(_operations(cost) if report is None else _layers(cost, report))
    macs = sum(operation.macs for operation in cost.operations)
    areas = {AreaName(area.area, area.memory): area.used_bytes for area in memory.areas}
    return Version(
        model=memory.model,
        configuration=dict(configuration),
        operators=len(layers),
        cpu_operators=sum(layer.device is Device.CPU for layer in layers),
        macs=macs if report is None else report.macs,
        cycles=cost.cycles,
        inferences_per_second=cost.time.inferences_per_second,
        utilisation=_utilisation(cost),
        sram_bytes=memory.by_memory.get(SRAM, 0),
        flash_bytes=sum(size for name, size in areas.items() if name.is_flash),
        file_bytes=memory.file_bytes,
        areas={str(name): size for name, size in areas.items()},
        peak=_peak(memory),
        layers=layers,
        energy=cost.energy,
    )


def _utilisation(cost: CostReport) -> float | None:
    """Return the multiply-accumulates of the NPU's part over what its array could have done."""
    rate = max((operation.macs_per_cycle for operation in cost.operations), default=0)
    possible = rate * cost.npu_cycles
    done = sum(operation.macs for operation in cost.operations if operation.device is Device.NPU)
    return done / possible if possible else None


def _peak(memory: MemoryReport) -> dict[str, int]:
    """Return the bytes alive in SRAM at its peak, by name."""
    areas = [area for area in memory.areas if area.memory == SRAM and area.live_bytes]
    if not areas:
        return {}
    largest = max(areas, key=lambda area: max(area.live_bytes))
    alive: dict[str, int] = {}
    for allocation in memory.alive_at(largest.peak, SRAM):
        alive[allocation.name] = alive.get(allocation.name, 0) + allocation.size_bytes
    return alive


def _operations(cost: CostReport) -> Iterator[LayerCost]:
    """Return the operations of an artifact of which it is not known what they were made of."""
    for operation in cost.operations:
        name = (
            operation.origin.name if operation.origin is not None and operation.origin.name else ""
        )
        yield LayerCost(operation.index, operation.name, name, operation.device, operation.cycles)


def _layers(cost: CostReport, report: CompileReport) -> Iterator[LayerCost]:
    """Return the model's operators; of a fused one the operation has the first one's name."""
    cycles: dict[object, int] = {}
    for operation in cost.operations:
        if operation.origin is not None:
            what = (
                operation.origin.name
                if operation.origin.operator is None
                else operation.origin.operator
            )
            cycles[what] = cycles.get(what, 0) + operation.cycles
    for placement in report.placements:
        spent = cycles.get(placement.index, cycles.get(placement.name, 0))
        yield LayerCost(
            placement.index, placement.kind, placement.name, Device(placement.device), spent
        )
