"""Bytes of an ExecuTorch program from a device's program.

Inputs and outputs have their names as the runtime's attributes have theirs: firmware may ask for
one by it.

One method, ``forward``; one chain of instructions, where an NPU call is a delegate and a kernel
call one of the portable library's; one planned memory. Constants, initial states and payloads are
segments, so that a device can use them where the file lies.

Ref: ExecuTorch 1.5, exir/emit/_emitter.py (arguments of instructions), runtime/executor/method.cpp
and tensor_parser_portable.cpp (what of a record is read).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mizzen.diagnostics import fail
from mizzen.flatbuffer import Member, Record
from mizzen.flatbuffer.ptd import Content, Layout, data_file
from mizzen.flatbuffer.pte import DTYPES, PteFile, ScalarType, join
from mizzen.package.device import (
    Argument,
    DeviceProgram,
    DeviceTensor,
    KernelCall,
    NpuCall,
    TensorArgument,
    TensorsArgument,
    Transfer,
)
from mizzen.package.device.memory import place, tensor_blocks
from mizzen.package.executorch import vela_bin
from mizzen.package.executorch.kernels import KERNELS, Default, Form, Kernel, Parameter
from mizzen.package.executorch.preparing import prepared
from mizzen.package.executorch.values import Values
from mizzen.package.executorch.vela_bin import VelaBin, VelaTensor

METHOD = "forward"
DELEGATE = vela_bin.BACKENDS[0]
"""The name under which ExecuTorch's runtime registers its Ethos-U backend."""

VERSION = 0
MEMORY = 1
"""The planned memory; the runtime counts from one."""

CONSTANT_ALIGNMENT_BYTES = 16
SCALAR_TYPES = {dtype: kind for kind, dtype in DTYPES.items()}

_LEAF = '{"type": null, "context": null, "children_spec": []}'


@dataclass(slots=True)
class _Data:
    """Bytes of a segment, divided; the first part is no tensor's, as a tensor's 0 is none."""

    offsets: list[int] = field(default_factory=lambda: [0])
    data: bytearray = field(default_factory=bytearray)
    places: dict[bytes, int] = field(default_factory=dict[bytes, int])

    def add(self, part: bytes) -> int:
        """Return the place of a part; the same bytes have one."""
        if part not in self.places:
            self.data += bytes(-len(self.data) % CONSTANT_ALIGNMENT_BYTES)
            self.places[part] = len(self.offsets)
            self.offsets.append(len(self.data))
            self.data += part
        return self.places[part]


@dataclass(frozen=True, slots=True)
class InTwo:
    """A program, and what it only reads: `.pte` and `.ptd`."""

    program: bytes
    data: bytes


EXTERNAL = 1
"""Of a tensor whose contents are in another file (TensorDataLocation)."""

KEY_DIGITS = 16


@dataclass(slots=True)
class _Elsewhere:
    """Contents of a file of data, whose names all start with what program they are for."""

    prefix: str
    contents: dict[str, Content] = field(default_factory=dict[str, Content])

    def add(self, name: str, content: Content) -> str:
        """Return the name of contents there."""
        key = f"{self.prefix}.{name}"
        self.contents[key] = content
        return key


def write(program: DeviceProgram) -> bytes:
    """Return a `.pte` of the program.

    E174 for an operator without a kernel, E175 for an NPU call that a delegate cannot be, E176 for
    a tensor of a type that ExecuTorch does not have.
    """
    return _Writing(prepared(program)).file()


def write_in_two(program: DeviceProgram) -> InTwo:
    """Return a `.pte` without weights and constants, and a `.ptd` that has them.

    Their names start with the digest of the program without them. So other weights of the same
    program need no other `.pte`, and a runtime finds none in a file that is of another program.
    Raises as `write`.
    """
    whole = prepared(program)
    nameless = _Writing(whole, _Elsewhere("0" * KEY_DIGITS)).file()
    elsewhere = _Elsewhere(hashlib.sha256(nameless).hexdigest()[:KEY_DIGITS])
    alone = _Writing(whole, elsewhere).file()
    return InTwo(alone, data_file(elsewhere.contents))


