"""From a schedule to steps: addresses, parts of the shared buffer, constants, tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin, fail
from mizzen.targets.ethos_u.generator.emit.constants import (
    PackedConstants,
    shared_weights,
    weights_of,
)
from mizzen.targets.ethos_u.generator.emit.early import with_early_tables
from mizzen.targets.ethos_u.generator.emit.forms_u85 import in_u85_form
from mizzen.targets.ethos_u.generator.emit.inplace import overwrites_unread
from mizzen.targets.ethos_u.generator.emit.located import Addresses, Located, handed_on
from mizzen.targets.ethos_u.generator.emit.steps import (
    INTERNAL,
    ChainStep,
    CoreConstants,
    KernelStep,
    NamedLines,
    Purpose,
    QueuedStep,
    Step,
    Stream,
    TransferStep,
)
from mizzen.targets.ethos_u.generator.emit.tables import TableUse, assign
from mizzen.targets.ethos_u.generator.operations import (
    AS_COMPUTED,
    Blob,
    Blocking,
    Computation,
    Convolution,
    Copy,
    Elementwise,
    Fetch,
    Issue,
    Lines,
    Map,
    MatrixProduct,
    Operation,
    Place,
    Pooling,
    Resize,
    Role,
    Scalar,
    Schedule,
    Shape,
    WeightPart,
    links_of,
    tensors_read,
)
from mizzen.targets.ethos_u.generator.shared_buffer import (
    SLOT_BYTES,
    TABLE_SLOTS,
    Core,
    Demand,
    Parts,
    core_of,
    demand_on,
    fitting,
    job_depth_for,
    microblock_of,
    parts_of,
)
from mizzen.targets.ethos_u.machine.commands_values import Arch, PoolingMode
from mizzen.targets.ethos_u.machine.config import Accelerator
from mizzen.targets.ethos_u.machine.program import RegionIndex

STREAM_ALIGNMENT_BYTES = 16
"""Ref: Vela 5.2.0, register_command_stream_generator.py (addresses of weights and scales)."""
TRANSFER_ALIGNMENT_BYTES = {Arch.U55: 16, Arch.U65: 1, Arch.U85: 1}
"""Of both addresses and the length of a transfer between memories.

