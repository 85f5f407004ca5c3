"""Operations of U85 whose results the next one takes block by block, so that they lie nowhere.

The first of a chain is any operation but a resize; each of the others is elementwise, gives as many
elements and reads the result of the one before, which nothing else does. What only scales, clips or
looks up what comes before is an addition of zero there. All is done where the last one was: nothing
before it may write what the others read.

The same operations on the same numbers: exact.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import pairwise

from mizzen.targets.ethos_u.generator.arrange.strided import in_bytes, is_dense, is_planes
from mizzen.targets.ethos_u.generator.arrange.views import elements_seen, in_one_row
from mizzen.targets.ethos_u.generator.operations import (
    AS_COMPUTED,
    Box,
    Bytes,
    Chain,
    Computation,
    Convolution,
    Copy,
    Elementwise,
    Kernel,
    Map,
    MatrixProduct,
    OperandScale,
    Operation,
    Pooling,
    Resize,
    Role,
    Scalar,
    Sequence,
    maps_read,
    tensor_written,
    tensors_read,
    with_maps,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    ElementwiseMode,
    Layout,
    PoolingMode,
    PoolingModeU85,
    UpscaleMode,
)

MOST_LINKS = 4
"""[operations] Of a chain. Ref: Vela 5.2.0, regor, ethos_u85.hpp, EthosU85OpGroup."""
MOST_MAPS = 3
"""[maps] That a chain reads of memory, those of its first operation among them. Ref: the same."""
MOST_TABLES_BYTES = 2048
"""Of all tables of a chain: they lie beside each other as long as it takes."""
WIDEST_BYTES = 4
"""Of an element that is handed on. Ref: Vela 5.2.0, whose streams have none of 64 bits."""
POINT = Kernel()
OF_ONE = (PoolingMode.AVERAGE, PoolingMode.MAX, PoolingModeU85.SUM, PoolingModeU85.MIN)
"""Pools that give the element of a window that has one, and scale it."""
AS_IT_IS = OperandScale(1, 0)


def chained(sequence: Sequence) -> Sequence:
    """Return a sequence in which results are handed on inside the NPU wherever they can be."""
    found = _Search(sequence).chains()
    if not found:
        return sequence
    chains = {each.indices[-1]: each.links for each in found}
    inside = {index for each in found for index in each.indices[:-1]}
    operations = tuple(
        Chain(chains[index]) if index in chains else operation
        for index, operation in enumerate(sequence.operations)
        if index not in inside
    )
    return _laid(replace(sequence, operations=operations))


def _laid(sequence: Sequence) -> Sequence:
    """Return a sequence whose tensors that chains see as bytes lie in NHWC."""
    flat = {
        map_.tensor
        for operation in sequence.operations
        if isinstance(operation, Chain)
        for map_ in (*maps_read(operation), operation.ofm)
        if isinstance(map_.view, Bytes)
    }
    tensors = (
        replace(tensor, layout=Layout.NHWC) if index in flat and tensor.layout is None else tensor
        for index, tensor in enumerate(sequence.tensors)
    )
    return replace(sequence, tensors=tuple(tensors))


@dataclass(frozen=True, slots=True)
class _Links:
    """A chain: the operations that it is made of, by their indices, and its links."""

    indices: tuple[int, ...]
    links: tuple[Computation, ...]

    @property
    def result(self) -> Map:
        """What the last link gives."""
        return self.links[-1].ofm

    def rank(self) -> tuple[int, int]:
        """Return a key that is greater the longer a chain is, and the more it multiplies.

        The output unit does what links add while the array is at work.
        """
        first = self.links[0]
        match first:
            case Convolution(weights=weights):
                products = weights.size // len(weights)
            case MatrixProduct(ifm=ifm):
                products = ifm.shape[2]
            case _:
                products = 0
        return len(self.links), products


class _Search:
    """Which operations of a sequence can be chains."""

    def __init__(self, sequence: Sequence) -> None:
        self._sequence = sequence
        self._writers: defaultdict[int, list[int]] = defaultdict(list)
        self._readers: defaultdict[int, list[int]] = defaultdict(list)
        for index, operation in enumerate(sequence.operations):
            self._writers[tensor_written(operation)].append(index)
            for tensor in tensors_read(operation):
                self._readers[tensor].append(index)

    def chains(self) -> list[_Links]:
        """Return chains as long as can be, of two operations at least."""
        by_last: dict[int, _Links] = {}
        for index, operation in enumerate(self._sequence.operations):
            if isinstance(operation, Copy | Chain | Resize) or not _may_begin(operation):
                continue
            longer = [
                following
                for map_ in maps_read(operation)
                for writer in self._writers[map_.tensor]
                if (before := by_last.get(writer))
                and (following := self._following(before, index, map_))
            ]
            alone = _Links((index,), (operation,))
            longest = max(longer, key=_Links.rank, default=alone)
            for before in longest.indices[-2:-1]:
                del by_last[before]
            by_last[index] = longest
        return [chain for chain in by_last.values() if len(chain.links) > 1]

    def _following(self, before: _Links, index: int, map_: Map) -> _Links | None:
        """Return a chain with one link more, which reads its result through a map of its own."""
        link = as_link(self._sequence.operations[index])
        if link is None or map_.shape != link.ofm.shape or not self._is_handed_on(before, map_):
            return None
        link = self._seen(link, before.result, map_)
        if link is None:
            return None
        links = (*before.links, _reading(link, before.result))
        fits = len(links) <= MOST_LINKS and len(maps_read(Chain(links))) <= MOST_MAPS
        stays = all(self._stays(member, index) for member in before.indices)
        if not (fits and stays and _tables_fit(links)):
            return None
        return _Links((*before.indices, index), links)

    def _is_handed_on(self, before: _Links, map_: Map) -> bool:
        """Whether one map of one operation, and nothing else, reads what a chain gives."""
        result, tensor = before.result, self._sequence.tensors[map_.tensor]
        own = tensor.role is Role.SCRATCH and map_.tensor not in self._sequence.outputs
        alone = len(self._writers[map_.tensor]) == len(self._readers[map_.tensor]) == 1
        alike = map_.dtype == result.dtype and map_.dtype.itemsize <= WIDEST_BYTES
        return own and alone and alike and map_.elements == result.elements

    def _seen(self, link: Elementwise, result: Map, map_: Map) -> Elementwise | None:
        """Return a link that sees all its maps in the order in which a result is written.

        map_  through which it reads it
        """
        if result.view == map_.view:
            return link
        tensors = self._sequence.tensors
        written = result.view if is_planes(result.view) else in_bytes(result, tensors)
        if result.shape[2] == map_.shape[2]:
            steps = _steps(written, in_one_row(map_, self._sequence))
        else:
            read = in_bytes(map_, tensors)
            follow = _is_dense(written, result) and _is_dense(read, result)
            steps = (result.shape[1], 1) if follow and _begin_together(written, read) else None
        return steps and elements_seen(link, self._sequence, result.shape, steps)

    def _stays(self, index: int, until: int) -> bool:
        """Whether nothing writes what an operation reads before another one."""
        return not any(
            index < writer < until
            for tensor in tensors_read(self._sequence.operations[index])
            for writer in self._writers[tensor]
        )


def _steps(written: Box | Bytes | None, read: Bytes | None) -> tuple[int, int] | None:
    """Return how many positions of what is read row by row lie between rows, and between columns.

    None where these are not all of its positions.
    """
    if not isinstance(written, Bytes) or read is None or not _begin_together(written, read):
        return None
    (height, width, _), (stride_y, stride_x, _) = written.shape, written.strides_bytes
    unit = read.strides_bytes[1]
    for down, across in ((width, 1), (1, height)):
        rows_follow = height == 1 or stride_y == down * unit
        if rows_follow and (width == 1 or stride_x == across * unit):
            return down, across
    return None


def _is_dense(view: Box | Bytes | None, result: Map) -> bool:
    return isinstance(view, Bytes) and is_dense(view, result.dtype.itemsize)


def _begin_together(one: Box | Bytes | None, other: Box | Bytes | None) -> bool:
    """Whether two views have their first pixel in common."""
    return (
        isinstance(one, Bytes)
        and isinstance(other, Bytes)
        and (one.layout, one.offset_bytes, one.strides_bytes[2])
        == (other.layout, other.offset_bytes, other.strides_bytes[2])
    )


def _reading(link: Elementwise, result: Map) -> Computation:
    """Return a link that reads what the one before gives as that sees it."""
    return with_maps(
        link,
        lambda map_: replace(map_, view=result.view) if map_.tensor == result.tensor else map_,
    )


def _may_begin(operation: Computation) -> bool:
    unpooled = isinstance(operation, Pooling) and operation.mode is PoolingModeU85.NONE
    return operation.order == AS_COMPUTED and not unpooled


def _tables_fit(links: tuple[Computation, ...]) -> bool:
    """Whether tables lie beside each other, and none takes what another one has given at once."""
    tables = [link.activation.table for link in links]
    different = {table.data for table in tables if table is not None}
    following = any(one and other for one, other in pairwise(tables))
    return not following and sum(map(len, different)) <= MOST_TABLES_BYTES


def as_link(operation: Operation) -> Elementwise | None:
    """Return an operation as one that takes blocks of the one before; None where it is none."""
    if isinstance(operation, Elementwise):
        return operation if operation.order == AS_COMPUTED else None
    if not isinstance(operation, Pooling) or not _is_by_element(operation):
        return None
    return Elementwise(
        origin=operation.origin,
        mode=ElementwiseMode.ADD,
        ifm=operation.ifm,
        ifm2=Scalar(0, operation.ifm.dtype),
        ofm=operation.ofm,
        activation=operation.activation,
        scale=operation.scale,
        rounding=operation.rounding,
        operand_scales=(AS_IT_IS, AS_IT_IS),
    )


def _is_by_element(pool: Pooling) -> bool:
    return (
        pool.mode in OF_ONE
        and pool.kernel == POINT
        and pool.upscale is UpscaleMode.NONE
        and pool.order == AS_COMPUTED
        and pool.ifm.dtype.itemsize <= WIDEST_BYTES
    )
