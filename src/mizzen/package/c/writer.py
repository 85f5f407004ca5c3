"""Write a program as a container."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from mizzen.diagnostics import fail
from mizzen.package.c.layout import (
    ARGUMENT,
    HEADER,
    KERNEL,
    KERNEL_CALL,
    MAGIC,
    MAX_RANK,
    NONE,
    NPU_CALL,
    STATE,
    STEP,
    TABLES,
    TENSOR,
    VERSION,
    WORD_BYTES,
    ArgumentKind,
    ElementType,
    Place,
    Row,
    StepKind,
    kernel_id,
)
from mizzen.package.c.state_order import in_order
from mizzen.package.device import (
    Argument,
    DeviceProgram,
    DeviceTensor,
    KernelCall,
    NpuCall,
    TensorArgument,
    Transfer,
)
from mizzen.package.device.memory import MemoryPlan, aligned, plan

WORD_LIMIT = 1 << 32
NUMBER_LIMIT = 1 << 63

TYPES = {type_.dtype: type_ for type_ in ElementType}


def encode(program: DeviceProgram, npu: tuple[int, int] | None) -> bytes:
    """Return the container of a program whose kernel calls are the runtime's own.

    npu  CONFIG and ID of the NPU that its calls are for; None without calls of one

    Raises E460 for what does not fit the format, E462 for states that take over from one another
    in a circle, or that are given out as they were.
    """
    return _Writer(program, npu).container()


class _Blocks:
    """Bytes that are only read, in place, aligned, one after the other; equal ones are one block.

    NPU calls of one network cut in parts all have the whole network's constants.
    """

    def __init__(self) -> None:
        self.data = bytearray()
        self._places: dict[bytes, int] = {}

    def add(self, block: bytes) -> int:
        """Return where these bytes start among the others, behind which they are put if new."""
        at = self._places.setdefault(block, len(self.data))
        if at == len(self.data):
            self.data += block + bytes(aligned(len(block)) - len(block))
        return at


class _Writer:
    def __init__(self, program: DeviceProgram, npu: tuple[int, int] | None) -> None:
        self._program = program
        self._npu = npu
        self._plan: MemoryPlan = plan(program)
        self._pool: list[int] = []
        self._streams = _Blocks()
        self._constants = _Blocks()

    def container(self) -> bytes:
        """Return it: header, tables, pool, streams, and what is only read, in this order."""
        program = self._program
        of_npu = sum(isinstance(call, NpuCall) for call in program.calls)
        counts = {
            "tensors": len(program.tensors),
            "steps": len(program.calls),
            "npu_calls": of_npu,
            "kernel_calls": len(program.calls) - of_npu,
            "states": len(program.states),
            "kernels": len(self._kernels),
        }
        starts = self._starts(counts)
        inputs, outputs = self._words(program.inputs), self._words(program.outputs)
        tables = self._rows()
        return self._joined(starts, counts, tables, inputs, outputs)

    def _starts(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Return where each table starts."""
        starts: dict[str, int] = {}
        at = HEADER.size_bytes
        for name, table in TABLES.items():
            starts[name] = at
            at += counts[name] * table.size_bytes
        starts["pool"] = at
        return starts

    @property
    def _kernels(self) -> Sequence[str]:
        calls = (call for call in self._program.calls if isinstance(call, KernelCall))
        return list(dict.fromkeys(call.operator for call in calls))

    def _rows(self) -> dict[str, list[tuple[Row, dict[str, int]]]]:
        program = self._program
        npu = [(position, call) for position, call in enumerate(program.calls)
               if isinstance(call, NpuCall)]  # fmt: skip
        kernels = [call for call in program.calls if isinstance(call, KernelCall)]
        return {
            "tensors": [(TENSOR, self._tensor(place)) for place in range(len(program.tensors))],
            "steps": [(STEP, step) for step in self._steps()],
            "npu_calls": [(NPU_CALL, self._npu_call(*numbered)) for numbered in npu],
            "kernel_calls": [(KERNEL_CALL, self._kernel_call(call)) for call in kernels],
            "states": [
                (STATE, {"read": state.read, "write": state.write,
                         "initial_at": self._constants.add(
                             _bytes(state.initial, program.tensors[state.read]))})
                for state in in_order(program)
            ],
            "kernels": [(KERNEL, {"id": kernel_id(name)}) for name in self._kernels],
        }  # fmt: skip

    def _joined(
        self,
        starts: Mapping[str, int],
        counts: Mapping[str, int],
        tables: Mapping[str, Sequence[tuple[Row, dict[str, int]]]],
        inputs: int,
        outputs: int,
    ) -> bytes:
        """Lay everything out, now that the pool's length, and so the place of blocks, is known."""
        streams_at = aligned(starts["pool"] + WORD_BYTES * len(self._pool))
        constants_at = streams_at + len(self._streams.data)
        total = constants_at + len(self._constants.data)
        config, identity = (0, 0) if self._npu is None else self._npu
        header = {
            "magic": MAGIC,
            "version": VERSION,
            "bytes": total,
            "npu_config": config,
            "npu_id": identity,
            "arena_bytes": self._plan.arena_bytes,
            "fast_bytes": max(
                (call.fast_bytes or 0 for call in self._program.calls
                 if isinstance(call, NpuCall)), default=0
            ),
            "inputs": inputs,
            "input_count": len(self._program.inputs),
            "outputs": outputs,
            "output_count": len(self._program.outputs),
            "pool_at": starts["pool"],
            "pool_count": len(self._pool),
            "constants_at": constants_at,
            "program": 0,
        }  # fmt: skip
        for name, count in counts.items():
            header |= {f"{name}_count": count, f"{name}_at": starts[name]}
        packed = bytearray(HEADER.pack(header))
        for name in TABLES:
            for table, values in tables[name]:
                packed += table.pack(_moved(table, values, streams_at, constants_at))
        packed += np.array(self._pool, "<u4").tobytes()
        packed += bytes(streams_at - len(packed)) + self._streams.data
        packed[: HEADER.size_bytes] = HEADER.pack({**header, "program": zlib.crc32(packed)})
        return bytes(packed + self._constants.data)

    def _words(self, words: Iterable[int]) -> int:
        """Put words into the pool; return where they are."""
        listed = list(words)
        for word in listed:
            if not 0 <= word < WORD_LIMIT:
                raise fail("E460", f"a word of a container must fit 32 bits, and is {word}")
        at = len(self._pool)
        self._pool += listed
        return at

    def _tensor(self, index: int) -> dict[str, int]:
        tensor = self._program.tensors[index]
        element = TYPES.get(tensor.dtype.newbyteorder("<"))
        if element is None or len(tensor.shape) > MAX_RANK:
            raise fail(
                "E460",
                f"a tensor of a container must have numbers of at most 64 bits and at most "
                f"{MAX_RANK} extents, and {tensor.name!r} is {tensor.dtype}{list(tensor.shape)}",
            )
        if tensor.data is not None:
            place, at = Place.CONTAINER, self._constants.add(_bytes(tensor.data, tensor))
        else:
            place, at = Place.ARENA, self._plan.tensors.get(index, 0)
        scales = [int(word) for word in np.array(tensor.scales, "<f4").view("<u4")]
        points = [point % WORD_LIMIT for point in tensor.zero_points]
        return {
            "place": place,
            "at": at,
            "bytes": tensor.size_bytes,
            "type": element,
            "rank": len(tensor.shape),
            "extents": self._words(tensor.shape),
            "scale_count": len(scales),
            "scales": self._words([*scales, *points]),
            "axis": tensor.axis,
        }

    def _steps(self) -> Iterable[dict[str, int]]:
        counts = dict.fromkeys(StepKind, 0)
        for call in self._program.calls:
            kind = StepKind.NPU if isinstance(call, NpuCall) else StepKind.KERNEL
            yield {"kind": kind, "index": counts[kind]}
            counts[kind] += 1

    def _npu_call(self, position: int, call: NpuCall) -> dict[str, int]:
        if call.fast_bytes == 0:
            raise fail("E460", "region 2 of a call must be at least one byte, or region 1")
        scratch = self._plan.scratch[position]
        ins = self._copies(scratch, (*call.inputs, *call.states))
        outs = self._copies(scratch, (*call.outputs, *call.states))
        return {
            "payload_at": self._streams.add(call.payload),
            "payload_bytes": len(call.payload),
            "weights_at": self._constants.add(call.read_only),
            "weights_bytes": len(call.read_only),
            "scratch_at": scratch,
            "scratch_bytes": call.scratch_bytes,
            "fast_bytes": call.fast_bytes or 0,
            "copies_in": self._words(ins),
            "copies_in_count": len(ins) // 2,
            "copies_out": self._words(outs),
            "copies_out_count": len(outs) // 2,
        }

    def _copies(self, scratch: int, transfers: Iterable[Transfer]) -> list[int]:
        """Return tensor and offset of those that do not lie in the scratch memory already."""
        return [
            word
            for transfer in transfers
            if self._plan.tensors.get(transfer.tensor) != scratch + transfer.offset_bytes
            for word in (transfer.tensor, transfer.offset_bytes)
        ]

    def _kernel_call(self, call: KernelCall) -> dict[str, int]:
        words = [word for _, argument in call.arguments for word in self._argument(argument)]
        outputs = [NONE if index is None else index for index in call.outputs]
        return {
            "kernel": self._kernels.index(call.operator),
            "arguments": self._words(words),
            "argument_count": len(call.arguments),
            "outputs": self._words(outputs),
            "output_count": len(outputs),
        }

    def _argument(self, argument: Argument) -> Sequence[int]:
        match argument:
            case TensorArgument(index):
                values = (ArgumentKind.TENSOR, index, 0)
            case None:
                values = (ArgumentKind.TENSOR, NONE, 0)
            case tuple():
                words = [word for number in argument for word in number_words(number)]
                values = (ArgumentKind.NUMBERS, self._words(words), len(argument))
            case _:
                values = (ArgumentKind.NUMBER, *number_words(argument))
        fields: dict[str, int] = dict(zip(("kind", "low", "high"), values, strict=True))
        return np.frombuffer(ARGUMENT.pack(fields), "<u4").tolist()


