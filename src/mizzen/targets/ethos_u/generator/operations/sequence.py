"""Operations in an order that is right, over the tensors that they hand on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mizzen.targets.ethos_u.generator.operations.maps import Role, Tensor
from mizzen.targets.ethos_u.generator.operations.operations import (
    Operation,
    tensor_written,
    tensors_read,
)
from mizzen.targets.ethos_u.generator.operations.text import SequenceText


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """A program before it is scheduled.

    inputs, outputs  indices of tensors, in the order of the program's interface; states are among
                     the inputs
    """

    tensors: tuple[Tensor, ...]
    operations: tuple[Operation, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def states(self) -> tuple[int, ...]:
        """Indices of the tensors that go on from one run to the next."""
        roles = (tensor.role for tensor in self.tensors)
        return tuple(index for index, role in enumerate(roles) if role is Role.STATE)

    def lifetimes(self) -> list[tuple[int, int]]:
        """Return for each tensor the first and the last operation between which it holds something.

        Inputs and states hold something from operation 0 on, outputs and states up to the last; of
        what is neither read nor written it is (0, -1).
        """
        last = len(self.operations) - 1
        spans = [(len(self.operations), -1)] * len(self.tensors)
        for index, operation in enumerate(self.operations):
            for tensor in (*tensors_read(operation), tensor_written(operation)):
                first, _ = spans[tensor]
                spans[tensor] = min(first, index), index
        for tensor in self.inputs:
            spans[tensor] = 0, max(spans[tensor][1], 0)
        for tensor in (*self.outputs, *self.states):
            spans[tensor] = min(spans[tensor][0], last), last
        return [span if span[1] >= 0 else (0, -1) for span in spans]

    def __str__(self) -> str:
        """Return its text; `operations.text` says of what form."""
        return str(SequenceText(self.tensors, self.operations, self.inputs, self.outputs))


Changes = dict[int, tuple[Operation, ...]]
"""What comes in the place of operations, by their index."""


def replaced(sequence: Sequence, changes: Changes, **more: object) -> Sequence:
    """Return a sequence with others for some of its operations; `more` are fields of it."""
    operations = tuple(
        new for index, old in enumerate(sequence.operations) for new in changes.get(index, (old,))
    )
    return replace(sequence, operations=operations, **more)


def rewritten(sequence: Sequence, rewrite: Callable[[Sequence, int], Sequence]) -> Sequence:
    """Return a sequence with an operation rewritten as often as that changes it, one by one.

    rewrite  gives the same sequence where it has nothing to change at an index
    """
    index = 0
    while index < len(sequence.operations):
        other = rewrite(sequence, index)
        index += other is sequence
        sequence = other
    return sequence
