"""The pattern table, a graph's composites by it, and why an operation is in none of them.

Rows of the table are in order of priority; a row is taken where its pattern matches and the library
supports what it becomes. Names are those of Apache TVM's Ethos-N integration. From the composites
follow what keeps a group of operations from the NPU, and which regions are not worth a place on it.

Ref: Apache TVM v0.14.0, Ethos-N: pattern table and operators with `target.ethos-n`,
InlineNonComputeIntensivePartitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from mizzen.diagnostics import Reason
from mizzen.graph import Graph, Operation, Value
from mizzen.ops.control_flow import Constant, Custom
from mizzen.ops.data_layout import Slice
from mizzen.partition import Device, Partition, Region
from mizzen.patterns import Cover, Guard, Match, Miss, Node, Op, Pattern, Reject, language
from mizzen.targets.ethos_n import legal
from mizzen.targets.ethos_n.config import VariantConfiguration
from mizzen.targets.ethos_n.legal.elementwise_rules import emptied
from mizzen.targets.ethos_n.network import Input, Network
from mizzen.targets.ethos_n.network import Operation as NetworkOperation
from mizzen.targets.ethos_n.patterns import arrangement_patterns as arrangement
from mizzen.targets.ethos_n.patterns import elementwise_patterns as elementwise
from mizzen.targets.ethos_n.patterns import pooling_patterns as pooling
from mizzen.targets.ethos_n.patterns import weighted_patterns as weighted
from mizzen.targets.ethos_n.patterns.arrangement_patterns import Parts, parts_of, split
from mizzen.targets.ethos_n.patterns.graph_values import Emission, Findings, UnfitError, accumulated
from mizzen.targets.ethos_n.tensors import TensorInfo

Add = Callable[[Emission, Match], None]
"""Adds what a match becomes to a network; UnfitError with all reasons if it cannot be."""

PREFIX = "ethos-n."
SPLIT = f"{PREFIX}split"
"""The composite that no row has: several SLICEs of one value."""


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of composite.

    add      adds it to a network
    ask      adds what the library is asked about, where that is something else
    becomes  the name of the composite that it is converted to; its own if it is not converted
    """

    pattern: Pattern
    add: Add
    ask: Add
    becomes: str

    @property
    def name(self) -> str:
        """The composite's name, such as ``ethos-n.qnn_conv2d``."""
        return self.pattern.name


def _row(pattern: Pattern, add: Add, *, ask: Add | None = None, becomes: str | None = None) -> Row:
    return Row(pattern, add, ask or add, becomes or pattern.name)


REINTERPRET = f"{PREFIX}qnn_reinterpret_quantize"
CONVOLUTION = f"{PREFIX}qnn_conv2d"
MAXIMUM = f"{PREFIX}nn.max_pool2d"

_NUMBERS, _MOVES = elementwise.PATTERNS, arrangement.PATTERNS
_WEIGHTED, _POOLING = weighted.PATTERNS, pooling.PATTERNS

TABLE: tuple[Row, ...] = (
    _row(
        _NUMBERS["qnn_mul_to_reinterpret_quantize"],
        elementwise.reinterpreted,
        becomes=REINTERPRET,
    ),
    _row(_NUMBERS["qnn_mul_to_depthwise"], elementwise.multiplied, becomes=CONVOLUTION),
    _row(
        _NUMBERS["qnn_add_to_reinterpret_quantize"],
        elementwise.reinterpreted,
        becomes=REINTERPRET,
    ),
    _row(_NUMBERS["qnn_add_to_depthwise"], elementwise.added, becomes=CONVOLUTION),
    _row(_NUMBERS["qnn_add"], elementwise.addition),
    # A mean that keeps its input's steps; in others a convolution rounds only once.
    _row(_POOLING["qnn_mean"], pooling.mean_of_sums),
    _row(_POOLING["qnn_mean_to_depthwise"], pooling.convolved_mean, becomes=CONVOLUTION),
    _row(_POOLING["qnn_mean_requantized"], pooling.mean_of_sums),
    # Before convolutions, which the graph has for dense layers.
    _row(_WEIGHTED["qnn_fc"], weighted.dense),
    _row(_WEIGHTED["qnn_conv2d"], weighted.convolution),
    _row(_POOLING["qnn_mean_of_ones"], pooling.mean_of_ones),
    _row(_WEIGHTED["qnn_conv2d_transpose"], weighted.transposed),
    _row(_POOLING["qnn_avg_pool2d"], pooling.average),
    _row(_POOLING["qnn_avg_pool2d_to_depthwise"], pooling.average_of_ones, becomes=CONVOLUTION),
    _row(_POOLING["qnn_avg_pool2d_in_stages"], pooling.staged_average, becomes=CONVOLUTION),
    _row(_NUMBERS["qnn_sigmoid"], elementwise.logistic),
    _row(_NUMBERS["qnn_tanh"], elementwise.hyperbolic_tangent),
    _row(_NUMBERS["qnn_leaky_relu"], elementwise.leaky),
    _row(_MOVES["qnn_resize"], arrangement.resized),
    _row(_NUMBERS["qnn_requantize"], elementwise.requantize),
    _row(_POOLING["max_pool2d"], pooling.maximum),
    _row(_POOLING["max_pool2d_padded"], pooling.padded_maximum, becomes=MAXIMUM),
    _row(_MOVES["depth_to_space"], arrangement.spread),
    _row(_MOVES["reshape"], arrangement.reshaped, ask=arrangement.reshape_asked),
    _row(_MOVES["concatenate"], arrangement.concatenated),
    _row(_NUMBERS["clip"], elementwise.clip),
)

