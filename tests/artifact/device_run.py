"""Executes a device's program over one arena of bytes, as firmware does: kernels are PyTorch's.

Everything lies where the memory plan has it, so that a plan that lets two tensors share what both
need gives other numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from mizzen.package.device import (
    DeviceProgram,
    KernelCall,
    NpuCall,
    TensorArgument,
    TensorsArgument,
)
from mizzen.package.device.memory import plan
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.machine import driver
from mizzen.targets.ethos_u.machine.program import Program

DTYPES = {
    name: getattr(torch, name)
    for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64")
}
GARBAGE = 0xA5


class DeviceRun:
    """A program with its arena, whose state goes on from call to call."""

    def __init__(self, program: DeviceProgram) -> None:
        self.program = program
        self.plan = plan(program)
        self.arena = np.full(self.plan.arena_bytes, GARBAGE, np.uint8)
        for state in program.states:
            self.write(state.read, state.initial)
        self.simulators = {
            position: _simulator(call)
            for position, call in enumerate(program.calls)
            if isinstance(call, NpuCall)
        }

    def run(self, *inputs: Any) -> list[Any]:
        for index, array in zip(self.program.inputs, inputs, strict=True):
            self.write(index, array)
        for position, call in enumerate(self.program.calls):
            if isinstance(call, NpuCall):
                self._npu(position, call)
            else:
                self._kernel(call)
        outputs = [self.read(index).copy() for index in self.program.outputs]
        following = [self.read(row.write).copy() for row in self.program.states]
        for state, array in zip(self.program.states, following, strict=True):
            self.write(state.read, array)
        return outputs

    def read(self, index: int) -> Any:
        row = self.program.tensors[index]
        if row.data is not None:
            return row.data
        at = self.plan.tensors[index]
        return self.arena[at : at + row.size_bytes].view(row.dtype).reshape(row.shape)

    def write(self, index: int, array: Any) -> None:
        row = self.program.tensors[index]
        assert row.data is None, row.name
        given = np.ascontiguousarray(array)
        assert (given.dtype, given.nbytes) == (row.dtype, row.size_bytes), row
        at = self.plan.tensors[index]
        self.arena[at : at + row.size_bytes] = given.reshape(-1).view(np.uint8)

    def _npu(self, position: int, call: NpuCall) -> None:
        at = self.plan.scratch[position]
        scratch = self.arena[at : at + call.scratch_bytes]
        if call.scratch_offset_bytes is None:
            scratch[:] = GARBAGE
            for row in (*call.inputs, *call.states):
                held = self.read(row.tensor).reshape(-1).view(np.uint8)
                scratch[row.offset_bytes : row.offset_bytes + held.size] = held
        regions = {1: scratch[None]}
        if call.fast_bytes is not None:
            regions[2] = np.zeros((1, call.fast_bytes), np.uint8)
        self.simulators[position].run_in(regions, 1)
        if call.scratch_offset_bytes is None:
            for row in (*call.outputs, *call.states):
                size = self.program.tensors[row.tensor].size_bytes
                held = scratch[row.offset_bytes : row.offset_bytes + size].copy()
                at = self.plan.tensors[row.tensor]
                self.arena[at : at + size] = held

    def _kernel(self, call: KernelCall) -> None:
        namespace, _, name = call.operator.partition("::")
        if namespace == "mizzen":
            (source,) = call.reads
            (output,) = call.writes
            self.write(output, self.read(source).astype(self.program.tensors[output].dtype))
            return
        operator: Any = getattr(torch.ops, namespace)
        base, _, overload = name.partition(".")
        found = getattr(getattr(operator, base), overload or "default")
        rows = {row.name: row for row in found._schema.arguments}
        given = {
            name: self._argument(value)
            for name, value in call.arguments
            if value is not None or rows[name].default_value is not None
        }
        positional = [given.pop(n) if n in given else None
                      for n, row in rows.items() if not row.kwarg_only]  # fmt: skip
        results = found(*positional, **given)
        results = results if isinstance(results, tuple | list) else [results]
        for output, result in zip(call.outputs, results, strict=True):
            if output is not None:
                self.write(output, result.detach().contiguous().numpy())

    def _argument(self, value: Any) -> Any:
        match value:
            case TensorArgument(index):
                return torch.as_tensor(self.read(index).copy())
            case TensorsArgument(indices):
                return [
                    None if index is None else torch.as_tensor(self.read(index).copy())
                    for index in indices
                ]
            case str():
                return DTYPES.get(value, value)
            case tuple():
                return list(value)
            case _:
                return value


def _simulator(call: NpuCall) -> Simulator:
    payload = driver.parse(call.payload)
    sizes = {0: len(call.read_only), 1: call.scratch_bytes, 2: call.fast_bytes}
    return Simulator(
        Program(
            words=payload.words,
            hardware=payload.hardware,
            region_bytes={region: size for region, size in sizes.items() if size is not None},
            constants={0: np.frombuffer(call.read_only, np.uint8)},
            inputs=(),
            outputs=(),
        )
    )
