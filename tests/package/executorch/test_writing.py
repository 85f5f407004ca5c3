"""Programs with delegates and errors: what ExecuTorch's own reader finds in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError, Origin
from mizzen.package.device import (
    DeviceProgram,
    DeviceTensor,
    KernelCall,
    NpuCall,
    State,
    TensorArgument,
    Transfer,
)
from mizzen.package.executorch import vela_bin
from mizzen.package.executorch.writing import write

from .executorch_oracle import imported, load, plan_of

INT8 = np.dtype(np.int8)
REAL = np.dtype(np.float32)

QUANTIZATION: tuple[tuple[str, Any], ...] = (
    ("scale", 0.5),
    ("zero_point", 3),
    ("quant_min", -128),
    ("quant_max", 127),
    ("dtype", "int8"),
)


def npu_program() -> DeviceProgram:
    """Return a program that quantises, calls the NPU twice, keeps a state, gives two outputs."""
    tensors = (
        DeviceTensor("x", (1, 4), REAL),
        DeviceTensor("q", (1, 4), INT8),
        DeviceTensor("y", (1, 2, 2), INT8),
        DeviceTensor("state", (8,), INT8),
        DeviceTensor("z", (3,), INT8),
        DeviceTensor("out", (3,), REAL),
    )
    payload = b"COP1" + bytes(12)
    return DeviceProgram(
        "program",
        "ethos-u55-128",
        tensors,
        inputs=(0,),
        outputs=(5, 2),
        calls=(
            KernelCall("quantized_decomposed::quantize_per_tensor",
                       (("input", TensorArgument(0)), *QUANTIZATION), (1,)),
            NpuCall(payload, bytes(range(32)), 64, None, None, (Transfer(1, 16),),
                    (Transfer(2, 32),), (Transfer(3, 40),)),
            NpuCall(payload, b"", 16, None, None, (Transfer(2, 0),), (Transfer(4, 4),)),
            KernelCall("quantized_decomposed::dequantize_per_tensor",
                       (("input", TensorArgument(4)), *QUANTIZATION), (5,)),
        ),
        states=(State(3, 3, np.arange(8, dtype=np.int8)),),
    )  # fmt: skip


def test_a_delegate_is_what_the_stock_runtime_takes() -> None:
    data = write(npu_program())
    plan = plan_of(data)
    assert [row.id for row in plan.delegates] == ["EthosUBackend"] * 2
    specs = {row.key: bytes(row.value) for row in plan.delegates[0].compile_specs}
    assert specs == {"output_format": b"vela", "target": b"ethos-u55-128"}
    calls = [row.instr_args for row in plan.chains[0].instructions]
    assert [type(row).__name__ for row in calls] == [
        "KernelCall", "DelegateCall", "DelegateCall", "KernelCall",
    ]  # fmt: skip
    names = [f"{row.name}.{row.overload}" for row in plan.operators]
    assert names == [
        "quantized_decomposed::quantize_per_tensor.out",
        "quantized_decomposed::dequantize_per_tensor.out",
    ]
    shapes = [plan.values[index].val.sizes for index in calls[1].args]
    assert shapes == [[1, 4], [8], [1, 2, 2], [8]]
    assert calls[1].args[1] == calls[1].args[3], "the state is given and taken"


def test_payloads_are_those_of_the_calls_and_aligned() -> None:
    data = write(npu_program())
    at = data.index(b"vela_bin_stream")
    assert at % 16 == 0
    found = vela_bin.read(data[at : data.index(b"vela_end_stream") + 32], "delegate 0")
    assert found.weights == bytes(range(32))
    assert found.scratch_bytes == 64
    assert [(row.size_bytes, row.offset_bytes) for row in found.inputs] == [(4, 16), (8, 40)]
    assert [(row.size_bytes, row.offset_bytes) for row in found.outputs] == [(4, 32), (8, 40)]


def test_the_runtime_verifies_the_program() -> None:
    runtime = imported("executorch.runtime")
    program = runtime.Runtime.get().load_program(
        write(npu_program()), verification=runtime.Verification.InternalConsistency
    )
    assert program.method_names == {"forward"}


def test_tensors_that_live_together_do_not_share_memory() -> None:
    plan = plan_of(write(npu_program()))
    size = plan.non_const_buffer_sizes[1]
    spans: dict[int, tuple[int, int]] = {}
    for index, row in enumerate(plan.values):
        info = getattr(row.val, "allocation_info", None)
        if info is not None:
            bytes_ = int(np.prod(row.val.sizes)) * (4 if row.val.scalar_type == 6 else 1)
            spans[index] = (info.memory_offset_low, info.memory_offset_low + bytes_)
    assert all(0 <= start < end <= size for start, end in spans.values())
    assert all(start % 16 == 0 for start, _ in spans.values())
    tensors = {len(plan.values[index].val.sizes): index for index in spans}
    state, y = tensors[1], tensors[3]  # both are needed to the end
    (low, high), (start, end) = spans[y], spans[plan.outputs[0]]
    assert high <= start or end <= low
    assert state in spans


def test_a_state_starts_as_it_must() -> None:
    pte = imported("executorch.exir._serialize._program").deserialize_pte_binary(
        write(npu_program())
    )
    assert [bytes(row.storage) for row in pte.mutable_data][1] == bytes(range(8))


def test_equal_values_are_kept_once() -> None:
    plan = plan_of(write(npu_program()))
    numbers = [repr(row.val) for row in plan.values if type(row.val).__name__ != "Tensor"]
    assert len(numbers) == len(set(numbers))


ADD = (("self", TensorArgument(0)), ("other", TensorArgument(0)), ("alpha", 1))


def program_of(call: KernelCall | NpuCall, dtype: Any = REAL, accelerator: Any = None) -> bytes:
    tensors = (DeviceTensor("x", (2,), np.dtype(dtype)), DeviceTensor("y", (2,), np.dtype(dtype)))
    return write(DeviceProgram("program", accelerator, tensors, (0,), (1,), (call,)))


def test_the_same_program_gives_the_same_bytes() -> None:
    assert write(npu_program()) == write(npu_program())


def test_runs_without_constants() -> None:
    torch = imported("torch")
    _, method = load(program_of(KernelCall("aten::add.Tensor", ADD, (1,))))
    (found,) = method.execute([torch.tensor([1.0, 2.5])])
    assert found.tolist() == [2.0, 5.0]


def test_names_an_operator_without_a_kernel() -> None:
    call = KernelCall(
        "aten::sort", (), (1,), Origin("net.pt2", 7, "aten::sort", source="net.py:12")
    )
    with pytest.raises(MizzenError) as error:
        program_of(call)
    assert str(error.value) == (
        "error[E174]: every operator on the processor must have a portable kernel of ExecuTorch, "
        "and aten::sort has none\n"
        "  at   net.pt2, net.py:12, operator 7 aten::sort\n"
        "  rule ExecuTorch 1.5.1, kernels/portable/functions.yaml\n"
        "  help write it with other operators, keep it out of the program, or register a kernel of "
        "your own with ExecuTorch and compile with its own tools"
    )


def test_says_what_operators_of_tflite_need() -> None:
    with pytest.raises(MizzenError, match=r"E174(.|\n)*need TFLite Micro: write the artifact as"):
        program_of(KernelCall("tflite::SOFTMAX", (), (1,)))


def test_refuses_a_delegate_of_real_numbers() -> None:
    call = NpuCall(b"COP1", b"", 16, None, None, (Transfer(0, 0),), (Transfer(1, 8),))
    with pytest.raises(MizzenError) as error:
        program_of(call, accelerator="ethos-u55-128")
    assert error.value.diagnostic.code == "E175"
    assert error.value.diagnostic.message == (
        "tensors of a delegate must be of int8, uint8, int16, int32, bool, and 'x' is of float32"
    )


def test_refuses_a_type_that_there_is_not() -> None:
    with pytest.raises(MizzenError) as error:
        program_of(KernelCall("aten::add.Tensor", ADD, (1,)), np.complex64)
    assert error.value.diagnostic.code == "E176"