Ref: Vela 5.2.0, register_command_stream_util.py, check_dma_op."""
INDEX_BYTES = 4
NO_STREAM = Stream(RegionIndex.READ_ONLY, 0, 0)


@dataclass(frozen=True, eq=False)
class PlannedStream:
    """The steps of a stream in order, and the read-only region that they use."""

    steps: tuple[Step, ...]
    constants: npt.NDArray[np.uint8]
    addresses: Addresses


def plan(schedule: Schedule, accelerator: Accelerator) -> PlannedStream:
    """Return what the stream of a schedule does.

    Raises E286 for a block that does not fit the memory inside the NPU, E287 for what registers
    cannot describe, E288 for an output over an input that is still read, E289 for what the schedule
    does not say.
    """
    return _Planner(schedule, accelerator).plan()


class _Planner:
    def __init__(self, schedule: Schedule, accelerator: Accelerator) -> None:
        self._schedule = schedule
        self._accelerator = accelerator
        self._core = core_of(accelerator)
        self._operations = schedule.sequence.operations
        if accelerator.arch is Arch.U85:
            self._operations = tuple(map(in_u85_form, self._operations))
        self._constants = PackedConstants()
        self._shared = shared_weights(schedule)
        sequence = schedule.sequence
        self._addresses = Addresses(sequence.tensors, schedule.layouts, self._places())

    def plan(self) -> PlannedStream:
        """Return all steps."""
        steps = tuple(with_early_tables(self._steps(), self._accelerator.arch))
        for step in steps:
            if isinstance(step, TransferStep):
                _check_transfer(step, self._accelerator.arch)
        return PlannedStream(steps, self._constants.packed(), self._addresses)

    def _operation(self, issue: Issue) -> Operation:
        return self._operations[issue.operation]

    def _places(self) -> tuple[Place | None, ...]:
        """Return the places of tensors, constants among them, packed in the order of use."""
        places = list(self._schedule.places)
        tensors = self._schedule.sequence.tensors
        for item in self._schedule.items:
            if isinstance(item, Fetch):
                continue
            operation = self._operation(item)
            for tensor in tensors_read(operation):
                data = tensors[tensor].data
                if tensors[tensor].role is Role.CONSTANT and data is not None:
                    offset = self._constants.offset_of(data.tobytes())
                    places[tensor] = Place(RegionIndex.READ_ONLY, offset)
        return tuple(places)

    def _steps(self) -> Iterator[Step]:
        uses, origins = iter(self._table_uses()), self._origins()
        for place, item in enumerate(self._schedule.items):
            if isinstance(item, Fetch):
                yield self._fetch(item, origins[place])
                continue
            operation = self._operation(item)
            if isinstance(operation, Copy):
                yield self._copy(operation)
                continue
            links = links_of(operation)
            own = [next(uses) for _ in links]
            for link, use in zip(links, own, strict=True):
                if use is not None and use.is_loaded:
                    yield self._load(link, use)
            yield self._queued(item, links, own)

    def _table_uses(self) -> list[TableUse | None]:
        """Return the slot of the table of each operation, of those of chains one by one."""
        issues = (item for item in self._schedule.items if isinstance(item, Issue))
        links = (link for issue in issues for link in links_of(self._operation(issue)))
        tables = [link.activation.table for link in links]
        data = [None if table is None else table.data for table in tables]
        return assign(data, self._core.keeps_tables)

    def _origins(self) -> list[Origin]:
        """Return of each item where it comes from; of a fetch, where what next uses its blob."""
        origins: list[Origin] = []
        users: dict[int, Origin] = {}
        for item in reversed(self._schedule.items):
            if isinstance(item, Fetch):
                origins.append(users.get(item.blob, Origin()))
                continue
            origin = self._operation(item).origin
            if item.blob is not None:
                users[item.blob] = origin
            origins.append(origin)
        return origins[::-1]

    # Transfers

    def _fetch(self, item: Fetch, origin: Origin) -> TransferStep:
        data = self._schedule.blobs[item.blob].data
        place = self._schedule.stagings[item.staging].place
        length = item.stop - item.start
        source = self._constants.offset_of(data) + item.start
        target = place.offset_bytes + item.offset_bytes + item.start
        return TransferStep(
            Purpose.WEIGHTS,
            origin,
            Stream(RegionIndex.READ_ONLY, source, length),
            Stream(place.region, target, length),
        )

    def _copy(self, operation: Copy) -> TransferStep:
        source = self._addresses.place(operation.source, operation.origin)
        target = self._addresses.place(operation.destination, operation.origin)
        first = source.offset_bytes + operation.source_offset_bytes
        to = target.offset_bytes + operation.destination_offset_bytes
        lines = operation.lines
        lengths = operation.spans_bytes if lines else (self._copied_bytes(operation),) * 2
        return TransferStep(
            Purpose.COPY,
            operation.origin,
            Stream(source.region, first, lengths[0]),
            Stream(target.region, to, lengths[1]),
            None if lines is None else self._named(operation, lines),
        )

    def _named(self, operation: Copy, lines: Lines) -> NamedLines:
        place = self._addresses.place(lines.indices, operation.origin)
        start, length = place.offset_bytes + lines.offset_bytes, INDEX_BYTES * lines.count
        return NamedLines(Stream(place.region, start, length), operation.length_bytes, lines)

    def _copied_bytes(self, operation: Copy) -> int:
        """Return the bytes to copy: after the end of a tensor there is room up to the alignment.

        What is copied there beyond the source belongs to no tensor.
        """
        length, alignment = operation.length_bytes, TRANSFER_ALIGNMENT_BYTES[self._accelerator.arch]
        tensor = self._schedule.sequence.tensors[operation.destination]
        size = tensor.size_bytes(self._schedule.layouts[operation.destination])
        if operation.destination_offset_bytes + length < size:
            return length
        return alignment * -(-length // alignment)

    def _load(self, operation: Computation, use: TableUse) -> TransferStep:
        assert operation.activation.table is not None
        data = operation.activation.table.data
        return TransferStep(
            Purpose.TABLE,
            operation.origin,
            Stream(RegionIndex.READ_ONLY, self._constants.offset_of(data), len(data)),
            Stream(INTERNAL, SLOT_BYTES * use.slot, len(data)),
        )

    # Kernel operations

    def _queued(
        self, issue: Issue, links: tuple[Computation, ...], uses: list[TableUse | None]
    ) -> QueuedStep:
        """Return what the kernel queue has of an issue; all of a chain have the first's block."""
        first, blocking = links[0], issue.blocking
        if blocking is None:
            raise fail("E289", "the schedule must give the operation a block", origin=first.origin)
        parts = self._parts(first, blocking)
        microblock = microblock_of(first, self._accelerator)
        inside = {link.ofm.tensor: buffer for buffer, link in enumerate(links[:-1])}
        steps = tuple(
            self._kernel(issue, link, blocking, parts, microblock, use, inside)
            for link, use in zip(links, uses, strict=True)
        )
        step = steps[0] if len(steps) == 1 else ChainStep(steps)
        _check_tables(step)
        if overwrites_unread(step):
            raise fail(
                "E288",
                "the output must not be written over what later blocks of its operation read",
                origin=step.origin,
                help="give the output a place of its own, or exactly that of the input",
            )
        return step

    def _kernel(
        self,
        issue: Issue,
        operation: Computation,
        blocking: Blocking,
        parts: Parts | None,
        microblock: Shape,
        use: TableUse | None,
        inside: Mapping[int, int],
    ) -> KernelStep:
        part_kernel = isinstance(operation, Convolution) and (
            blocking.part_kernel and not operation.depthwise
        )
        demand = demand_on(operation, self._accelerator)
        ofm, ifm, ifm2 = self._maps(operation, issue.channels, inside)
        blob = None if issue.blob is None else self._schedule.blobs[issue.blob]
        return KernelStep(
            index=issue.operation,
            channels=issue.channels,
            operation=operation,
            blocking=replace(blocking, part_kernel=part_kernel),
            parts=parts,
            microblock=microblock,
            ofm=ofm,
            ifm=ifm,
            ifm2=ifm2,
            job_depth=job_depth_for(demand, part_kernel, self._accelerator),
            constants=self._core_constants(issue, operation),
            table=None if use is None else use.slot,
            clobbers=use is None and not self._core.keeps_tables,
            fast=blob is not None and blob.fast,
            sparse=blob is not None and blob.sparse,
        )

    def _parts(self, operation: Computation, blocking: Blocking) -> Parts | None:
        """Return how the shared buffer is divided; of U85, None. E286 if a block does not fit."""
        demand, part_kernel = demand_on(operation, self._accelerator), blocking.part_kernel
        blocks = np.array([blocking.block])
        if not fitting(demand, blocks, part_kernel, self._accelerator).all():
            memory = "shared buffer" if isinstance(self._core, Core) else "memories"
            raise fail(
                "E286",
                f"a block must fit the {memory} of {self._accelerator.name}, not "
                f"{_by(blocking.block)}",
                origin=operation.origin,
            )
        if isinstance(demand, Demand) and isinstance(self._core, Core):
            return parts_of(demand, blocking.block, part_kernel, self._core)
        return None

    def _maps(
        self,
        operation: Computation,
        channels: tuple[int, int] | None,
        inside: Mapping[int, int],
    ) -> tuple[Located, Located, Located | Scalar | None]:
        """Return output, input and second input; of some channels, only those.

        inside  the buffer of each tensor that an operation of a chain hands to a later one
        """
        depth, origin = operation.ofm.shape[2], operation.origin

        def locate(map_: Map, channels: tuple[int, int] | None = None) -> Located:
            if map_.tensor in inside:
                return handed_on(map_, inside[map_.tensor], channels)
            return self._addresses.locate(map_, origin, channels)

        if channels is not None and operation.order != AS_COMPUTED:
            raise fail("E287", "a result must be computed as a whole to be stored in another order",
                       origin=origin)  # fmt: skip
        ofm = locate(operation.ofm, channels)
        match operation:
            case Elementwise():
                if self._accelerator.arch is not Arch.U85:
                    _check_first(operation)
                first, second = (
                    locate(map_, channels if map_.shape[2] == depth else None)
                    if isinstance(map_, Map)
                    else map_
                    for map_ in (operation.ifm, operation.ifm2)
                )
                assert isinstance(first, Located)
                return ofm, first, second
            case MatrixProduct():
                return ofm, locate(operation.ifm), locate(operation.ifm2)
            case _:
                own = None if _needs_every_channel(operation) else channels
                return ofm, locate(operation.ifm, own), None

    def _core_constants(self, issue: Issue, operation: Computation) -> tuple[CoreConstants, ...]:
        if not isinstance(operation, Convolution):
            return ()
        if issue.blob is None:
            raise fail("E289", "the schedule must give a convolution its constants",
                       origin=operation.origin)  # fmt: skip
        blob = self._schedule.blobs[issue.blob]
        if issue.staging is None:
            cores = tuple(self._in_place(blob, part) for part in blob.cores)
        else:
            place = self._schedule.stagings[issue.staging].place
            offset = place.offset_bytes + issue.offset_bytes
            cores = tuple(_of_core(part, place.region, offset) for part in blob.cores)
        if operation.written is not None:
            place = self._addresses.place(operation.written.tensor, operation.origin)
            streams = zip(cores, operation.written.streams, strict=True)
            cores = tuple(
                replace(core, weights=Stream(place.region, place.offset_bytes + start, length))
                for core, (start, length) in streams
            )
        _check_aligned(cores, operation.origin)
        missing = self._accelerator.cores - len(cores)
        return cores + (CoreConstants(NO_STREAM, NO_STREAM),) * missing

    def _in_place(self, blob: Blob, part: WeightPart) -> CoreConstants:
        """Return where a core's constants are read where constants lie.

        Weights that blobs of other scales have too lie there once, by themselves.
        """
        region = RegionIndex.READ_ONLY
        weights = weights_of(blob, part)
        if weights not in self._shared:
            return _of_core(part, region, self._constants.offset_of(blob.data))
        start = part.scales_offset_bytes
        scales = blob.data[start : start + part.scales_bytes]
        return CoreConstants(
            weights=Stream(region, self._constants.offset_of(weights), len(weights)),
            scales=Stream(region, self._constants.offset_of(scales), len(scales)),
        )


