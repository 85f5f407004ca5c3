"""Which node gives a value: a rule for what gives it, with as much of what follows as fits.

A rule is a function by the class of the operation that it starts from. It is given a site: that
operation, and the RESCALEs, CLAMPs and TABLEs between its result and the value that is asked for.
What does not fit into one NPU operation is computed by a second one that carries it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from mizzen.diagnostics import Origin
from mizzen.graph import Operation, Value
from mizzen.ops.control_flow import Identity
from mizzen.ops.data_layout import Reshape
from mizzen.ops.type_conversion import Rescale
from mizzen.targets.ethos_u.generator.lower.context import NO_ORDERS, Emitter, Node, Orders
from mizzen.targets.ethos_u.generator.lower.finish import (
    WIDE,
    Finish,
    chain,
    finish_of,
    is_inside,
    number,
)
from mizzen.targets.ethos_u.generator.lower.refusing import NoFormError
from mizzen.targets.ethos_u.generator.lower.views import View, pixels
from mizzen.targets.ethos_u.machine.commands_values import Arch

NOWHERE = Origin("network")


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """What a rule is asked for.

    root     the value from which the node starts
    steps    what is between it and `value`, and becomes the finish
    outputs  values that must be written, whoever reads them
    arch     what the NPU is, where a rule uses what not all have
    """

    value: Value
    root: Value
    steps: tuple[Operation, ...]
    outputs: Collection[Value]
    arch: Arch = Arch.U55

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
        *,
        orders: Orders = NO_ORDERS,
        stores: Callable[[View], bool] = pixels,
    ) -> Node:
        """Return a node that writes the root's elements; `write` is given where, in its shape.

        orders  as a node has them
        stores  whether it can write a view
        """

        def emit(emitter: Emitter) -> None:
            place = emitter.target(self.value)
            view = place.reshaped(self.root.shape)
            if view is not None and stores(view):
                write(emitter, view)
                return
            made = emitter.tensor(self.value.name, self.root.shape, emitter.dtype(place))
            write(emitter, made)
            shaped = made.reshaped(self.value.shape)
            assert shaped is not None
            emitter.copy(shaped, place, self.origin)

        own = (self.root.producer,) if self.root.producer is not None and operations == () else ()
        done = (*own, *operations, *self.steps)
        return Node(self.value, tuple(reads), done, emit, orders=orders)

    def stores(self, view: View) -> bool:
        """Whether an operation that reads pixels can write a view: U85 does in any order."""
        return self.arch is Arch.U85 or pixels(view)


Rule = Callable[[Site], Node]
RULES: dict[type[Operation], Rule] = {}
"""By the class of the operation that gives the root; they hold for every Ethos-U."""
RULES_U85: dict[type[Operation], Rule] = {}
"""Those that use what only U85 has. They come first; where they refuse, the others are asked."""

Carrier = Callable[[Site], Node]


def rule(*kinds: type[Operation]) -> Callable[[Rule], Rule]:
    """Register the rule of some classes of operations."""

    def register(function: Rule) -> Rule:
        for kind in kinds:
            RULES[kind] = function
        return function

    return register


def rule_u85(*kinds: type[Operation]) -> Callable[[Rule], Rule]:
    """Register the rule of some classes of operations that U85 alone has."""

    def register(function: Rule) -> Rule:
        for kind in kinds:
            RULES_U85[kind] = function
        return function

    return register


def rules_of(root: Value, arch: Arch) -> list[Rule]:
    """Return the rules of what gives a value, the first to be asked first."""
    if root.producer is None:
        return []
    kind = type(root.producer)
    tables = (RULES_U85, RULES) if arch is Arch.U85 else (RULES,)
    return [table[kind] for table in tables if kind in table]


def input_zero(site: Site) -> int:
    """Return the zero point of what a carrier reads: that of its scale, if it has one."""
    steps = [step for step in site.steps if not isinstance(step, Identity | Reshape)]
    if not steps or is_inside(steps, 1):
        return 0
    first = steps[0]
    narrow = isinstance(first, Rescale) and first.input.dtype not in WIDE
    return number(first.input_zp) if narrow and isinstance(first, Rescale) else 0


def node_of(value: Value, outputs: Collection[Value], carry: Carrier, arch: Arch) -> Node:
    """Return the node of a value. Raises NoFormError if no rule has one."""
    steps = chain(value, tuple(outputs), functions=arch is Arch.U85)
    whole = Site(value, steps[0].operand if steps else value, tuple(steps), outputs, arch)
    taken, first, error = _first_taken(whole, carry)
    if first is not None and taken == len(steps):
        return first
    for start in range(taken, len(steps)):
        if is_inside(steps, start):
            continue
        middle = steps[start].operand
        try:
            return carry(replace(whole, root=middle, steps=whole.steps[start:]))
        except NoFormError as other:
            error = other
    assert error is not None
    raise error


def _first_taken(whole: Site, carry: Carrier) -> tuple[int, Node | None, NoFormError | None]:
    """Return what the first of the root's rules gives that takes it; what the last refused."""
    error: NoFormError | None = None
    for rule in rules_of(whole.root, whole.arch) or [carry]:
        taken, node, error = _longest(whole, rule)
        if node is not None:
            return taken, node, error
    return 0, None, error


def _longest(whole: Site, rule: Rule) -> tuple[int, Node | None, NoFormError | None]:
    """Return how many steps a rule takes at most, and its node; why it takes no more."""
    error: NoFormError | None = None
    least = 0 if rules_of(whole.root, whole.arch) else 1
    for count in range(len(whole.steps), least - 1, -1):
        if is_inside(whole.steps, count):
            continue
        value = whole.steps[count - 1].result if count else whole.root
        try:
            return count, rule(replace(whole, value=value, steps=whole.steps[:count])), error
        except NoFormError as other:
            error = other
    return 0, None, NoFormError(_unknown(whole)) if least else error


def _unknown(whole: Site) -> str:
    made = whole.root.producer
    kind = made.kind if made is not None else "an input"
    elsewhere = whole.arch is not Arch.U85 and type(made) in RULES_U85
    return f"no rule has a form of {kind}{', but Ethos-U85 has one' if elsewhere else ''}"