COMPUTE_INTENSIVE = frozenset(
    f"{PREFIX}{name}"
    for name in (
        "qnn_conv2d",
        "qnn_conv2d_transpose",
        "qnn_avg_pool2d",
        "qnn_sigmoid",
        "qnn_fc",
        "qnn_mean",
        "qnn_resize",
        "nn.max_pool2d",
    )
)
"""Composites of which one makes a region worth its place on the NPU.

Ref: Apache TVM v0.14.0, Ethos-N: `IsComputeIntensivePartition`.
"""


SOURCE = "Mizzen's pattern table for Ethos-N"

SAYINGS: dict[str, tuple[str, str]] = {
    "MUL": (
        "it multiplies two tensors, one of the two must be a constant",
        "multiply by a constant of one number, or of one for each channel",
    ),
    "SUB": (
        "it subtracts a tensor, what is subtracted must be a constant",
        "subtract a constant of one number, or of one for each channel",
    ),
    "TABLE": (
        "it is a function of each number, the function must be sigmoid, tanh or leaky ReLU",
        "use sigmoid, tanh or leaky ReLU",
    ),
    "REDUCE_SUM": (
        "it sums along axes, the sum must be a mean over height and width",
        "use a mean over both height and width, keeping channels",
    ),
    "TRANSPOSE": (
        "it exchanges axes, channels must be last from end to end",
        "keep the order of axes, channels last",
    ),
    "PAD": (
        "it pads, the next operator must be a convolution that can pad itself",
        "pad before a convolution, as its own padding could",
    ),
    "SLICE": (
        "it takes a part, parts must be all of a tensor, along one axis",
        "split the tensor: all parts along one axis, nothing left out",
    ),
}
"""Why operations that some composite could have are in none here, and what would be better."""

OTHERWISE = "write it with convolutions, poolings, sums and the functions of the pattern table"