class _Writing:
    def __init__(self, program: DeviceProgram, elsewhere: _Elsewhere | None = None) -> None:
        self._elsewhere = elsewhere
        self._program = program
        self._offsets, self._arena_bytes = place(tensor_blocks(program), 0)
        self._initial = {state.read: state.initial for state in program.states}
        self._named = {*program.inputs, *program.outputs}
        self._constants, self._starts = _Data(), _Data()
        self._values = Values(self._tensor)
        self._operators: dict[tuple[str, str], int] = {}
        self._delegates: list[Record] = []
        self._payloads: list[bytes] = []

    def file(self) -> bytes:
        """Return the whole file."""
        inputs = [self._values.tensor(index) for index in self._program.inputs]
        instructions = [self._instruction(call) for call in self._program.calls]
        outputs = [self._values.tensor(index) for index in self._program.outputs]
        segments = [*self._payloads, bytes(self._constants.data), bytes(self._starts.data)]
        constants = {"segment_index": len(segments) - 2, "offsets": self._constants.offsets}
        starts = {"segment_index": len(segments) - 1, "offsets": self._starts.offsets}
        plan: Record = {
            "name": METHOD,
            "container_meta_type": _container(len(inputs), len(outputs)),
            "values": self._values.rows,
            "inputs": inputs,
            "outputs": outputs,
            "chains": [{"inputs": [], "outputs": [], "instructions": instructions}],
            "operators": [{"name": name, "overload": more} for name, more in self._operators],
            "delegates": self._delegates,
            "non_const_buffer_sizes": [0, self._arena_bytes],
        }
        root: Record = {
            "version": VERSION,
            "execution_plan": [plan],
            "constant_buffer": [],
            "backend_delegate_data": [],
            "constant_segment": constants,
            "mutable_data_segments": [starts] if self._initial else [],
            "named_data": [],
        }
        return join(PteFile(root, tuple(segments[: None if self._initial else -1])))

    def _tensor(self, index: int) -> Record:
        tensor = self._program.tensors[index]
        record: Record = {
            "scalar_type": _scalar_type(tensor),
            "sizes": list(tensor.shape),
            "dim_order": list(range(len(tensor.shape))),
        }
        if tensor.data is not None and tensor.size_bytes:
            data = np.ascontiguousarray(tensor.data, tensor.dtype).tobytes()
            return record | self._held(index, data)
        if index in self._named:
            record["extra_tensor_info"] = {"fully_qualified_name": tensor.name}
        offset = self._offsets.get(index, 0)
        record["allocation_info"] = {
            "memory_id": MEMORY,
            "memory_offset_low": offset & 0xFFFFFFFF,
            "memory_offset_high": offset >> 32,
        }
        if index in self._initial:
            first = np.ascontiguousarray(self._initial[index], tensor.dtype)
            record["data_buffer_idx"] = self._starts.add(first.tobytes())
            record["extra_tensor_info"] = {"fully_qualified_name": tensor.name}
        return record

    def _held(self, index: int, data: bytes) -> Record:
        """Return where a constant is: in a segment, or by its name in another file."""
        tensor = self._program.tensors[index]
        if self._elsewhere is None:
            return {"data_buffer_idx": self._constants.add(data)}
        content = Content(data, Layout(_scalar_type(tensor), tensor.shape))
        key = self._elsewhere.add(f"constant_{index}", content)
        return {"extra_tensor_info": {"fully_qualified_name": key, "location": EXTERNAL}}

    def _instruction(self, call: NpuCall | KernelCall) -> Record:
        if isinstance(call, NpuCall):
            args = [self._values.tensor(index) for index in (*call.reads, *call.writes)]
            held = {"delegate_index": self._delegate(call), "args": args}
            return {"instr_args": Member("DelegateCall", held)}
        kernel = KERNELS[call.operator]
        key = (kernel.name, kernel.overload)
        index = self._operators.setdefault(key, len(self._operators))
        args = [*self._arguments(kernel, call), *self._results(kernel, call)]
        return {"instr_args": Member("KernelCall", {"op_index": index, "args": args})}

    def _delegate(self, call: NpuCall) -> int:
        payload = vela_bin.write(
            VelaBin(
                commands=call.payload,
                weights=call.read_only,
                scratch_bytes=call.scratch_bytes,
                inputs=self._transfers((*call.inputs, *call.states)),
                outputs=self._transfers((*call.outputs, *call.states)),
            ),
            self._weights_key(call),
        )
        if payload not in self._payloads:
            self._payloads.append(payload)
        specs = [("output_format", "vela"), ("target", self._program.accelerator or "")]
        self._delegates.append(
            {
                "id": DELEGATE,
                "processed": {"location": 1, "index": self._payloads.index(payload)},
                "compile_specs": [
                    {"key": key, "value": list(value.encode())} for key, value in specs
                ],
            }
        )
        return len(self._delegates) - 1

    def _weights_key(self, call: NpuCall) -> str | None:
        """Return the name of a call's weights in another file; None where it holds them itself."""
        if self._elsewhere is None or not call.read_only:
            return None
        return self._elsewhere.add(f"weights_{len(self._delegates)}", Content(call.read_only))

    def _transfers(self, transfers: Sequence[Transfer]) -> tuple[VelaTensor, ...]:
        tensors = [self._program.tensors[transfer.tensor] for transfer in transfers]
        return tuple(
            VelaTensor(tensor.shape, tensor.dtype.itemsize, transfer.offset_bytes)
            for transfer, tensor in zip(transfers, tensors, strict=True)
        )

    def _arguments(self, kernel: Kernel, call: KernelCall) -> list[int]:
        given = dict(call.arguments)
        return [self._argument(parameter, given, call) for parameter in kernel.parameters]

    def _argument(self, parameter: Parameter, given: dict[str, Argument], call: KernelCall) -> int:
        if parameter.default is Default.SHAPE:
            return self._values.numbers(self._program.tensors[call.writes[0]].shape)
        if parameter.name not in given:
            if parameter.default is None:
                raise KeyError(f"{call.operator} has no {parameter.name}")
            return self._values.number(False if parameter.default is Default.FALSE else None)
        match given[parameter.name]:
            case TensorArgument(index):
                return self._values.tensor(index)
            case TensorsArgument(indices) if parameter.form is Form.SOME_TENSORS:
                return self._values.some_tensors(indices)
            case TensorsArgument(indices):
                return self._values.tensors([index for index in indices if index is not None])
            case tuple(items):
                return self._values.numbers(items, parameter.form is Form.REAL)
            case int() | float() as value if parameter.form is Form.REAL:
                return self._values.real(value)
            case str() as name if parameter.form is Form.TYPE:
                return self._values.number(int(_type_number(np.dtype(name), name)))
            case value:
                return self._values.number(value)

    def _results(self, kernel: Kernel, call: KernelCall) -> list[int]:
        """Return the outputs, and again as what the kernel gives back."""
        if kernel.gives_list:
            return [self._values.tensors(call.writes), self._values.number(None)]
        places = [self._values.tensor(index) for index in call.writes]
        if not kernel.overload:  # it writes to its first argument
            return places
        return [*places, places[0] if len(places) == 1 else self._values.tensors(call.writes)]


def _scalar_type(tensor: DeviceTensor) -> int:
    return int(_type_number(tensor.dtype, tensor.name))


def _type_number(dtype: np.dtype[np.generic], what: str) -> ScalarType:
    type_ = SCALAR_TYPES.get(dtype)
    if type_ is None:
        types = ", ".join(known.name for known in SCALAR_TYPES)
        raise fail(
            "E176",
            f"tensors of an ExecuTorch program must be of {types}, and {what!r} is of {dtype}",
            help="convert it in the network",
        )
    return type_


def _container(inputs: int, outputs: int) -> Record:
    """Say how arguments and results are nested: tuples, as `torch.utils._pytree` writes them."""
    given = _tuple([_LEAF] * inputs)
    named = '{"type": "builtins.dict", "context": "[]", "children_spec": []}'
    return {
        "encoded_inp_str": f"[1, {_tuple([given, named])}]",
        "encoded_out_str": f"[1, {_tuple([_LEAF] * outputs)}]",
    }


def _tuple(children: Sequence[str]) -> str:
    inner = ", ".join(children)
    return f'{{"type": "builtins.tuple", "context": "null", "children_spec": [{inner}]}}'
