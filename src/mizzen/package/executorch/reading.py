"""ExecuTorch programs taken apart, as plain data: values, instructions, delegates.

A file is data from outside: every index is checked, and what is read has no more elements than the
file or its planned memory has room for. Nothing is executed, and what a kernel or a delegate means
is not asked here.

Ref: ExecuTorch 1.5, schema/program.fbs; runtime/executor/tensor_parser_portable.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError, fail
from mizzen.flatbuffer import Member, Record
from mizzen.flatbuffer.pte import DTYPES, Location, PteFile, Shape, split, subsegments

FORWARD = "forward"
_EXTERNAL = 1

MOST_MEMORY_BYTES = 1 << 32
"""Most bytes that a program may plan: what a processor of 32 bits can address."""


@dataclass(frozen=True, slots=True)
class PlannedPlace:
    """Where a tensor lies in the planned memory: all memories of a program, one after another."""

    offset_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class PteTensor:
    """A tensor.

    shape      in the order of its dimensions
    dim_order  dimensions from the slowest to the fastest in memory
    place      None for a constant, and for one that the program's caller brings
    data       ``[*stored_shape]``: of a constant, or what a state starts with; None of others
    name       what the file calls it; empty where it does not
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    dim_order: tuple[int, ...]
    place: PlannedPlace | None
    data: npt.NDArray[Any] | None
    name: str = ""

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """Its extents as they follow one another in memory."""
        return tuple(self.shape[axis] for axis in self.dim_order)

    @property
    def is_constant(self) -> bool:
        """Whether it is the same in every call."""
        return self.data is not None and self.place is None

    @property
    def size_bytes(self) -> int:
        """Bytes of the tensor, densely packed."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class Tensors:
    """A list of tensors, by the places of their values; None is one that is left out."""

    places: tuple[int | None, ...]


Scalar = bool | int | float | str | None
Value = PteTensor | Tensors | Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class CallKernel:
    """Call a kernel, by its name and overload; arguments are places of values."""

    kernel: str
    arguments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CallDelegate:
    """Call a delegate, by its place; arguments are places of values: what it takes, then gives."""

    delegate: int
    arguments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """Make a value another."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class JumpFalse:
    """Go on at another instruction, if a value is false."""

    condition: int
    target: int


@dataclass(frozen=True, slots=True)
class Free:
    """Give up the memory of a value."""

    value: int


Instruction = CallKernel | CallDelegate | Move | JumpFalse | Free


@dataclass(frozen=True, slots=True, eq=False)
class Delegate:
    """What a backend was given: its name, the payload, and options by their names."""

    backend: str
    payload: bytes
    options: Mapping[str, bytes]


