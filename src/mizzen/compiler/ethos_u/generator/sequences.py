"""The operations of an NPU operator: by our own rules, else out of Vela's words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from mizzen.compiler.ethos_u.generator.equality import Array
from mizzen.diagnostics import MizzenError, fail
from mizzen.frontends import tosa
from mizzen.frontends.tflite import read
from mizzen.frontends.tflite.lower import lower as graph_of
from mizzen.graph import Graph, Value
from mizzen.targets.ethos_u.generator.lower import lower
from mizzen.targets.ethos_u.generator.operations import Place, Role, Sequence
from mizzen.targets.ethos_u.generator.schedule import UNLIMITED, Limits
from mizzen.targets.ethos_u.lift import Held, lift
from mizzen.targets.ethos_u.machine.program import Program, TensorAddress
from mizzen.targets.ethos_u.vela.generate import NetworkForm

MOST_OPERATIONS = 8000
"""Of one NPU operator, products as a column each; scheduling more takes minutes."""

BY_RULES = "our own rules"


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """A network that our own rules take whole: its inputs and outputs, and their sequence."""

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    sequence: Sequence


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A sequence, and where of it what must lie.

    lowered     whether our own rules made it of the network, and Vela had no part
    may_differ  whether somebody else decides between its numbers and those of Vela's code
    kept        places, among its inputs, of those that it must leave as they are
    """

    sequence: Sequence
    lowered: bool
    may_differ: bool = False
    places: Limits = UNLIMITED
    kept: frozenset[int] = frozenset()

    @property
    def said(self) -> str:
        """What it was made of, in words."""
        return BY_RULES if self.lowered else "Vela's words, lifted"


@dataclass(frozen=True, eq=False)
class Source:
    """A network as it goes to Vela, which our own rules take if they can.

    outliving  names of inputs of the NPU operator that someone reads behind it
    is_proved  whether what comes is executed beside the reference: where our own rules' numbers are
               not those of Vela's code, that decides. Vela's words, lifted, have Vela's mistakes
    is_shared  whether other NPU operators have the same memory: what it takes and gives stays where
               it is, and our own rules take no part of a network
    inputs     that code of ours is executed with beside Vela's; None if they may be any numbers
    held       bytes of what an NPU operator takes that hold something; without it all do
    """

    data: bytes
    form: NetworkForm
    outliving: frozenset[str] = frozenset()
    is_proved: bool = False
    is_shared: bool = False
    inputs: list[Array] | None = None
    held: Held | None = None

    def made(self, program: Program) -> Made:
        """Return the operations of an NPU operator. E27x if there is no way to them, E579 for many.

        Our own rules make them where they take the network whole, and all of it is the operator.
        """
        found = None if self.is_shared else self._whole and _for_program(self._whole, program)
        if found is None:
            return self.lifted(program)
        sequence, kept = self._scheduled(found, program), self._kept(program)
        return Made(sequence, lowered=True, may_differ=self.is_proved, kept=kept)

    def lifted(self, program: Program) -> Made:
        """Return the operations that Vela's words are. Raises E27x, and E579 for many."""
        places = _places(program) if self.is_shared else UNLIMITED
        sequence, kept = self._scheduled(lift(program, self.held), program), self._kept(program)
        return Made(sequence, lowered=False, places=places, kept=kept)

    def _kept(self, program: Program) -> frozenset[int]:
        """Return the places of the inputs that someone reads behind the operator."""
        return frozenset(at for at, row in enumerate(program.inputs) if row.name in self.outliving)

    def _scheduled(self, sequence: Sequence, program: Program) -> Sequence:
        """Return a sequence as it may be scheduled. E579 for many operations."""
        sequence = _keeping(sequence, program, self.outliving)
        count = len(sequence.operations)
        if count > MOST_OPERATIONS:
            raise fail(
                "E579",
                f"an NPU operator must have at most {MOST_OPERATIONS} operations to be scheduled "
                f"anew in time, and has {count}",
                help="nothing needs doing: it has Vela's code",
            )
        return sequence

    @cached_property
    def _whole(self) -> Whole | None:
        try:
            graph, unsigned = self._graph()
        except MizzenError:
            return None  # what the front-end has no form of, Vela's words say
        lowered = lower(graph, unsigned)
        if lowered.sequence is None or lowered.states:
            return None
        return Whole(tuple(graph.inputs), tuple(graph.outputs), lowered.sequence)

    def _graph(self) -> tuple[Graph, list[Value]]:
        """Return the network as a graph, and the inputs and outputs whose bytes are unsigned."""
        if self.form is NetworkForm.TOSA:
            return tosa.read(self.data, "network"), []
        lowered = graph_of(read(self.data, "network"))
        graph = lowered.graph
        return graph, [row for row in (*graph.inputs, *graph.outputs) if lowered.is_unsigned(row)]


def _for_program(whole: Whole, program: Program) -> Sequence | None:
    """Return a network in the order of a program's interface; None if it has another one."""
    inputs, outputs = (
        list(_order(values, rows))
        for values, rows in ((whole.inputs, program.inputs), (whole.outputs, program.outputs))
    )
    if None in inputs or None in outputs:
        return None
    sequence = whole.sequence
    return replace(
        sequence,
        inputs=tuple(sequence.inputs[place] for place in inputs if place is not None),
        outputs=tuple(sequence.outputs[place] for place in outputs if place is not None),
    )


def _places(program: Program) -> Limits:
    """Return that all of a program's interface must lie where it does."""
    inputs, outputs = (
        tuple(Place(row.region, row.offset) for row in rows)
        for rows in (program.inputs, program.outputs)
    )
    return Limits(inputs=inputs, outputs=outputs)


def _keeping(sequence: Sequence, program: Program, outliving: Collection[str]) -> Sequence:
    """Return a sequence that leaves some of its inputs as they are, as it does states."""
    tensors = list(sequence.tensors)
    for row, tensor in zip(program.inputs, sequence.inputs, strict=True):
        if row.name in outliving:
            tensors[tensor] = replace(tensors[tensor], role=Role.STATE)
    return replace(sequence, tensors=tuple(tensors))


def _order(values: Iterable[Value], rows: Iterable[TensorAddress]) -> Iterator[int | None]:
    """Return the place of each tensor of a program among values; None for one that is not there.

    Names must tell them apart, and all values must be tensors of the program.
    """
    names = [value.name for value in values]
    wanted = [row.name for row in rows]
    if len(set(names)) < len(names) or sorted(names) != sorted(wanted):
        yield None
        return
    yield from (names.index(name) for name in wanted)
