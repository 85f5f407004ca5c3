from __future__ import annotations

import gc
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mizzen.cpu import CpuKernels, tflm
from mizzen.diagnostics import MizzenError, Origin
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.workers import Workers

from .networks import (
    chain,
    counter,
    crashing,
    delay_line,
    endless,
    no_inputs,
    two_outputs,
    unary,
)

pytest.importorskip("tflite_micro", reason="tflite-micro is not installed")

X = np.array([[[1, -2, 3, -4]], [[5, 6, -7, 8]], [[-128, 127, 0, 1]]], np.int8)


def test_each_element_of_a_batch_is_an_inference() -> None:
    absolute, total = CpuKernels(two_outputs()).run([X, X[::-1]])
    assert absolute.tolist() == [[[1, 2, 3, 4]], [[5, 6, 7, 8]], [[127, 127, 0, 1]]]
    assert total.tolist() == [[[-127, 125, 3, -3]], [[10, 12, -14, 16]], [[-127, 125, 3, -3]]]
    assert (total.dtype, total.shape) == (np.int8, (3, 1, 4))


def test_real_networks_equal_tflite_micro_in_this_process(
    model_file: Callable[[str], Path],
) -> None:
    from tflite_micro import runtime

    network = model_file("ad01_int8.tflite").read_bytes()
    inputs = np.random.default_rng(0).integers(-128, 128, (3, 1, 640)).astype(np.int8)
    (outputs,) = CpuKernels(network).run([inputs])
    interpreter: Any = runtime.Interpreter.from_bytes(network, arena_size=1 << 20)
    for one, output in zip(inputs, outputs, strict=True):
        interpreter.set_input(one, 0)
        interpreter.invoke()
        assert np.array_equal(interpreter.get_output(0), output)


def test_shapes_that_kernels_find_must_be_the_networks() -> None:
    net = NetworkBuilder()
    x, y = net.tensor("x", (1, 4, 3), "int8", 0.5), net.tensor("y", (1, 2, 1), "int8", 0.5)
    place = net.constant("place", np.array([2], np.int32))
    net.operator("GATHER", [x, place], [y], ("GatherOptions", {"axis": 2}))
    with pytest.raises(MizzenError) as caught:
        CpuKernels(net.finish([x], [y])).run([np.zeros((2, 1, 4, 3), np.int8)])
    assert str(caught.value) == (
        'error[E707]: TFLite Micro\'s kernels must give "y" as INT8 [1, 2, 1], as the network '
        "says, but give int8 [1, 4, 1]\n  help the network is damaged; convert it again"
    )


def test_outputs_belong_to_the_caller() -> None:
    kernels = CpuKernels(unary("ABS"))
    (first,) = kernels.run([X])
    first[:] = 0
    assert kernels.run([X])[0].tolist() != first.tolist()


def test_a_network_without_inputs_needs_a_batch() -> None:
    (outputs,) = CpuKernels(no_inputs()).run([], batch=2)
    assert outputs.tolist() == [[[2, 3]], [[2, 3]]]


def test_a_scalar_is_an_array_without_extents() -> None:
    (outputs,) = CpuKernels(unary("ABS", ())).run([np.array([-3, 4], np.int8)])
    assert outputs.tolist() == [3, 4]


def test_variables_start_anew_with_each_inference() -> None:
    kernels = CpuKernels(delay_line())
    x = np.array([[[10]], [[20]]], np.int8)
    for _ in range(2):
        assert kernels.run([x])[0].ravel().tolist() == [10, 20]


def test_a_session_keeps_variables_of_each_element() -> None:
    session = CpuKernels(delay_line()).session(2)
    x = np.array([[[10]], [[20]]], np.int8)
    outputs = [session.run([x])[0].ravel().tolist() for _ in range(4)]
    assert outputs == [[10, 20], [20, 40], [30, 60], [30, 60]]


def test_resources_start_anew_and_are_kept_like_variables() -> None:
    kernels = CpuKernels(counter())
    session, other = kernels.session(3), kernels.session(3)
    for factor in (1, 2, 3):
        assert np.array_equal(kernels.run([X])[0], X)
        total = np.clip(factor * X.astype(int), -128, 127)
        assert np.array_equal(session.run([X])[0], total)
    assert np.array_equal(other.run([X])[0], X)


def test_the_arena_grows_with_the_network() -> None:
    big = np.arange(3 << 20, dtype=np.int64).astype(np.int8).reshape(1, 1, -1)
    (outputs,) = CpuKernels(unary("ABS", (1, 3 << 20))).run([big])
    want = np.minimum(np.abs(big.astype(int)), 127)
    assert np.array_equal(outputs, want)


