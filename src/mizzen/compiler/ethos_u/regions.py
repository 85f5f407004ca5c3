"""Regions of tensor graphs as code for Ethos-U, by our own rules.

A region is lowered, and the best schedule that was found is emitted. What no rule takes is refused
with the rule's reason. Where code is not right, there is a second way: the same operations without
a search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mizzen.artifact.region_step import RegionStep
from mizzen.artifact.steps import read_network
from mizzen.compiler.codegen import RegionCode, RegionRefusal, Way
from mizzen.compiler.ethos_u.agreement import held
from mizzen.compiler.ethos_u.operator_file import Edge, edge_of_value, operator_file
from mizzen.compiler.ethos_u.search.costs import costs_of
from mizzen.compiler.ethos_u.search.judging import Judged
from mizzen.compiler.ethos_u.search.searching import HAZARD, plainly, searched
from mizzen.compiler.ethos_u.witness import witness_of
from mizzen.compiler.proof.difference import RULE
from mizzen.compiler.proof.findings import RegionFindings
from mizzen.compiler.refusals import RefusalSearch
from mizzen.diagnostics import MizzenError, Origin, ProgressCallback, Reason
from mizzen.graph import Graph, Operation, Value
from mizzen.ops.control_flow import OfVariable
from mizzen.ops.limits import WindowLimits
from mizzen.partition import Extracted, Partition, extract, in_order
from mizzen.partition.placement import Legal
from mizzen.passes import Pipeline, standard
from mizzen.report.code import CodeChoice, Maker
from mizzen.targets.ethos_u.generator.lower import Lowered, Refusal, State, lower
from mizzen.targets.ethos_u.generator.operations import Role
from mizzen.targets.ethos_u.generator.operations import Sequence as Operations
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration

WINDOW_LIMITS = WindowLimits(longest_stride=3, largest_kernel=64, longest_upscale=2)
"""What a DEPTHWISE_CONV2D, and upscaling, have in one operation. Ref: Vela 5.2.0, ``vela
--supported-ops-report``."""

STANDARD = standard(WINDOW_LIMITS)
"""What brings a region of a graph that is not TFLite's into the form that rules read."""

COMPILER = "Mizzen"
RULES = "Mizzen's rules for Ethos-U"

Program = Callable[[Operations, EthosUConfiguration], Judged]


@dataclass(frozen=True, eq=False, kw_only=True)
class OwnCode(RegionCode):
    """A region's code of our own.

    program  with the schedule that it was emitted from; origins name `operations`
    states   what it keeps from one inference to the next, after its inputs
    operations  of the region's graph, in an order of execution
    """

    program: Judged
    states: tuple[State, ...]
    operations: tuple[Operation, ...]

    def unlike_told(self, step: RegionStep, seed: int) -> RegionFindings | None:
        """Return how the program differs from its schedule, or that from the graph."""
        witness = witness_of(self.program.schedule)
        known = held(witness, step.simulator, self.operations, seed)
        return known if isinstance(known, RegionFindings) else None