@dataclass(frozen=True, slots=True, eq=False)
class PteProgram:
    """One method of a program.

    inputs, outputs   places of values
    memory_bytes      size of the planned memory
    named             data by name: contents of delegates' external blocks
    """

    method: str
    values: tuple[Value, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    instructions: tuple[Instruction, ...]
    delegates: tuple[Delegate, ...]
    memory_bytes: int
    named: Mapping[str, bytes]


def read(data: bytes, name: str) -> PteProgram:
    """Read a program; `name` is what diagnostics call it.

    E101, E102 and E173 for a file that is none or is damaged, E172 for one whose data is in another
    file, E176 for a type that NumPy does not have, E178 for shapes that are not static, E179 where
    it is not clear which method is meant.
    """
    return _Reading(split(data, name), name).program()


def references(data: bytes, name: str) -> tuple[frozenset[str], tuple[Delegate, ...]]:
    """Return the names of data that tensors of a program need and it has not, and its delegates.

    Raises as `read`, but for E172 and E176.
    """
    return _Reading(split(data, name), name).references()


def memories(data: bytes, name: str) -> int:
    """Return how many planned memories a program has. Raises as `read`."""
    sizes = _method(split(data, name).program, name)["non_const_buffer_sizes"]
    return 0 if sizes is None else max(len(sizes) - 1, 0)


class _Reading:
    def __init__(self, file: PteFile, name: str) -> None:
        self._file = file
        self._name = name
        self._plan = _method(file.program, name)
        self._named = {
            entry["key"] or "": self._segment(entry["segment_index"], "named data")
            for entry in file.program["named_data"] or ()
        }
        self._constants = self._buffers()
        self._starts = [
            part
            for segment in (file.program["mutable_data_segments"] or ())[:1]
            for part in subsegments(file, segment, name)
        ]
        self._memories = self._bases()

    def program(self) -> PteProgram:
        """Return the program, checked."""
        records: list[Record] = self._plan["values"] or []
        members = [self._member(record, place) for place, record in enumerate(records)]
        values = tuple(self._value(member, members, place) for place, member in enumerate(members))
        return PteProgram(
            method=self._plan["name"] or "",
            values=values,
            inputs=self._tensors(self._plan["inputs"], values, "an input"),
            outputs=self._tensors(self._plan["outputs"], values, "an output"),
            instructions=tuple(self._instructions(len(values))),
            delegates=tuple(self._delegate(delegate) for delegate in self._plan["delegates"] or ()),
            memory_bytes=self._memories[-1],
            named=self._named,
        )

    def references(self) -> tuple[frozenset[str], tuple[Delegate, ...]]:
        """Return the names of tensors' data that must be given, and the delegates."""
        records: list[Record] = self._plan["values"] or []
        members = [self._member(record, place) for place, record in enumerate(records)]
        keys = (_key_elsewhere(member.fields) for member in members if member.table == "Tensor")
        missing = frozenset(key for key in keys if key is not None and key not in self._named)
        delegates = tuple(self._delegate(record) for record in self._plan["delegates"] or ())
        return missing, delegates

    def _buffers(self) -> Sequence[bytes]:
        """Return constants by their places; older files have each in a table of its own."""
        segment = self._file.program["constant_segment"]
        if segment is not None and segment["offsets"] is not None and len(segment["offsets"]):
            return subsegments(self._file, segment, self._name)
        records: list[Record] = self._file.program["constant_buffer"] or []
        return [_bytes(record["storage"]) for record in records]

    def _bases(self) -> list[int]:
        """Return where each planned memory starts, if they lie one after another, and the end."""
        sizes = self._plan["non_const_buffer_sizes"]
        bases, end = [0], 0
        for size in () if sizes is None else sizes.tolist()[1:]:
            if not 0 <= size <= MOST_MEMORY_BYTES - end:
                raise self._damaged(f"a planned memory cannot have {size} bytes")
            bases.append(end)
            end += size + -size % 16
        return [*bases, end]

    def _segment(self, place: int, what: str) -> bytes:
        if place >= len(self._file.segments):
            message = f"{what} must be in one of {len(self._file.segments)} segments, not in"
            raise self._damaged(f"{message} {place}")
        return self._file.segments[place]

    def _member(self, record: Record, place: int) -> Member:
        member = record["val"]
        if not isinstance(member, Member):
            raise self._damaged(f"value {place} must be something")
        return member

    def _value(self, member: Member, members: Sequence[Member], place: int) -> Value:
        fields = member.fields
        match member.table:
            case "Tensor":
                return self._tensor(fields, place)
            case "Int" | "Bool" | "Double" | "String":
                return next(iter(fields.values()))
            case "IntList":
                return tuple(self._integer(item, members) for item in _numbers(fields))
            case "DoubleList" | "BoolList":
                return tuple(_numbers(fields))
            case "TensorList" | "OptionalTensorList":
                places = tuple(None if item == -1 else item for item in _numbers(fields))
                for item in places:
                    if item is not None and not self._is_tensor(item, members):
                        raise self._damaged(
                            f"value {place} must list tensors, and {item} is not one"
                        )
                return Tensors(places)
            case _:
                return None

    def _is_tensor(self, place: int, members: Sequence[Member]) -> bool:
        return 0 <= place < len(members) and members[place].table == "Tensor"

    def _integer(self, place: int, members: Sequence[Member]) -> int:
        if not 0 <= place < len(members) or members[place].table != "Int":
            raise self._damaged(
                f"a list of integers must have integers, and value {place} is not one"
            )
        return members[place].fields["int_val"]

    def _tensor(self, fields: Record, place: int) -> PteTensor:
        dtype = DTYPES.get(fields["scalar_type"])
        if dtype is None:
            raise fail(
                "E176",
                f"{self._name}: value {place} must be of a type that NumPy has, not of scalar type "
                f"{fields['scalar_type']}",
                help="convert it in the network; bfloat16 and quantised types are not executed",
            )
        shape = tuple(_numbers(fields, "sizes"))
        order = tuple(_numbers(fields, "dim_order")) or tuple(range(len(shape)))
        if sorted(order) != list(range(len(shape))) or min(shape, default=0) < 0:
            raise self._damaged(f"value {place} cannot have shape {list(shape)} and its order")
        if fields["storage_offset"]:
            raise self._damaged(f"value {place} cannot start at element {fields['storage_offset']}")
        made = PteTensor(shape, dtype, order, self._place(fields, place), None)
        data = self._data(fields, made, place)
        if fields["shape_dynamism"] != Shape.STATIC and data is None:
            raise fail(
                "E178",
                f"{self._name}: shapes must be static, and that of value {place} is not: "
                f"{list(shape)} is the most that it can be",
                help="export the program without dynamic shapes",
            )
        end = 0 if made.place is None else made.place.offset_bytes + made.size_bytes
        if end > self._memories[-1]:
            raise self._damaged(f"value {place} must lie in {self._memories[-1]} bytes of planned "
                                f"memory, and ends at {end}")  # fmt: skip
        extra: Record | None = fields["extra_tensor_info"]
        name = "" if extra is None else str(extra["fully_qualified_name"] or "")
        return PteTensor(shape, dtype, order, made.place, data, name)

    def _place(self, fields: Record, place: int) -> PlannedPlace | None:
        planned: Record | None = fields["allocation_info"]
        if planned is None:
            return None
        memory: int = planned["memory_id"]
        if not 1 <= memory < len(self._memories) - 1:
            raise self._damaged(f"value {place} must lie in a planned memory, not in {memory}")
        low, high = int(planned["memory_offset_low"]), int(planned["memory_offset_high"])
        return PlannedPlace(self._memories[memory] + (low | high << 32))

    def _data(self, fields: Record, made: PteTensor, place: int) -> npt.NDArray[Any] | None:
        """Return a tensor's constant, or what a state starts with; None if it has neither."""
        index: int = fields["data_buffer_idx"]
        key = _key_elsewhere(fields)
        if key is not None:
            contents = self._elsewhere(key, place)
        elif not index:
            return None
        else:
            held: Sequence[bytes] = self._constants if made.place is None else self._starts
            if index >= len(held):
                raise self._damaged(f"value {place} must have data {index} of {len(held)}")
            contents = held[index]
        if made.size_bytes > len(contents):
            message = f"value {place} must have {made.size_bytes} bytes of data, and has"
            raise self._damaged(f"{message} {len(contents)}")
        flat = np.frombuffer(contents, made.dtype, math.prod(made.shape))
        return flat.reshape(made.stored_shape)

    def _elsewhere(self, key: str, place: int) -> bytes:
        contents = self._named.get(key)
        if contents is None:
            raise fail(
                "E172",
                f"{self._name}: the data of value {place}, {key!r}, must be given, and is in "
                "another file",
                help="give it with --ptd FILE, or put the .ptd beside the program",
            )
        return contents

    def _tensors(self, places: Any, values: Sequence[Value], what: str) -> tuple[int, ...]:
        tensors = () if places is None else tuple(places.tolist())
        for place in tensors:
            if not 0 <= place < len(values) or not isinstance(values[place], PteTensor):
                raise self._damaged(f"{what} must be a tensor, and value {place} is not one")
        return tensors

    def _instructions(self, values: int) -> Iterator[Instruction]:
        chains: list[Record] = self._plan["chains"] or []
        if len(chains) != 1:
            raise self._damaged(f"a method must have one chain of instructions, not {len(chains)}")
        operators: list[Record] = self._plan["operators"] or []
        for place, instruction in enumerate(chains[0]["instructions"] or ()):
            made = self._instruction(instruction["instr_args"], operators, place)
            for used in _used(made):
                if not 0 <= used < values:
                    raise self._damaged(f"instruction {place} must use one of {values} values, "
                                        f"not {used}")  # fmt: skip
            yield made

    def _instruction(self, record: Any, operators: Sequence[Record], place: int) -> Instruction:
        if not isinstance(record, Member):
            raise self._damaged(f"instruction {place} must do something")
        fields = record.fields
        match record.table:
            case "KernelCall":
                index: int = fields["op_index"]
                if not 0 <= index < len(operators):
                    raise self._damaged(f"instruction {place} must call one of {len(operators)} "
                                        f"kernels, not {index}")  # fmt: skip
                operator: Record = operators[index]
                return CallKernel(_full_name(operator), tuple(_numbers(fields, "args")))
            case "DelegateCall":
                index = fields["delegate_index"]
                count = len(self._plan["delegates"] or ())
                if not 0 <= index < count:
                    raise self._damaged(f"instruction {place} must call one of {count} delegates, "
                                        f"not {index}")  # fmt: skip
                return CallDelegate(index, tuple(_numbers(fields, "args")))
            case "MoveCall":
                return Move(fields["move_from"], fields["move_to"])
            case "JumpFalseCall":
                return JumpFalse(fields["cond_value_index"], fields["destination_instruction"])
            case _:
                return Free(fields["value_index"])

    def _delegate(self, record: Record) -> Delegate:
        backend, where = record["id"] or "", record["processed"]
        if where is None:
            raise self._damaged(f"a delegate of {backend} must have a payload")
        if where["location"] == Location.SEGMENT:
            payload = self._segment(where["index"], f"a delegate of {backend}")
        else:
            held: list[Record] = self._file.program["backend_delegate_data"] or []
            if where["index"] >= len(held):
                raise self._damaged(f"a delegate of {backend} must have payload {where['index']} "
                                    f"of {len(held)}")  # fmt: skip
            payload = _bytes(held[where["index"]]["data"])
        options = {
            spec["key"] or "": _bytes(spec["value"]) for spec in record["compile_specs"] or ()
        }
        return Delegate(backend, payload, options)

    def _damaged(self, reason: str) -> MizzenError:
        return fail(
            "E173",
            f"{self._name} must be a whole ExecuTorch program: {reason}",
            rule="ExecuTorch 1.5, schema/program.fbs",
            help="get the file again; it is truncated or its bytes have changed",
        )


def _method(program: Record, name: str) -> Record:
    """Return the method to run: the only one, or ``forward``."""
    plans: list[Record] = program["execution_plan"] or []
    named = [plan for plan in plans if plan["name"] == FORWARD]
    chosen = plans if len(plans) == 1 else named
    if len(chosen) != 1:
        methods = ", ".join(repr(plan["name"]) for plan in plans) or "none"
        raise fail(
            "E179",
            f"{name} must have one method, or one that is {FORWARD!r}, and has {methods}",
            help="export the method that you want as forward",
        )
    return chosen[0]


def _key_elsewhere(fields: Record) -> str | None:
    """Return the name of a tensor's data where that is in no segment of constants."""
    extra: Record = fields["extra_tensor_info"] or {}
    if extra.get("location") != _EXTERNAL or fields["allocation_info"] is not None:
        return None
    return str(extra["fully_qualified_name"] or "")


def _numbers(fields: Record, field: str = "items") -> list[Any]:
    held = fields[field]
    return [] if held is None else held.tolist()


def _full_name(operator: Record) -> str:
    name, overload = operator["name"] or "", operator["overload"]
    return f"{name}.{overload}" if overload else name


def _bytes(held: Any) -> bytes:
    return b"" if held is None else held.tobytes()


def _used(instruction: Instruction) -> tuple[int, ...]:
    match instruction:
        case CallKernel(_, arguments) | CallDelegate(_, arguments):
            return arguments
        case Move(source, target):
            return source, target
        case JumpFalse(condition, _):
            return (condition,)
        case Free(value):
            return (value,)