def number_words(number: object) -> tuple[int, int]:
    """Return the two words of a number: 64 bits of an integer, or a float32 twice.

    E460 for a number that is neither, or does not fit.
    """
    match number:
        case float():
            word = int(np.array(number, "<f4").view("<u4"))
            return word, word
        case int() if -NUMBER_LIMIT <= number < NUMBER_LIMIT:
            return number % WORD_LIMIT, (number >> 32) % WORD_LIMIT
        case _:
            raise fail(
                "E460",
                f"a number of a container must be a float32 or an integer of 64 bits, not "
                f"{number!r}",
            )


def _moved(
    table: Row, values: Mapping[str, int], streams_at: int, constants_at: int
) -> Mapping[str, int]:
    """Return a row whose places of blocks count from the container's start."""
    match table.name:
        case "tensor" if values["place"] == Place.CONTAINER:
            starts = {"at": constants_at}
        case "npu_call":
            starts = {"payload_at": streams_at, "weights_at": constants_at}
        case "state":
            starts = {"initial_at": constants_at}
        case _:
            return values
    return {**values, **{name: values[name] + start for name, start in starts.items()}}


def _bytes(data: np.ndarray[tuple[int, ...], np.dtype[np.generic]], tensor: DeviceTensor) -> bytes:
    held = np.ascontiguousarray(data, tensor.dtype.newbyteorder("<")).tobytes()
    if len(held) != tensor.size_bytes:
        raise fail(
            "E460",
            f"contents of {tensor.name!r} must be {tensor.size_bytes} bytes, not {len(held)}",
        )
    return held