def _check_first(operation: Elementwise) -> None:
    """Refuse with E287 a first operand that is repeated: registers say that of the second alone."""
    shape, wanted = operation.ifm.shape, operation.ofm.shape
    if shape != wanted:
        raise fail(
            "E287",
            "the first operand of an elementwise operation must have the shape of the output, "
            f"{_by(wanted)}, not {_by(shape)}",
            origin=operation.origin,
            help="let the operands change places",
        )


def _check_tables(step: QueuedStep) -> None:
    """Refuse with E287 tables of a chain that the memory for them does not hold together."""
    tables = {
        table.data: link.table_bytes
        for link in step.links
        if (table := link.operation.activation.table) is not None
    }
    spans = list(tables.values())
    for place, span in enumerate(spans):
        if any(span.touches(other) for other in spans[:place]):
            raise fail(
                "E287",
                f"tables of a chain must fit into {TABLE_SLOTS * SLOT_BYTES} bytes together",
                origin=step.origin,
                help="end the chain before",
            )


def _by(shape: Shape) -> str:
    return " x ".join(map(str, shape))


def _needs_every_channel(operation: Convolution | Pooling | Resize) -> bool:
    match operation:
        case Convolution():
            return not operation.depthwise
        case Pooling():
            return operation.mode == PoolingMode.REDUCE_SUM
        case Resize():
            return False


