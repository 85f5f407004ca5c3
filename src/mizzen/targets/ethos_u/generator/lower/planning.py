"""Which node gives a value: a rule for what gives it, with as much of what follows as fits.

A rule is a function by the class of the operation that it starts from. It is given a site: that
operation, and the RESCALEs, CLAMPs and TABLEs between its result and the value that is asked for.
What does not fit into one NPU operation is computed by a second one that carries it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from mizzen.diagnostics import Origin
from mizzen.graph import Operation, Value
from mizzen.ops.control_flow import Identity
from mizzen.ops.data_layout import Reshape
from mizzen.ops.type_conversion import Rescale
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node, pixels
from mizzen.targets.ethos_u.generator.lower.finish import WIDE, Finish, chain, finish_of, number
from mizzen.targets.ethos_u.generator.lower.refusing import NoFormError, need
from mizzen.targets.ethos_u.generator.lower.views import View

NOWHERE = Origin("network")


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """What a rule is asked for.

    root     the value from which the node starts
    steps    what is between it and `value`, and becomes the finish
    outputs  values that must be written, whoever reads them
    """

    value: Value
    root: Value
    steps: tuple[Operation, ...]
    outputs: Collection[Value]

    @property
    def operation(self) -> Operation:
        """The operation that gives the root."""
        assert self.root.producer is not None
        return self.root.producer

    @property
    def origin(self) -> Origin:
        """Where the node comes from."""
        for operation in (self.root.producer, self.value.producer):
            if operation is not None and operation.origin is not None:
                return operation.origin
        return NOWHERE

    def finish(self, *, scales: bool) -> Finish:
        """Return the steps as a finish."""
        return finish_of(self.steps, self.root, scales=scales)

    def node(
        self,
        reads: Sequence[Value],
        write: Callable[[Emitter, View], None],
        operations: Sequence[Operation] = (),
    ) -> Node:
        """Return a node that writes the root's elements; `write` is given where, in its shape."""

        def emit(emitter: Emitter) -> None:
            place = emitter.target(self.value)
            view = place.reshaped(self.root.shape)
            if view is not None and pixels(view):
                write(emitter, view)
                return
            made = emitter.tensor(self.value.name, self.root.shape, emitter.dtype(place))
            write(emitter, made)
            shaped = made.reshaped(self.value.shape)
            assert shaped is not None
            emitter.copy(shaped, place, self.origin)

        own = (self.root.producer,) if self.root.producer is not None and operations == () else ()
        return Node(self.value, tuple(reads), (*own, *operations, *self.steps), emit)


Rule = Callable[[Site], Node]
RULES: dict[type[Operation], Rule] = {}
"""By the class of the operation that gives the root."""

Carrier = Callable[[Site], Node]


def rule(*kinds: type[Operation]) -> Callable[[Rule], Rule]:
    """Register the rule of some classes of operations."""

    def register(function: Rule) -> Rule:
        for kind in kinds:
            RULES[kind] = function
        return function

    return register


def input_zero(site: Site) -> int:
    """Return the zero point of what a carrier reads: that of its scale, if it has one."""
    changing = (step for step in site.steps if not isinstance(step, Identity | Reshape))
    first = next(changing, None)
    narrow = isinstance(first, Rescale) and first.input.dtype not in WIDE
    return number(first.input_zp) if narrow and isinstance(first, Rescale) else 0


def node_of(value: Value, outputs: Collection[Value], carry: Carrier) -> Node:
    """Return the node of a value. Raises NoFormError if no rule has one."""
    steps = chain(value, tuple(outputs))
    root = steps[0].operand if steps else value
    taken, first, error = _longest(root, steps, outputs, carry)
    if first is not None and taken == len(steps):
        return first
    for start in range(taken, len(steps)):
        middle = steps[start].operand
        try:
            return carry(Site(value, middle, tuple(steps[start:]), outputs))
        except NoFormError as other:
            error = other
    assert error is not None
    raise error


def _longest(
    root: Value, steps: Sequence[Operation], outputs: Collection[Value], carry: Carrier
) -> tuple[int, Node | None, NoFormError | None]:
    """Return how many steps the root's rule takes at most, and its node; why it takes no more."""
    found = RULES.get(type(root.producer)) if root.producer is not None else None
    error: NoFormError | None = None
    for count in range(len(steps), -1, -1):
        value = steps[count - 1].result if count else root
        site = Site(value, root, tuple(steps[:count]), outputs)
        try:
            if found is not None:
                return count, found(site), error
            need(count > 0, _unknown(root))
            return count, carry(site), error
        except NoFormError as other:
            error = other
    return 0, None, error


def _unknown(root: Value) -> str:
    kind = root.producer.kind if root.producer is not None else "an input"
    return f"no rule has a form of {kind}"
