"""Operations without those whose results are never read."""

from __future__ import annotations

from dataclasses import replace

from mizzen.targets.ethos_u.generator.operations import (
    Operation,
    Role,
    Sequence,
    tensor_written,
    tensors_read,
)


def needed(sequence: Sequence) -> Sequence:
    """Return a sequence without what is written to tensors that are not read later."""
    read = {*sequence.outputs, *sequence.states}
    kept: list[Operation] = []
    for operation in reversed(sequence.operations):
        target = tensor_written(operation)
        if target in read or sequence.tensors[target].role is not Role.SCRATCH:
            kept.append(operation)
            read.update(tensors_read(operation))
    if len(kept) == len(sequence.operations):
        return sequence
    return replace(sequence, operations=tuple(reversed(kept)))
