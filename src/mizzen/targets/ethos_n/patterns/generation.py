"""From a region of the tensor graph to a network of the Support Library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mizzen.diagnostics import MizzenError, Origin, Reason, fail
from mizzen.graph import Graph, Operation, Value
from mizzen.partition import Extracted
from mizzen.targets.ethos_n.config import VariantConfiguration
from mizzen.targets.ethos_n.legal.elementwise_rules import emptied
from mizzen.targets.ethos_n.network import Input, Network, Operand, Reshape
from mizzen.targets.ethos_n.patterns.covering import Composite, Covering
from mizzen.targets.ethos_n.patterns.graph_values import Emission, UnfitError


class RegionRefusedError(MizzenError):
    """A region is not as the NPU wants it; `groups` has the reasons of those that must leave it."""

    def __init__(self, error: MizzenError, groups: Mapping[int, Reason]) -> None:
        super().__init__(error.diagnostic)
        self.groups = groups


@dataclass(frozen=True, slots=True, eq=False)
class Generated:
    """A region's network.

    inputs   of each input of the region's graph, the network's
    outputs  of each output of the region's graph, the operand whose elements it has, in their
             order; its shape may be another than the graph's. No two are one operand
    """

    network: Network
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]

    @property
    def input_order(self) -> tuple[int, ...]:
        """For each input of the network, in its order, which input of the region it is."""
        return tuple(self.inputs.index(operand) for operand in self.network.inputs)

    @property
    def output_order(self) -> tuple[int, ...]:
        """For each output of the region, which output of the network it is."""
        given = self.network.outputs
        return tuple(given.index(operand) for operand in self.outputs)


def generate(graph: Graph, configuration: VariantConfiguration) -> Generated:
    """Make the network of a region's graph, as `mizzen.partition.extract` gives it.

    RegionRefusedError (E990, E991) names the groups that are not supported in this region; E992 for
    inputs that nothing takes.
    """
    covering = Covering(graph, configuration)
    left = covering.uncovered(graph.sorted())
    if left:
        reasons = {operation.group: covering.reasons([operation]) for operation in left}
        by_group = {group: of_group[0] for group, of_group in reasons.items() if group is not None}
        first = next(iter(reasons.values()))[0]
        raise _refused("E990", left[0].origin, left[0].kind, first, by_group)
    return _generated(covering, _Part(graph, covering.composites, graph.inputs, graph.outputs))


def generate_part(covering: Covering, part: Extracted) -> Generated | None:
    """Make the network of a region of a covered graph; errors as of `generate`.

    None if composites reach beyond the region, which then has to be covered for itself.
    """
    groups = {operation.group for operation in part.graph if operation.group is not None}
    inside = [operation for operation in covering.graph if operation.group in groups]
    composites = tuple(
        each
        for each in covering.composites
        if any(operation.group in groups for operation in each.operations)
    )
    whole = all(operation.group in groups for each in composites for operation in each.operations)
    if not whole or covering.uncovered(inside):
        return None
    return _generated(covering, _Part(part.graph, composites, part.inputs, part.outputs))


@dataclass(frozen=True, slots=True)
class _Part:
    """A region: its own graph, and its composites and edges in the graph that was covered."""

    graph: Graph
    composites: tuple[Composite, ...]
    inputs: Sequence[Value]
    outputs: Sequence[Value]


def _generated(covering: Covering, part: _Part) -> Generated:
    emission = Emission()
    makers = _add_all(part.composites, emission)
    outputs = _outputs(part, emission)
    for operand in outputs:
        emission.network.add_output(operand, origin=emission.network[operand.operation_id].origin)
    _check_numbers(emission.network, makers)
    _check(covering, part, emission.network)
    return Generated(emission.network, tuple(_inputs(part, emission)), outputs)


def _add_all(composites: Sequence[Composite], emission: Emission) -> list[Composite]:
    """Add all composites; return for each operation of the network the one that it comes from."""
    makers: list[Composite] = []
    for composite in composites:
        try:
            composite.add(emission)
        except UnfitError as error:
            raise _unfit(composite, error.reasons[0]) from error
        makers += [composite] * (len(emission.network) - len(makers))
    return makers


def _unfit(composite: Composite, reason: Reason) -> RegionRefusedError:
    groups = _groups(composite.operations, reason)
    return _refused("E991", composite.operations[-1].origin, composite.name, reason, groups)


def _check_numbers(network: Network, makers: Sequence[Composite]) -> None:
    """Refuse the composites whose bounds leave no number of what others before them leave."""
    for empty in emptied(network):
        raise _unfit(makers[empty.node.id], empty.reason)


def _outputs(part: _Part, emission: Emission) -> tuple[Operand, ...]:
    """Return operands of the graph's outputs; what is an input, or an output already, is copied:
    each has a buffer of its own."""
    operands: dict[Operand, None] = {}
    for value in part.outputs:
        operand = _computed(part, value, emission)
        is_input = isinstance(emission.network[operand.operation_id].operation, Input)
        if is_input or operand in operands:
            operand = emission.add(Reshape(operand.info.shape), operand)
        operands[operand] = None
    return tuple(operands)


def _computed(part: _Part, value: Value, emission: Emission) -> Operand:
    """Return the operand of an output; what is a constant, nothing computes."""
    try:
        return emission.as_it_is(value)
    except UnfitError as error:
        reason = error.reasons[0]
        everywhere = _groups(part.graph, reason)
        givers = {giver.group for giver in _givers(value)}
        refused = {group: why for group, why in everywhere.items() if group in givers}
        raise _refused("E991", None, "an output", reason, refused or everywhere) from error


def _givers(value: Value) -> Iterator[Operation]:
    producer = value.producer
    if producer is not None:
        yield producer
        for operand in producer.operands:
            yield from _givers(operand)


def _inputs(part: _Part, emission: Emission) -> Iterator[Operand]:
    for index, value in enumerate(part.inputs):
        if value not in emission.inputs:
            raise fail(
                "E992",
                f"every input of a region must be taken, and nothing takes input {index}",
                help="leave the input out of the region",
            )
        yield emission.inputs[value]


def _check(covering: Covering, part: _Part, network: Network) -> None:
    """Ask about all of a network: shapes may be others than where composites were asked about."""
    for reason in covering.breaches(network):
        groups = _groups(part.graph, reason)
        raise _refused("E991", None, "the region", reason, groups)


def _groups(operations: Graph | tuple[Operation, ...], reason: Reason) -> dict[int, Reason]:
    return {operation.group: reason for operation in operations if operation.group is not None}


def _refused(
    code: str, origin: Origin | None, what: str, reason: Reason, groups: Mapping[int, Reason]
) -> RegionRefusedError:
    message = f"{what} must be supported by the NPU, and is not: {reason.message}"
    error = fail(code, message, origin=origin, rule=reason.rule, help=reason.help or None)
    return RegionRefusedError(error, groups)