@dataclass(frozen=True, slots=True, eq=False)
class Composite:
    """Operations that become one operation of the Support Library, or a few.

    name        as in TVM
    becomes     the name of what it is converted to
    operations  in the order of the graph, constants left out
    add         adds it to a network
    """

    name: str
    becomes: str
    operations: tuple[Operation, ...]
    add: Callable[[Emission], None]


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Operations that are as a row wants them, and why they do not fit nevertheless."""

    rank: int
    operations: tuple[Operation, ...]
    reasons: tuple[Reason, ...]


class Covering:
    """The composites of a graph, in an order in which they can be done one after the other.

    composite_of  operation to its composite
    """

    def __init__(self, graph: Graph, configuration: VariantConfiguration) -> None:
        self.graph = graph
        self._capabilities = configuration.capabilities
        self._release = configuration.release
        self._refusals: dict[Operation, list[_Refusal]] = {}
        self._rows: dict[Guard, Row] = {}
        """Rows by the guard that asks the library about them."""
        self._cover = Cover(graph, [self._asking(rank, entry) for rank, entry in enumerate(TABLE)])
        self._order = {operation: place for place, operation in enumerate(graph.sorted())}
        self._fixed = _constant(self._order)
        orders = dict(chain(self._from_patterns(), self._from_slices()))
        self.composites = tuple(sorted(orders, key=orders.__getitem__))
        self.composite_of = {
            operation: each for each in self.composites for operation in each.operations
        }

    def _from_patterns(self) -> Iterator[tuple[Composite, int]]:
        """Return the composites of patterns, and when each can be done."""
        for covered in self._cover.composites:
            (entry,) = [
                self._rows[guard] for guard in covered.match.pattern.guards if guard in self._rows
            ]
            made = Composite(
                entry.name, entry.becomes, covered.operations, _adding(entry, covered.match)
            )
            yield made, self._order[covered.match.root]

    def _from_slices(self) -> Iterator[tuple[Composite, int]]:
        """Return splits, which are several operations side by side, and when they can be done."""
        free = [
            operation for operation in self._order if self._cover.composite_of(operation) is None
        ]
        for parts in parts_of([operation for operation in free if isinstance(operation, Slice)]):
            add = _splitting(parts)
            reasons = self._ask(add)
            if reasons:
                self._refuse(_Refusal(len(TABLE), parts.slices, reasons))
            else:
                made = Composite(SPLIT, SPLIT, parts.slices, add)
                yield made, min(map(self._order.__getitem__, parts.slices))

    def _asking(self, rank: int, entry: Row) -> Pattern:
        """Return a row's pattern with one more guard: the library supports what it becomes."""

        def guard(match: Match) -> Reject | None:
            def ask(emission: Emission) -> None:
                entry.ask(emission, match)

            reasons = self._ask(ask)
            if not reasons:
                return None
            self._refuse(_Refusal(rank, match.operations, reasons))
            return Reject(accumulated(reasons))

        self._rows[guard] = entry
        guard.__doc__ = "The Support Library supports it."
        return replace(entry.pattern, guards=(*entry.pattern.guards, guard))

    def _refuse(self, refusal: _Refusal) -> None:
        for operation in refusal.operations:
            self._refusals.setdefault(operation, []).append(refusal)

    def _ask(self, add: Callable[[Emission], None]) -> tuple[Reason, ...]:
        """Return the reasons against a composite, as a network of its own."""
        emission = Emission()
        try:
            add(emission)
        except UnfitError as error:
            return error.reasons
        return tuple(self.breaches(emission.network))

    def breaches(self, network: Network) -> Iterator[Reason]:
        """Return the reasons why a network is not supported, inputs left out."""
        for node in network:
            if not isinstance(node.operation, Input):
                infos = tuple(operand.info for operand in node.inputs)
                reasons = legal.reasons(node.operation, infos, self._capabilities)
                yield from self._compared(reasons, node.operation, infos) if reasons else ()
        for empty in emptied(network):
            yield empty.reason

    def _compared(
        self,
        reasons: tuple[Reason, ...],
        operation: NetworkOperation,
        infos: tuple[TensorInfo, ...],
    ) -> Iterator[Reason]:
        """Say of an operation that is not supported whether another release has it."""
        taken = not legal.reasons(operation, infos, self._capabilities, self._release)
        said = f"; Arm's Support Library {self._release.value} takes it as it is" if taken else ""
        return (replace(reason, help=f"{reason.help}{said}") for reason in reasons)

    def uncovered(self, operations: Iterable[Operation]) -> list[Operation]:
        """Return those of some operations that are in no composite and need to be."""
        return [
            operation
            for operation in operations
            if operation not in self.composite_of and operation not in self._fixed
        ]

    def reasons(self, operations: Iterable[Operation]) -> tuple[Reason, ...]:
        """Return why some operations, those of one group, are not all in composites."""
        left = self.uncovered(operations)
        known = dict.fromkeys(chain.from_iterable(map(self._refused, left)))
        if left and not known:
            return (self._unknown(left),)
        return tuple(known)

    def _refused(self, operation: Operation) -> list[Reason]:
        """Return reasons of the widest refusals that an operation is in, in the table's order."""
        refusals = self._refusals.get(operation, [])
        widest = max((len(refusal.operations) for refusal in refusals), default=0)
        of_widest = sorted(
            (refusal for refusal in refusals if len(refusal.operations) == widest), key=_rank
        )
        return [reason for refusal in of_widest for reason in refusal.reasons]

    def _unknown(self, operations: list[Operation]) -> Reason:
        """Say why operations are as no row wants them."""
        strange = next((operation for operation in operations if operation.kind not in KINDS), None)
        if strange is not None:
            return _no_form(strange)
        findings = Findings()
        findings.types(self._crossing(operations))
        if findings.reasons:
            return findings.reasons[0]
        said = next(
            (SAYINGS[operation.kind] for operation in operations if operation.kind in SAYINGS), None
        )
        if said is not None:
            return Reason("no-composite", said[0], "an operation of the pattern table", "",
                          said[1], SOURCE)  # fmt: skip
        misses = [miss for operation in operations for miss in self._cover.misses(operation)]
        best = max(misses, key=_nearness, default=None)
        if best is None:
            return _no_form(operations[-1])
        name = best.pattern.removeprefix(PREFIX)
        return Reason(
            "no-composite",
            f"it is as no composite is; the nearest is {name}: {best.at.kind}: {best.reason}",
            best.reason,
            best.at.kind,
            OTHERWISE,
            SOURCE,
        )

    def _crossing(self, operations: list[Operation]) -> list[Value]:
        """Return the values that some operations take from others or give to others."""
        inside = set(operations)
        taken = [value for operation in operations for value in operation.operands]
        given = [value for operation in operations for value in operation.results]
        return [
            *(v for v in taken if v.producer not in inside and v.producer not in self._fixed),
            *(v for v in given if not v.uses or not inside.issuperset(v.uses)),
        ]


