"""Place groups of operations on the NPU or the CPU, in regions that follow one another.

A group, the operations of one computation of the user's model, is never torn apart. A group is on
the NPU if every operation of it is legal there and its region is worth its transfers.

Each group has a stage: the number of changes of device on the way to it. Stages never fall along an
edge, so regions made of one stage's groups of one device cannot wait for each other in a circle.

What a region is worth is counted in what its operations compute: multiplications with their
additions, and simpler work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from mizzen.diagnostics import Device, Reason
from mizzen.graph import INTEGER_BITS, DType, Graph, Operation, Value
from mizzen.ops.control_flow import Constant, Custom, Identity
from mizzen.ops.data_layout import Concat, Rearranged
from mizzen.ops.elementwise import Clamp
from mizzen.ops.tensor import Conv2d, Conv3d, DepthwiseConv2d, Matmul, TransposeConv2d
from mizzen.ops.type_conversion import Cast, Rescale

MOVES = (Constant, Identity, Rearranged, Concat, Rescale, Cast, Clamp, Custom)
"""Operations that compute nothing of their own: they move numbers, or finish another's."""


def macs_of(operation: Operation) -> int:
    """Return the multiply-accumulates of an operation."""
    match operation:
        case Conv2d() | Conv3d():
            return operation.result.type.elements * prod(operation.weight.shape[1:])
        case DepthwiseConv2d():
            return operation.result.type.elements * prod(operation.weight.shape[:2])
        case TransposeConv2d():
            return operation.input.type.elements * prod(operation.weight.shape[:3])
        case Matmul():
            return operation.result.type.elements * operation.A.shape[2]
        case _:
            return 0


def work_of(operation: Operation) -> int:
    """Return the arithmetic of an operation; one for each element that is looked at, or MACs."""
    macs = macs_of(operation)
    if macs or isinstance(operation, MOVES):
        return macs
    values = (*operation.operands, *operation.results)
    return max((value.type.elements for value in values), default=0)


@dataclass(frozen=True, slots=True)
class Region:
    """Groups that run together, in one place."""

    device: Device
    groups: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Placed:
    """Where one group runs, and why if on the CPU; `macs` of one inference."""

    group: int
    device: Device
    macs: int
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Partition:
    """Regions in order of execution, and every group's place."""

    regions: tuple[Region, ...]
    groups: Mapping[int, Placed]


Legal = Callable[[Operation], Sequence[Reason]]
"""Returns what keeps an operation from the NPU; nothing if it may run there."""

Edge = Callable[[Operation], bool]
"""Whether an operation only carries numbers over the model's edge, which the host does anyway."""

WORK_PER_BYTE = 2
"""Operations (a multiplication with its addition is one) that the NPU must save the CPU for each
byte that a region moves to or from it."""

TRANSFERS = Reason(
    "worth-its-transfers",
    "so little is computed there, between operators on the CPU, that moving the data costs more",
    help="nothing needs doing; move the operators around it to the NPU to take it along",
    source="Mizzen's cost model",
)


def partition(
    graph: Graph,
    legal: Legal,
    *,
    edge: Edge = lambda operation: False,
    refused: Mapping[int, Reason] | None = None,
    work_per_byte: int = WORK_PER_BYTE,
) -> Partition:
    """Place every group.

    refused        groups that the code generator would not take, and its reasons
    work_per_byte  that a region between computations on the CPU must do to be worth its transfers;
                   0 where nothing is transferred
    """
    groups = _Groups(graph)
    reasons: dict[int, tuple[Reason, ...]] = {
        group: tuple(_reasons(operations, legal)) for group, operations in groups.members.items()
    }
    for group, reason in (refused or {}).items():
        reasons[group] = (*reasons.get(group, ()), reason)
    edges = {group for group, operations in groups.members.items() if all(map(edge, operations))}
    while True:
        on_cpu = {group for group, why in reasons.items() if why}
        regions = _regions(groups, on_cpu)
        poor = [
            region for region in regions if _is_poor(region, groups, on_cpu - edges, work_per_byte)
        ]
        if not poor:
            break
        for region in poor:
            reasons.update(dict.fromkeys(region.groups, (TRANSFERS,)))
    return Partition(
        tuple(regions),
        {
            group: Placed(
                group,
                Device.CPU if reasons[group] else Device.NPU,
                sum(map(macs_of, groups.members[group])),
                reasons[group],
            )
            for group in groups.order
        },
    )


