"""Regions for an NPU against PyTorch: each operator by itself, on the integers that PyTorch has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from mizzen.artifact.interface import Array
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.codegen import RegionCompiler, RegionRefusal, step_of
from mizzen.compiler.options import CompileOptions
from mizzen.compiler.proof.options import OFF
from mizzen.compiler.torch.placement import lowered_program, place
from mizzen.frontends.torch.int_lowering.int_lower import Lowered
from mizzen.graph import Value
from mizzen.partition import Device, Extracted, extract


class _Recording(torch.fx.Interpreter):
    """Keeps what every node of a program gives."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.given: dict[str, Any] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        found = super().run_node(n)
        self.given[n.name] = found
        return found


def integers(
    exported: torch.export.ExportedProgram, lowered: Lowered, call: Sequence[torch.Tensor]
) -> dict[Value, Array]:
    """Return the integers that PyTorch has for values of a lowered program, where it has any."""
    recording = _Recording(exported.module(check_guards=False))
    with torch.no_grad():
        recording.run(*call)
    found: dict[Value, Array] = {}
    for value, node in lowered.node_of.items():
        given = recording.given.get(node.name)
        if isinstance(given, torch.Tensor) and not given.is_floating_point():
            found[value] = given.numpy()
    return found


@dataclass(frozen=True, slots=True)
class Difference:
    """How far an operator of a program is off PyTorch's: the most steps, the share of elements."""

    kind: str
    group: int
    steps: int
    share: float


def differences(
    exported: torch.export.ExportedProgram,
    call: Sequence[torch.Tensor],
    accelerator: str,
    options: Mapping[str, str],
) -> Iterator[Difference]:
    """Compile each operator that is on the NPU by itself, and run it on PyTorch's integers.

    Those that only make sense with others in a region, views for instance, are left out.
    """
    chosen = resolve_target(CompileOptions(accelerator, target_options=options))
    compiler = chosen.backend.region_compiler(chosen.configuration, chosen.proof)
    lowered = lowered_program(exported, "network", compiler.window_limits)
    known = integers(exported, lowered, call)
    for group in _on_npu(lowered, compiler):
        part = extract(lowered.graph, (group,))
        edge = (*part.inputs, *part.outputs)
        if not all(value in known for value in edge):
            continue
        found = _computed(compiler, part, known)
        if found is None:
            continue
        off = np.concatenate(
            [
                np.abs(array.astype(np.int64) - known[value]).reshape(-1)
                for value, array in zip(part.outputs, found, strict=True)
            ]
        )
        kind = str(lowered.origins[group].kind)
        yield Difference(kind, group, int(off.max()), float(np.mean(off > 0)))


def _on_npu(lowered: Lowered, compiler: RegionCompiler) -> list[int]:
    placed = place(lowered, compiler, (), OFF, None)
    regions = [row for row in placed.partition.regions if row.device is Device.NPU]
    return [group for region in regions for group in region.groups]


def _computed(
    compiler: RegionCompiler, part: Extracted, known: Mapping[Value, Array]
) -> list[Array] | None:
    code = compiler.compile(part, None)
    if isinstance(code, RegionRefusal):
        return None
    edge = (*part.inputs, *part.outputs)
    tensors: dict[object, int] = {value: index for index, value in enumerate(edge)}
    values = {tensors[value]: known[value][None] for value in part.inputs}
    step_of(code, tensors).run(values, 1)
    return [values[tensors[value]][0] for value in part.outputs]
