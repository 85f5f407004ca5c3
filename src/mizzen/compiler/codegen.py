"""Regions of a tensor graph as code: what a compiler of regions takes, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from mizzen.artifact.program import ProgramReference
from mizzen.artifact.region_step import Edge, EdgeMove, RegionStep
from mizzen.artifact.steps import is_npu, npu_step, read_network
from mizzen.compiler.proof.findings import RegionFindings
from mizzen.diagnostics import Origin, ProgressCallback, Reason
from mizzen.frontends.tflite import Model
from mizzen.graph import Graph
from mizzen.ops.limits import WindowLimits
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.partition import Extracted, Partition
from mizzen.partition.placement import Legal
from mizzen.report import Area, Measure
from mizzen.report.code import CodeChoice
from mizzen.targets.families import Family

NOT_MOVED = Edge((), ())
"""Of an operator without tensors."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What a region needs of memory, and whose code it has.

    areas       bytes by what they hold
    performance the performance data that the driver's users know, JSON-ready, if there is any
    code        per NPU operator, whose code it has, where there was a choice
    """

    areas: tuple[Area, ...]
    memories: tuple[Measure, ...] = ()
    figures: Mapping[str, int] = field(default_factory=dict[str, int])
    performance: Mapping[str, Any] | None = None
    code: tuple[CodeChoice, ...] = ()


@dataclass(frozen=True, eq=False)
class RegionCode:
    """A region's code.

    part      the region; its inputs and outputs are those of the network, in the same order
    model     a TFLite network of one custom operator, read
    network   the bytes of its file
    compiler  whose code it is
    origins   byte offset of a command in the stream to the user's operator
    """

    part: Extracted
    model: Model
    network: bytes
    compiler: str
    origins: Mapping[int, Origin]
    costs: Costs
    log: str = ""

    def unlike_told(self, step: RegionStep, seed: int) -> RegionFindings | None:
        """Return how it differs from what its generator says of it; None where nothing is said.

        step  that executes it
        seed  of the proof
        """
        return None


@dataclass(frozen=True, eq=False)
class OperatorCode(RegionCode):
    """A region's code as one custom operator, which can stand in a TFLite network.

    constants        bytes that are the operator's first inputs
    given, computed  which inputs and outputs of the region are those of the operator, in its order
    edge             how the CPU moves the operator's tensors, in its order
    program          what executes it, if the family's runtime need not read it from the operator
    reference        says what the program must compute where that is not what the graph computes,
                     because the NPU rounds otherwise
    against          what that is called
    """

    constants: tuple[bytes, ...] = ()
    given: tuple[int, ...] = ()
    computed: tuple[int, ...] = ()
    edge: Edge = NOT_MOVED
    program: object = None
    reference: ProgramReference | None = None
    against: str = ""


def step_of(region: RegionCode, tensors: Mapping[object, int]) -> RegionStep:
    """Make the step of a region; `tensors` has the index of each value of the whole graph."""
    model, part = region.model, region.part
    (operator,) = [row for row in model.main.operators if is_npu(row)]
    program = region.program if isinstance(region, OperatorCode) else None
    step = npu_step(model, operator, dict(region.origins), program)
    if isinstance(region, OperatorCode):
        given, computed, edge = region.given, region.computed, region.edge
    else:
        # The network is the operator: what it takes and gives are its inputs and outputs.
        given = [model.main.inputs.index(index) for index in step.inputs]
        computed = [model.main.outputs.index(index) for index in step.outputs]
        edge = Edge((EdgeMove(),) * len(given), (EdgeMove(),) * len(computed))
    shapes = {tensors[value]: value.shape for value in (*part.inputs, *part.outputs)}
    return RegionStep(
        step,
        [tensors[part.inputs[index]] for index in given],
        [tensors[part.outputs[index]] for index in computed],
        shapes,
        edge,
        [model.main.tensors[index].shape for index in step.inputs],
    )


@dataclass(frozen=True, slots=True)
class RegionRefusal:
    """Why a region cannot be compiled.

    reasons  of the groups because of which it cannot, at least one
    general  the reason for all others, where the search for such groups takes too long
    """

    reasons: Mapping[int, Reason]
    general: Reason


Make = Callable[[Extracted, ProgressCallback | None], "RegionCode | RegionRefusal"]
"""Compiles a region, whose graph may be changed."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to compile a region: its name, and when it is tried, in words."""

    name: str
    why: str
    make: Make


class RegionCompiler(Protocol):
    """Compiles regions of tensor graphs for a configuration."""

    @property
    def window_limits(self) -> WindowLimits:
        """How long windows of its depthwise convolutions may be."""
        ...

    def legality(self, graph: Graph) -> Legal:
        """Return what says why an operation of a graph cannot be on the NPU.

        What depends on the whole region is left to `compile`.
        """
        ...

    def unprofitable(self, partition: Partition) -> Mapping[int, Reason]:
        """Return the groups of NPU regions that had better stay on the CPU, and why."""
        ...

    def compile(
        self, part: Extracted, on_progress: ProgressCallback | None
    ) -> RegionCode | RegionRefusal:
        """Compile a region, whose graph may be changed, in the first way."""
        ...

    @property
    def ways(self) -> Sequence[Way]:
        """The ways to compile a region, the best first."""
        ...


class PlainRegions:
    """Compiles regions of the operations that an NPU has, whatever their operands.

    operations  the kinds of TOSA operations that it has
    """

    operations: frozenset[str]
    window_limits = WindowLimits(longest_stride=1, largest_kernel=1)

    def legality(self, graph: Graph) -> Legal:
        """Return what says why an operation of a graph cannot be on the NPU."""
        return lambda row: () if row.kind in self.operations else (self._missing(row.kind),)

    def unprofitable(self, partition: Partition) -> Mapping[int, Reason]:
        """Keep every region: what is worth its transfers the partition says."""
        return {}

    def compile(
        self, part: Extracted, on_progress: ProgressCallback | None
    ) -> RegionCode | RegionRefusal:
        """Compile a region, whose graph may be changed."""
        raise NotImplementedError

    @property
    def ways(self) -> tuple[Way, ...]:
        """The one way there is."""
        return (Way("compiled", "there is one way", self.compile),)

    def _missing(self, kind: str) -> Reason:
        has = ", ".join(sorted(self.operations))
        return Reason("operations", f"the NPU has no {kind}", limit=f"one of {has}")


def operator_code(
    part: Extracted, family: Family, program: bytes, costs: Costs, compiler: str
) -> OperatorCode:
    """Return the code of a region whose operator takes and gives what the region does, in order.

    program  the one constant that the operator has
    """
    builder = NetworkBuilder(compiler)
    inputs, outputs = (
        [builder.tensor(value.name, value.shape, value.dtype.numpy) for value in side]
        for side in (part.inputs, part.outputs)
    )
    held = builder.constant(family.code, np.frombuffer(program, np.uint8))
    builder.operator(family.code, [held, *inputs], outputs)
    network = builder.finish(inputs, outputs)
    return OperatorCode(
        part=part,
        model=read_network(network, part.graph.name),
        network=network,
        compiler=compiler,
        origins={},
        costs=costs,
        constants=(program,),
        given=tuple(range(len(inputs))),
        computed=tuple(range(len(outputs))),
        edge=Edge((EdgeMove(),) * len(inputs), (EdgeMove(),) * len(outputs)),
    )
