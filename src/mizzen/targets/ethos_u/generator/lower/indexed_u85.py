"""GATHER and SCATTER on U85, whose transfers take lines by index: one for each batch.

What an index outside gives, TOSA leaves open; the machine stops there.

Ref: TOSA 1.0, 2.11; registers of Ethos-U85, DMA0_IDX.
"""

from __future__ import annotations

from mizzen.graph import DType, Value
from mizzen.ops.data_layout import Gather, Scatter
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node
from mizzen.targets.ethos_u.generator.lower.finish import numbers
from mizzen.targets.ethos_u.generator.lower.movement import gather, runs_of
from mizzen.targets.ethos_u.generator.lower.planning import Site, rule_u85
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.views import View, dense_strides
from mizzen.targets.ethos_u.generator.operations import Copy, Lines
from mizzen.targets.ethos_u.machine.commands_values import Layout

MOST_LINES = (1 << 16) - 1
"""Lines of a transfer have 16 bits. Ref: registers of Ethos-U85, DMA0_SIZE0."""

FEW_RUNS = 1
"""Runs of constant indices that are copied as parts."""

INDEX_BYTES = 4
INTEGERS = (DType.INT8, DType.INT16, DType.INT32)


@rule_u85(Gather)
def gathered(site: Site) -> Node:
    """GATHER: of constant indices that are few runs, copies; else lines by index."""
    operation = site.operation
    assert isinstance(operation, Gather)
    values, indices = operation.values, operation.indices
    need(values.dtype in INTEGERS and not site.steps, "its result is only moved")
    if _is_of_few_runs(indices):
        return gather(site)
    need(indices.shape[1] <= MOST_LINES, "its indices are too many")

    def write(emitter: Emitter, target: View) -> None:
        _move(emitter, site, emitter.read(values), target, indices, scatters=False)

    reads = [value for value in (values, indices) if value.constant is None]
    return site.node(reads, write, stores=_takes_lines)


@rule_u85(Scatter)
def scattered(site: Site) -> Node:
    """SCATTER: a copy of what is there, and lines by index over it."""
    operation = site.operation
    assert isinstance(operation, Scatter)
    before, indices, values = operation.values_in, operation.indices, operation.input
    need(values.dtype in INTEGERS and not site.steps, "its result is only moved")
    need(indices.shape[1] <= MOST_LINES, "its indices are too many")

    def write(emitter: Emitter, target: View) -> None:
        _bring(emitter, site, emitter.read(before), target)
        _move(emitter, site, emitter.read(values), target, indices, scatters=True)

    reads = [value for value in (before, indices, values) if value.constant is None]
    return site.node(reads, write, stores=_takes_lines)


def _bring(emitter: Emitter, site: Site, source: View, target: View) -> None:
    """Add a transfer of all elements, or a copy where they do not follow each other."""
    dense = dense_strides(target.shape)
    if source.strides != dense or target.strides != dense:
        emitter.copy(source, target, site.origin)
        return
    size = emitter.dtype(source).itemsize
    for view in (source, target):
        emitter.tensors[view.tensor].layout = Layout.NHWC
    emitter.operations.append(
        Copy(
            site.origin,
            source.tensor,
            size * source.offset,
            target.tensor,
            size * target.offset,
            size * target.elements,
        )
    )


def _is_of_few_runs(indices: Value) -> bool:
    if indices.constant is None:
        return False
    batches = numbers(indices).reshape(indices.shape).tolist()
    return sum(len(list(runs_of(batch))) for batch in batches) <= FEW_RUNS


def _takes_lines(view: View) -> bool:
    """Whether the lines of a view [N, K, C] are pieces, in an order that a transfer has."""
    return view.strides[1] > 0 and (view.shape[2] == 1 or view.strides[2] == 1)


def _move(
    emitter: Emitter,
    site: Site,
    source: View,
    target: View,
    indices: Value,
    *,
    scatters: bool,
) -> None:
    """Add a transfer for each batch; `source` and `target` are [N, lines, elements]."""
    if not _takes_lines(source):
        source = emitter.copied(source, site.origin)
    named = emitter.read(indices)
    if named.strides[1] != 1:
        named = emitter.copied(named, site.origin)
    size = emitter.dtype(source).itemsize
    for view in (source, target, named):
        emitter.tensors[view.tensor].layout = Layout.NHWC
    batches, count = indices.shape
    greatest = (target if scatters else source).shape[1] - 1
    for batch in range(batches):
        one, other = (view.part(0, batch, 1) for view in (source, target))
        first = named.offset + batch * named.strides[0]
        lines = Lines(
            named.tensor,
            INDEX_BYTES * first,
            count,
            (size * source.strides[1], size * target.strides[1]),
            greatest,
            scatters,
        )
        emitter.operations.append(
            Copy(
                site.origin,
                one.tensor,
                size * one.offset,
                other.tensor,
                size * other.offset,
                size * source.shape[2],
                lines,
            )
        )