class OwnRegions:
    """Compiles regions for an Ethos-U.

    Each region has memory of its own, into which its inputs are copied.
    """

    window_limits = WINDOW_LIMITS
    passes: Pipeline | None = STANDARD

    def __init__(self, configuration: EthosUConfiguration) -> None:
        self.configuration = configuration

    # What the front-end knows of a region's edges

    def is_unsigned(self, value: Value) -> bool:
        """Whether a value of the whole graph is unsigned bytes for whoever reads it."""
        return False

    def outlives(self, value: Value, groups: frozenset[int]) -> bool:
        """Whether someone reads an input of a region of these groups after it."""
        return False

    def edge(self, value: Value, name: str) -> Edge:
        """Return a value of the whole graph as the network's file has it."""
        return edge_of_value(value, name)

    def explained(self, refusal: Refusal) -> Reason:
        """Return why an operation is refused, in the words of whoever made the graph."""
        return reason_of(refusal)

    # What asks for code

    def legality(self, graph: Graph) -> Legal:
        """Return what says why an operation of a graph cannot be on the NPU.

        Each group is judged by itself; what depends on its neighbours is left to `compile`.
        """
        judged: dict[int, Mapping[int, Reason]] = {}

        def legal(operation: Operation) -> Sequence[Reason]:
            group = operation.group
            if group is None:
                return ()
            if group not in judged:
                judged[group] = self._refusals(extract(graph, [group], graph.name))
            return tuple(judged[group].values())

        return legal

    def _refusals(self, part: Extracted) -> Mapping[int, Reason]:
        lowered, _ = self._lowered(part)
        return self._by_group(lowered.refusals)

    def _by_group(self, refusals: Iterable[Refusal]) -> dict[int, Reason]:
        """Return the first reason of each group of which an operation is refused."""
        reasons: dict[int, Reason] = {}
        for refusal in refusals:
            group = refusal.operation.group
            if group is not None and group not in reasons:
                reasons[group] = self.explained(refusal)
        return reasons

    def _refusal(self, refusals: Sequence[Refusal], groups: Sequence[int]) -> RegionRefusal:
        """Return why no rule takes a region; what has no group is the last group's."""
        general = self.explained(refusals[0])
        return RegionRefusal(self._by_group(refusals) or {groups[-1]: general}, general)

    def unprofitable(self, partition: Partition) -> Mapping[int, Reason]:
        """Keep every region: what is worth its transfers the partition says."""
        return {}

    @property
    def ways(self) -> tuple[Way, ...]:
        """The search's program, then one without a search."""
        return (
            Way("searched", "the best schedule that was found", self.compile),
            Way("plain", "without a search, where that is not right", self._compile_plainly),
        )

    def compile(
        self, part: Extracted, on_progress: ProgressCallback | None
    ) -> OwnCode | RegionRefusal:
        """Compile a region by the best schedule that was found."""
        return self._compiled(part, searched)

    def _compile_plainly(
        self, part: Extracted, on_progress: ProgressCallback | None
    ) -> OwnCode | RegionRefusal:
        return self._compiled(part, plainly)

    def _compiled(self, part: Extracted, program: Program) -> OwnCode | RegionRefusal:
        groups = in_order(part.graph)
        lowered, operations = self._lowered(part)
        if lowered.sequence is None:
            return self._refusal(lowered.refusals, groups)
        unfit = next(filter(None, map(without_initial, lowered.states)), None)
        if unfit is not None:
            return RegionRefusal(dict.fromkeys(groups_of_states(part.graph), unfit), unfit)
        sequence = self._keeping(lowered.sequence, part, frozenset(groups))
        try:
            judged = program(sequence, self.configuration)
        except MizzenError as error:
            return self._refused(part, groups, program, error)
        return self._code(part, judged, lowered.states, operations)

    def _lowered(self, part: Extracted) -> tuple[Lowered, tuple[Operation, ...]]:
        """Lower a region; origins are the places of operations that come with it."""
        if self.passes is not None:
            self.passes.run(part.graph)
        graph, operations = numbered(part.graph)
        unsigned = [
            own
            for value, own in (
                *zip(part.inputs, graph.inputs, strict=True),
                *zip(part.outputs, graph.outputs, strict=True),
            )
            if self.is_unsigned(value)
        ]
        lowered = lower(graph, unsigned, self.configuration.accelerator.arch)
        return lowered, operations

    def _keeping(self, sequence: Operations, part: Extracted, groups: frozenset[int]) -> Operations:
        """Return a sequence that leaves inputs as they are that are read after it."""
        tensors = list(sequence.tensors)
        for value, tensor in zip(part.inputs, sequence.inputs, strict=False):
            if self.outlives(value, groups):
                tensors[tensor] = replace(tensors[tensor], role=Role.STATE)
        return replace(sequence, tensors=tuple(tensors))

    def _code(
        self,
        part: Extracted,
        judged: Judged,
        states: tuple[State, ...],
        operations: tuple[Operation, ...],
    ) -> OwnCode:
        inputs, outputs = (
            [self.edge(value, f"{side}_{place}") for place, value in enumerate(values)]
            for side, values in (("input", part.inputs), ("output", part.outputs))
        )
        file = operator_file(COMPILER, inputs, outputs, states, judged.program)
        choice = CodeChoice(Maker.MIZZEN, judged.cost)
        return OwnCode(
            part=part,
            model=read_network(file, part.graph.name),
            network=file,
            compiler=COMPILER,
            origins=origins_of(judged, operations),
            costs=costs_of([judged], [choice], self.configuration),
            program=judged,
            states=states,
            operations=operations,
        )

    def _refused(
        self, part: Extracted, groups: Sequence[int], program: Program, error: MizzenError
    ) -> RegionRefusal:
        """Refuse the groups that cannot be compiled even alone; all where none is such."""

        def attempt(units: Sequence[int]) -> MizzenError | None:
            lowered, _ = self._lowered(extract(part.graph, units))
            if lowered.sequence is None:
                return None  # it is only complete with its neighbours
            try:
                program(lowered.sequence, self.configuration)
            except MizzenError as why:
                return why
            return None

        alone = RefusalSearch(groups, attempt).alone(groups) if len(groups) > 1 else {}
        general = reason_of_error(error)
        found = {group: reason_of_error(why) for group, why in alone.items()}
        return RegionRefusal(found or dict.fromkeys(groups, general), general)