class _Groups:
    """The groups of a graph, what they wait for, in an order in which they can run."""

    def __init__(self, graph: Graph) -> None:
        self.members: dict[int, list[Operation]] = {}
        operations = [each for each in graph.sorted() if each.group is not None and not _free(each)]
        for operation in operations:
            assert operation.group is not None
            self.members.setdefault(operation.group, []).append(operation)
        self.before: dict[int, set[int]] = {group: set() for group in self.members}
        self.after: dict[int, set[int]] = {group: set() for group in self.members}
        for operation in operations:
            for producer in filter(None, (value.producer for value in operation.operands)):
                if producer.group not in (None, operation.group) and not _free(producer):
                    assert producer.group is not None
                    assert operation.group is not None
                    self.before[operation.group].add(producer.group)
                    self.after[producer.group].add(operation.group)
        self.order = self._sorted()
        self.outputs = set(graph.outputs)

    def _sorted(self) -> list[int]:
        waiting = {group: len(before) for group, before in self.before.items()}
        ready = [group for group, count in waiting.items() if not count]
        order: list[int] = []
        for group in ready:
            order.append(group)
            for later in self.after[group]:
                waiting[later] -= 1
                if not waiting[later]:
                    ready.append(later)
        assert len(order) == len(self.members), "groups wait for each other in a circle"
        return order

    def boundary(self, groups: Iterable[int]) -> set[Value]:
        """Return the values that cross the edge of a set of groups, constants left out."""
        inside = set(groups)
        operations = [each for group in inside for each in self.members[group]]
        crossing: set[Value] = set()
        for operation in operations:
            crossing |= {
                value
                for value in operation.operands
                if value.constant is None
                and (value.producer is None or value.producer.group not in inside)
            }
            crossing |= {
                value
                for value in operation.results
                if value in self.outputs or any(user.group not in inside for user in value.uses)
            }
        return crossing


def _free(operation: Operation) -> bool:
    """Whether an operation belongs to what uses it."""
    return isinstance(operation, Constant)


def _reasons(operations: Iterable[Operation], legal: Legal) -> list[Reason]:
    reasons: dict[Reason, None] = {}
    for operation in operations:
        reasons.update(dict.fromkeys(legal(operation)))
    return list(reasons)


def _regions(groups: _Groups, on_cpu: set[int]) -> list[Region]:
    """Make regions of stages, counted from the inputs or from the outputs: whichever move less.

    Either way the NPU has as many regions as the path that enters it most often needs. Whatever
    else could run in one of several regions runs early or late.
    """
    stages = _stages(groups.order, groups.before, on_cpu)
    reverse = _stages(groups.order[::-1], groups.after, on_cpu)
    last = max(reverse.values(), default=0)
    late = {group: last - stage for group, stage in reverse.items()}
    choices = [_by_stage(groups, staging, on_cpu) for staging in (stages, late)]
    return min(choices, key=lambda regions: sum(_moved(region, groups) for region in regions))


def _stages(
    order: Sequence[int], before: Mapping[int, set[int]], on_cpu: set[int]
) -> dict[int, int]:
    """Count changes of device; the CPU's stages are even, the NPU's odd."""
    stages: dict[int, int] = {}
    for group in order:
        side = 0 if group in on_cpu else 1
        earliest = max((stages[other] for other in before[group]), default=0)
        stages[group] = earliest + (earliest + side) % 2
    return stages


def _by_stage(groups: _Groups, stages: Mapping[int, int], on_cpu: set[int]) -> list[Region]:
    members: dict[tuple[int, bool], list[int]] = {}
    for group in groups.order:
        members.setdefault((stages[group], group in on_cpu), []).append(group)
    return [
        Region(Device.CPU if cpu else Device.NPU, tuple(together))
        for (_, cpu), together in sorted(members.items())
    ]


def _is_poor(region: Region, groups: _Groups, computing: set[int], work_per_byte: int) -> bool:
    """Whether a region between computations on the CPU saves less than its transfers cost."""
    if region.device is Device.CPU:
        return False
    neighbours = {
        other for group in region.groups for other in groups.before[group] | groups.after[group]
    }
    if not neighbours & computing:
        return False
    moved = _moved(region, groups)
    work = sum(work_of(row) for group in region.groups for row in groups.members[group])
    return work < work_per_byte * moved


def _moved(region: Region, groups: _Groups) -> int:
    """Count the bytes that a region takes from and gives to others."""
    return sum(map(_bytes, groups.boundary(region.groups)))


def _bytes(value: Value) -> int:
    bits = INTEGER_BITS.get(value.dtype, 32 if value.dtype is not DType.BOOL else 8)
    return value.type.elements * max(bits, 8) // 8