WHERE = Origin("net.tflite", 3, "FLOOR", "y")
AT = '  at   net.tflite, operator 3 FLOOR -> "y"\n'


def error_of(run: Callable[[], object]) -> str:
    with pytest.raises(MizzenError) as caught:
        run()
    return str(caught.value)


def test_what_the_kernels_refuse_is_one_diagnostic_in_their_words(
    capfd: pytest.CaptureFixture[str],
) -> None:
    error = error_of(lambda: CpuKernels(unary("FLOOR"), [WHERE]).run([X]))
    assert re.sub(r":\d+ ", ":LINE ", error) == (
        "error[E702]: TFLite Micro's kernels must take the operators left on the CPU, but say: "
        "tensorflow/lite/micro/kernels/floor.cc:LINE input->type != kTfLiteFloat32 "
        "(INT8 != FLOAT32); Node FLOOR (number 0) failed to invoke with status 1; "
        "Interpreter invocation failed.\n"
        f"{AT}"
        "  help use operators that TFLite Micro has, or that the NPU takes"
    )
    assert capfd.readouterr() == ("", "")


def test_the_operator_that_the_kernels_name_is_the_place() -> None:
    operators = [Origin("net", 5, "ABS", "a"), Origin("net", 6, "FLOOR", "b")]
    error = error_of(lambda: CpuKernels(chain("ABS", "FLOOR"), operators).run([X]))
    assert f"  at   {operators[1]}\n" in error


def test_an_operator_that_the_kernels_lack_is_the_place() -> None:
    operators = [Origin("net", 5, "CONV_3D", "a")]
    error = error_of(lambda: CpuKernels(unary("CONV_3D"), operators).run([X]))
    assert "op code CONV_3D" in error
    assert '  at   net, operator 5 CONV_3D -> "a"\n' in error


def test_a_network_that_ends_the_kernels_does_not_end_the_session() -> None:
    """Each of these would end this process, or never return."""
    error = error_of(lambda: CpuKernels(crashing(), [WHERE]).run([X]))
    assert error == (
        "error[E703]: TFLite Micro's kernels must finish, but ended with SIGSEGV\n"
        f"{AT}"
        "  help the network is damaged, or uses an operator in a way that the kernels do not check"
    )
    assert (
        CpuKernels(unary("ABS")).run([X])[0].tolist()
        == np.minimum(abs(X.astype(int)), 127).tolist()
    )


def test_a_network_is_loaded_again_after_another_ended_the_kernels() -> None:
    kernels = CpuKernels(unary("ABS"))
    before = kernels.run([X])
    error_of(lambda: CpuKernels(crashing()).run([X]))
    assert np.array_equal(kernels.run([X]), before)


def test_a_session_says_that_its_state_is_lost() -> None:
    session = CpuKernels(delay_line(), [WHERE]).session()
    session.run([X[:1, :, :1]])
    error_of(lambda: CpuKernels(crashing()).run([X]))
    assert error_of(lambda: session.run([X[:1, :, :1]])) == (
        "error[E705]: the session's state on the CPU must be there, but is lost: the process that "
        "held it has ended, or belongs to another process\n"
        f"{AT}"
        "  help open a new session"
    )


def test_an_endless_network_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tflm, "TIME_LIMIT_SECONDS", 1)
    assert error_of(lambda: CpuKernels(endless(), [WHERE]).run([X[:, :, :1]])) == (
        "error[E704]: an inference on the CPU must take at most 1 seconds, and took longer\n"
        f"{AT}"
        "  help the network is damaged, or too large for TFLite Micro's kernels"
    )


def test_a_network_larger_than_any_memory_is_refused() -> None:
    kernels = CpuKernels(unary("ABS", (1, 600 << 20)), [WHERE])
    assert error_of(kernels.session) == (
        "error[E706]: operators on the CPU must do with 512 MiB of memory, and need more\n"
        f"{AT.rstrip()}"
    )


def no_package(name: str) -> None:
    """Find nothing of that name."""


def test_without_the_package_there_is_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tflm, "_workers", Workers())
    monkeypatch.setattr(tflm, "find_spec", no_package)
    assert error_of(lambda: CpuKernels(unary("ABS")).run([X])) == (
        "error[E701]: operators on the CPU must have TFLite Micro's kernels, but the package "
        "tflite-micro is not installed\n"
        "  help pip install tflite-micro (Linux on x86-64 only)"
    )


def test_what_nobody_has_any_more_is_forgotten() -> None:
    kernels = CpuKernels(unary("ABS"))
    session = kernels.session()
    session.run([X[:1]])
    keys = {kernels._key, session._key}
    del kernels, session
    gc.collect()
    assert keys <= set(tflm._forgotten)
    CpuKernels(unary("ABS")).run([X])
    assert not keys & set(tflm._forgotten)