def _of_core(part: WeightPart, region: int, offset: int) -> CoreConstants:
    return CoreConstants(
        weights=Stream(region, offset + part.weights_offset_bytes, part.weights_bytes),
        scales=Stream(region, offset + part.scales_offset_bytes, part.scales_bytes),
    )


def _check_aligned(cores: tuple[CoreConstants, ...], origin: Origin) -> None:
    """Refuse with E287 streams that do not begin where the machine reads them from."""
    for stream in (stream for core in cores for stream in (core.weights, core.scales)):
        if stream.offset_bytes % STREAM_ALIGNMENT_BYTES:
            raise fail(
                "E287",
                f"weights and scales must begin at a multiple of {STREAM_ALIGNMENT_BYTES} bytes, "
                f"not at byte {stream.offset_bytes}",
                origin=origin,
            )


def _check_transfer(step: TransferStep, arch: Arch) -> None:
    """Refuse with E287 a transfer whose ends or length the machine does not take."""
    alignment = TRANSFER_ALIGNMENT_BYTES[arch]
    source, target, length = (
        step.source.offset_bytes,
        step.destination.offset_bytes,
        step.source.length_bytes,
    )
    if source % alignment or target % alignment or length % alignment:
        raise fail(
            "E287",
            f"a transfer of {arch.value} must have ends and a length that are multiples of "
            f"{alignment} bytes, not {length} bytes from {source} to {target}",
            origin=step.origin,
        )
