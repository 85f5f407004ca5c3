"""Operations of U85 whose results the next one takes block by block, so that they lie nowhere.

The first of a chain is any operation but a resize; each of the others is elementwise, gives as many
elements and reads the result of the one before, which nothing else does. What only scales, clips or
looks up what comes before is an addition of zero there. All is done where the last one was: nothing
before it may write what the others read.

The same operations on the same numbers: exact.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

from mizzen.targets.ethos_u.generator.operations import (
    AS_COMPUTED,
    Box,
    Chain,
    Computation,
    Copy,
    Elementwise,
    Kernel,
    Map,
    OperandScale,
    Operation,
    Pooling,
    Resize,
    Role,
    Scalar,
    Scale,
    Sequence,
    maps_read,
    tensor_written,
    tensors_read,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    ElementwiseMode,
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
UNSCALED = Scale(1, 0)
AS_IT_IS = OperandScale(1, 0)


def chained(sequence: Sequence) -> Sequence:
    """Return a sequence in which results are handed on inside the NPU wherever they can be."""
    search = _Search(sequence)
    chains = {members[-1]: members for members in search.chains()}
    if not chains:
        return sequence
    inside = {index for members in chains.values() for index in members[:-1]}
    operations = [
        Chain(search.links(chains[index])) if index in chains else operation
        for index, operation in enumerate(sequence.operations)
        if index not in inside
    ]
    return replace(sequence, operations=tuple(operations))


class _Search:
    """Which operations can be chains; chains are their indices in order."""

    def __init__(self, sequence: Sequence) -> None:
        self._sequence = sequence
        self._operations = sequence.operations
        self._writers: defaultdict[int, list[int]] = defaultdict(list)
        self._readers: defaultdict[int, list[int]] = defaultdict(list)
        for index, operation in enumerate(sequence.operations):
            self._writers[tensor_written(operation)].append(index)
            for tensor in tensors_read(operation):
                self._readers[tensor].append(index)

    def chains(self) -> list[tuple[int, ...]]:
        """Return chains as long as can be, of two operations at least."""
        by_last: dict[int, tuple[int, ...]] = {}
        for index, operation in enumerate(self._operations):
            if not _may_begin(operation):
                continue
            before = [
                by_last[writer]
                for map_ in maps_read(operation)
                for writer in self._writers[map_.tensor]
                if writer in by_last and self._follows(index, map_, by_last[writer])
            ]
            longest = max(before, key=lambda chain: (len(chain), chain[-1]), default=())
            if longest:
                del by_last[longest[-1]]
            by_last[index] = (*longest, index)
        return [chain for chain in by_last.values() if len(chain) > 1]

    def links(self, chain: tuple[int, ...]) -> tuple[Computation, ...]:
        """Return the links of a chain."""
        first, *others = (self._operations[index] for index in chain)
        assert not isinstance(first, Copy | Chain), "it begins with a computation"
        return first, *(link for link in map(as_link, others) if link is not None)

    def _follows(self, index: int, map_: Map, chain: tuple[int, ...]) -> bool:
        """Whether an operation may take what a chain gives, which it reads through a map."""
        link = as_link(self._operations[index])
        if link is None or len(chain) == MOST_LINKS or not self._is_handed_on(chain[-1], map_):
            return False
        links = (*self.links(chain), link)
        inside = {each.ofm.tensor for each in links[:-1]}
        outside = [each for one in links for each in maps_read(one) if each.tensor not in inside]
        return (
            link.ofm.shape == map_.shape
            and len(outside) <= MOST_MAPS
            and _tables_fit(links)
            and all(self._stays(member, index) for member in chain)
        )

    def _is_handed_on(self, writer: int, map_: Map) -> bool:
        """Whether all that an operation writes, one map of one operation reads as it is."""
        operation, tensor = self._operations[writer], self._sequence.tensors[map_.tensor]
        assert not isinstance(operation, Copy), "it is in a chain"
        own = tensor.role is Role.SCRATCH and map_.tensor not in self._sequence.outputs
        alone = len(self._writers[map_.tensor]) == len(self._readers[map_.tensor]) == 1
        whole = map_.view == operation.ofm.view == Box(map_.tensor, tensor.shape)
        alike = map_.dtype == operation.ofm.dtype and map_.dtype.itemsize <= WIDEST_BYTES
        return own and alone and whole and alike

    def _stays(self, index: int, until: int) -> bool:
        """Whether nothing writes what an operation reads before another one."""
        return not any(
            index < writer < until
            for tensor in tensors_read(self._operations[index])
            for writer in self._writers[tensor]
        )


def _may_begin(operation: Operation) -> bool:
    match operation:
        case Copy() | Chain() | Resize() | Pooling(mode=PoolingModeU85.NONE):
            return False
        case _:
            return operation.order == AS_COMPUTED


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
    sums = pool.mode in (PoolingMode.AVERAGE, PoolingModeU85.SUM)
    selects = pool.mode in (PoolingMode.MAX, PoolingModeU85.MIN) and pool.scale == UNSCALED
    return (
        (sums or selects)
        and pool.kernel == POINT
        and pool.upscale is UpscaleMode.NONE
        and pool.order == AS_COMPUTED
        and pool.ifm.dtype.itemsize <= WIDEST_BYTES
    )