def _no_form(operation: Operation) -> Reason:
    kind = operation.operator_name if isinstance(operation, Custom) else operation.kind
    return Reason(
        "no-form",
        f"Ethos-N78 has no form of {kind}",
        "an operation of the pattern table",
        kind,
        OTHERWISE,
        SOURCE,
    )


def _adding(entry: Row, match: Match) -> Callable[[Emission], None]:
    def add(emission: Emission) -> None:
        emission.origin = match.root.origin
        entry.add(emission, match)

    return add


def _splitting(parts: Parts) -> Callable[[Emission], None]:
    def add(emission: Emission) -> None:
        emission.origin = parts.slices[0].origin
        split(emission, parts)

    return add


def _rank(refusal: _Refusal) -> int:
    return refusal.rank


def _nearness(miss: Miss) -> tuple[bool, int]:
    return miss.guarded, miss.depth


def _constant(operations: Iterable[Operation]) -> set[Operation]:
    """Return the constants of some operations in an order of execution, and what is computed of
    constants alone."""
    fixed: set[Operation] = set()
    for operation in operations:
        operands = operation.operands
        if isinstance(operation, Constant) or (
            operands and all(value.producer in fixed for value in operands)
        ):
            fixed.add(operation)
    return fixed


def _kinds_in(node: Node) -> Iterator[str]:
    if isinstance(node, Op):
        yield from node.kinds
    for part in language.parts(node):
        yield from _kinds_in(part)


KINDS = frozenset(kind for entry in TABLE for kind in _kinds_in(entry.pattern.root))
"""Operations that some composite has, and those that some have in front."""


Legal = Callable[[Operation], Sequence[Reason]]


def legality(covering: Covering) -> Legal:
    """Return a function that tells why an operation may not be on the NPU; nothing if it may.

    Groups are placed whole, so all operations of one have the same reasons. The graph must stay
    as it was covered.
    """
    members: dict[int | None, list[Operation]] = {}
    for operation in covering.graph.sorted():
        if not isinstance(operation, Constant):
            members.setdefault(operation.group, []).append(operation)
    reasons = {group: covering.reasons(together) for group, together in members.items()}
    _spread(covering, reasons)

    def legal(operation: Operation) -> Sequence[Reason]:
        return reasons.get(operation.group, ())

    return legal


def _spread(covering: Covering, reasons: dict[int | None, tuple[Reason, ...]]) -> None:
    """Add reasons to groups whose operations are in a composite with those of refused groups.

    A composite is done whole: a PAD that is only right before its convolution stays where
    that stays.
    """
    changed = True
    while changed:
        changed = False
        for composite in covering.composites:
            groups = {operation.group: operation for operation in composite.operations}
            refused = [operation for group, operation in groups.items() if reasons.get(group)]
            for group in groups if refused else ():
                if not reasons.get(group):
                    kind = refused[0].kind
                    reasons[group] = (
                        Reason(
                            "whole-composite",
                            f"it is part of {composite.name} with {kind}, which stays on the CPU",
                            f"all of {composite.name} on the NPU",
                            kind,
                            f"what keeps {kind} from the NPU keeps it too",
                            SOURCE,
                        ),
                    )
                    changed = True


INLINED = Reason(
    "compute-intensive",
    "nothing in its region computes much: no convolution, dense layer, pooling, mean, sigmoid or "
    "resize",
    "a compute-intensive operator in its region",
    "none",
    "nothing needs doing; inline_non_compute_intensive_partitions=false keeps it on the NPU",
    "Apache TVM v0.14.0, Ethos-N: InlineNonComputeIntensivePartitions",
)


def unprofitable(partition: Partition, covering: Covering) -> dict[int, Reason]:
    """Return the groups of regions on the NPU that have no compute-intensive composite.

    Placed again without them, others may be found: regions between which they stood are one then,
    or not worth it either.
    """
    poor = [region for region in partition.regions if not _is_worth_it(region, covering)]
    return {group: INLINED for region in poor for group in region.groups}


def _is_worth_it(region: Region, covering: Covering) -> bool:
    """Whether a region is on the CPU, or has a compute-intensive composite."""
    if region.device is Device.CPU:
        return True
    groups = set(region.groups)
    return any(
        composite.becomes in COMPUTE_INTENSIVE
        and any(operation.group in groups for operation in composite.operations)
        for composite in covering.composites
    )