def numbered(graph: Graph) -> tuple[Graph, tuple[Operation, ...]]:
    """Return a copy whose origins are the places of operations among those that come with it."""
    copy, values = Graph(graph.name), dict[Value, Value]()
    for value in graph.inputs:
        values[value] = copy.add_input(value.type, value.name)
    operations = tuple(graph.sorted())
    for place, operation in enumerate(operations):
        made = copy.add(
            operation.kind,
            [values[operand] for operand in operation.operands],
            [value.type for value in operation.results],
            operation.attributes,
            origin=Origin(operator=place),
            group=operation.group,
        )
        for value, own in zip(operation.results, made.results, strict=True):
            own.name = value.name
            values[value] = own
    copy.set_outputs(values[value] for value in graph.outputs)
    return copy, operations


def origins_of(program: Judged, operations: Sequence[Operation]) -> dict[int, Origin]:
    """Return the user's operator of each command, by byte offset in the stream."""
    return {
        offset: origin
        for offset, place in program.program.origins.items()
        if place.operator is not None and (origin := operations[place.operator].origin)
    }


def groups_of_states(graph: Graph) -> list[int]:
    """Return the groups that read or write variables."""
    on_variables = (operation for operation in graph if isinstance(operation, OfVariable))
    return sorted({each.group for each in on_variables if each.group is not None})


def without_initial(state: State) -> Reason | None:
    """Return why a runtime cannot keep a state: nothing says what it starts with."""
    if state.initial is not None:
        return None
    return Reason(
        "variables",
        f"variable {state.name} has no initial value",
        help="make the variable an input, and what is written to it an output",
        source=RULES,
    )


def reason_of(refusal: Refusal) -> Reason:
    """Return a rule's reason for which an operation is on the CPU."""
    return Reason(
        "no-rule",
        f"the NPU does not compute this {refusal.operation.kind}: {refusal.reason}",
        help="change the operator as `mizzen targets` lists, or leave it on the CPU",
        source=RULES,
    )


def reason_of_error(error: MizzenError) -> Reason:
    """Return the reason for which no program was made of what rules take."""
    found = error.diagnostic
    rule = RULE if found.code == HAZARD else "no-schedule"
    return Reason(rule, found.message, help=found.help or "", source=found.rule or RULES)
