"""Programs whose weights are in a file beside them: ExecuTorch's runtime, its reader, and ours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer import ptd
from mizzen.package.device import DeviceProgram, DeviceTensor, KernelCall, NpuCall, TensorArgument
from mizzen.package.executorch.joining import keys_elsewhere
from mizzen.package.executorch.writing import write_in_two

from .executorch_oracle import imported
from .test_writing import npu_program

REAL = np.dtype(np.float32)
DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.tflite"
INPUT = np.array([[1.0, -2.0, 0.5, 4.0]], np.float32)


def scaled(weights: list[float], kernel: str = "aten::mul.Tensor") -> DeviceProgram:
    """Return a program that multiplies by weights, and adds them."""
    tensors = (
        DeviceTensor("x", (1, 4), REAL),
        DeviceTensor("w", (4,), REAL, data=np.array(weights, np.float32)),
        DeviceTensor("m", (1, 4), REAL),
        DeviceTensor("y", (1, 4), REAL),
    )
    sides = (("self", TensorArgument(0)), ("other", TensorArgument(1)))
    added = (("self", TensorArgument(2)), ("other", TensorArgument(1)), ("alpha", 1))
    calls = (KernelCall(kernel, sides, (2,)), KernelCall("aten::add.Tensor", added, (3,)))
    return DeviceProgram("program", None, tensors, (0,), (3,), calls)


def executed(folder: Path, program: bytes, data: bytes) -> Any:
    """Return what ExecuTorch's own runtime makes of the input."""
    torch = imported("torch")
    runtime = imported("executorch.runtime").Runtime.get()
    (folder / "net.ptd").write_bytes(data)
    loaded = runtime.load_program(program, data_path=folder / "net.ptd")
    return loaded.load_method("forward").execute([torch.from_numpy(INPUT)])[0].numpy()


def test_the_stock_runtime_gives_the_numbers_of_the_program_in_one(tmp_path: Path) -> None:
    whole = scaled([2.0, 3.0, 5.0, 7.0])
    parts = write_in_two(whole)
    found = executed(tmp_path, parts.program, parts.data)
    np.testing.assert_array_equal(found, INPUT * [2, 3, 5, 7] + [2, 3, 5, 7])


def test_other_weights_need_no_other_program(tmp_path: Path) -> None:
    before, after = (write_in_two(scaled(each)) for each in ([1.0] * 4, [2.0, 3.0, 5.0, 7.0]))
    assert before.program == after.program
    assert before.data != after.data
    found = executed(tmp_path, before.program, after.data)
    np.testing.assert_array_equal(found, INPUT * [2, 3, 5, 7] + [2, 3, 5, 7])


def test_weights_of_another_program_are_not_taken(tmp_path: Path) -> None:
    program = write_in_two(scaled([1.0] * 4)).program
    other = write_in_two(scaled([1.0] * 4, "aten::div.Tensor")).data
    with pytest.raises(RuntimeError):
        executed(tmp_path, program, other)
    (tmp_path / "net.pte").write_bytes(program)
    with pytest.raises(MizzenError) as caught:
        mizzen.load(tmp_path / "net.pte", ptd=[tmp_path / "net.ptd"])
    assert caught.value.diagnostic.code == "E172"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of ExecuTorch's own use of resources
def test_executorchs_own_reader_finds_contents_and_layouts() -> None:
    serializer = imported("executorch.extension.flat_tensor.serialize.serialize")
    parts = write_in_two(scaled([2.0, 3.0, 5.0, 7.0]))
    payload = serializer.FlatTensorSerializer().deserialize(imported_cord(parts.data))
    (entry,) = payload.named_data.values()
    held = np.frombuffer(bytes(payload.buffers[entry.buffer_index]), np.float32)
    np.testing.assert_array_equal(held, [2, 3, 5, 7])
    assert list(entry.tensor_layout.sizes) == [4]


def imported_cord(data: bytes) -> Any:
    """Return bytes as ExecuTorch's reader takes them."""
    return imported("executorch.exir._serialize._cord").Cord(data)


def test_a_delegate_names_its_weights() -> None:
    parts = write_in_two(npu_program())
    (key,) = keys_elsewhere(parts.program, "net.pte")
    contents = ptd.named_data(parts.data, "net.ptd")
    assert contents == {key: bytes(range(32))}
    assert bytes(range(32)) not in parts.program


def changed_weights(program: DeviceProgram) -> DeviceProgram:
    calls = [
        replace(call, read_only=bytes(len(call.read_only))) if isinstance(call, NpuCall) else call
        for call in program.calls
    ]
    return replace(program, calls=tuple(calls))


def test_a_delegates_name_is_of_the_stream_and_not_of_the_weights() -> None:
    before = write_in_two(npu_program())
    after = write_in_two(changed_weights(npu_program()))
    assert before.program == after.program
    assert after.data != before.data


def test_saved_in_two_it_gives_the_numbers_of_one(tmp_path: Path) -> None:
    artifact = mizzen.compile(DIGITS, accelerator="ethos-u55-128")
    artifact.save(tmp_path / "one.pte")
    artifact.save(tmp_path / "two.pte", ptd=tmp_path / "weights.ptd")
    one, two = mizzen.load(tmp_path / "one.pte"), mizzen.load(tmp_path / "two.pte")
    inputs = np.random.default_rng(3).integers(-128, 128, (4, 8, 8, 1)).astype(np.int8)
    np.testing.assert_array_equal(two.run(inputs), one.run(inputs))
    (weights,) = ptd.named_data((tmp_path / "weights.ptd").read_bytes(), "weights.ptd").values()
    assert weights in (tmp_path / "one.pte").read_bytes()
    assert weights not in (tmp_path / "two.pte").read_bytes()


@pytest.mark.parametrize(("name", "data"), [("net.tflite", "net.ptd"), ("net.pte", "net.bin")])
def test_another_ending_is_refused(tmp_path: Path, name: str, data: str) -> None:
    artifact = mizzen.load(DIGITS)
    with pytest.raises(MizzenError) as caught:
        artifact.save(tmp_path / name, ptd=tmp_path / data)
    assert str(caught.value) == (
        "error[E824]: weights in a file of their own are for a program .pte that is made here, "
        f"with a file .ptd beside it, not for digits.tflite as {Path(name).suffix} with "
        f"{Path(data).suffix}\n"
        "  help artifact.save('net.pte', ptd='net.ptd') of what mizzen.compile gives"
    )
