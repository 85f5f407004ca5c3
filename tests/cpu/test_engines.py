"""The C runtime's kernels and NumPy, in the place of TensorFlow Lite Micro: the same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mizzen.conformance.cases import cases
from mizzen.cpu import c_library, tflm
from mizzen.cpu.c_kernels import CKernels
from mizzen.cpu.c_library import CLibrary
from mizzen.cpu.device import DeviceKernels
from mizzen.cpu.graph import ReferenceKernels
from mizzen.cpu.tflm import CpuKernels, KernelRefusalError
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite import Tensor, read

from .networks import counter, delay_line

pytestmark = pytest.mark.skipif(not tflm.is_installed(), reason="tflite-micro is not installed")

Array = np.ndarray[Any, Any]
BATCH = 2
NOT_IN_C = {
    "lstm_int8", "lstm_int16", "lstm_int8_time_major", "div_1x5x6x7_1x5x6x7_int8",
    "read_variable", "assign_variable",
}  # fmt: skip
"""Cases that TensorFlow Lite Micro takes and the C runtime does not."""
MOST_NOT_IN_NUMPY = 11


@pytest.fixture(scope="module")
def library() -> CLibrary:
    found = c_library.c_library()
    if found is None:
        pytest.skip("no C compiler is installed")
    return found


def numbers(tensor: Tensor, random: np.random.Generator) -> Array:
    dtype = np.dtype(tensor.dtype or np.uint8)
    shape = (BATCH, *tensor.shape)
    if dtype.kind == "f":
        return random.standard_normal(shape).astype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    limits = np.iinfo(dtype.name)
    low, high = max(limits.min, -30000), min(limits.max, 30000)
    return random.integers(low, high + 1, shape).astype(dtype)


def known() -> Iterator[tuple[str, bytes, list[Array], list[Array]]]:
    """Return the networks that TensorFlow Lite Micro takes, inputs, and what it gives."""
    random = np.random.default_rng(1)
    for case in cases():
        network = case.build()
        main = read(network, case.name).main
        inputs = [numbers(tensor, random) for tensor in main.present(main.inputs)]
        try:
            yield case.name, network, inputs, CpuKernels(network).run(inputs, BATCH)
        except MizzenError:
            continue


def judged(kernels: DeviceKernels, inputs: list[Array], wanted: list[Array]) -> bool:
    """Whether kernels take a network; their numbers are the wanted ones then."""
    try:
        given = kernels.run(inputs, BATCH)
    except KernelRefusalError:
        return False
    for one, other in zip(given, wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    return True


def test_every_operator_has_tflms_bits(library: CLibrary) -> None:
    not_in_c: set[str] = set()
    not_in_numpy: set[str] = set()
    for name, network, inputs, wanted in known():
        if not judged(CKernels(library, network), inputs, wanted):
            not_in_c.add(name)
        if not judged(ReferenceKernels(network), inputs, wanted):
            not_in_numpy.add(name)
    assert not_in_c == NOT_IN_C
    assert len(not_in_numpy) <= MOST_NOT_IN_NUMPY, not_in_numpy


@pytest.mark.parametrize("name", ["kws_ref_model", "person_detect", "dnn_s_quantized"])
def test_networks_have_tflms_bits(
    name: str, model_file: Callable[[str], Path], library: CLibrary
) -> None:
    """Of person_detect, biases have the axis of the weights beside them."""
    network = model_file(f"{name}.tflite").read_bytes()
    main = read(network, name).main
    random = np.random.default_rng(2)
    inputs = [numbers(tensor, random) for tensor in main.present(main.inputs)]
    wanted = CpuKernels(network).run(inputs, BATCH)
    assert judged(CKernels(library, network), inputs, wanted)
    assert judged(ReferenceKernels(network), inputs, wanted)


@pytest.mark.parametrize("engine", ["C", "NumPy"])
def test_a_session_keeps_state(engine: str, library: CLibrary) -> None:
    network = delay_line() if engine == "C" else counter()
    kernels = CKernels(library, network) if engine == "C" else ReferenceKernels(network)
    main = read(network, "").main
    random = np.random.default_rng(3)
    steps = [[numbers(t, random) for t in main.present(main.inputs)] for _ in range(4)]
    ours, theirs = kernels.session(BATCH), CpuKernels(network).session(BATCH)
    for inputs in steps:
        for one, other in zip(ours.run(inputs), theirs.run(inputs), strict=True):
            np.testing.assert_array_equal(one, other)
    first = kernels.run(steps[0], BATCH)
    for one, other in zip(kernels.run(steps[0], BATCH), first, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_library_that_others_could_change_is_not_loaded(
    library: CLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert library
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    c_library.c_library.cache_clear()
    assert c_library.c_library() is not None
    (kept,) = (tmp_path / "mizzen").iterdir()
    kept.parent.chmod(0o777)
    monkeypatch.setattr(c_library, "COMPILERS", ())
    monkeypatch.setattr(c_library, "find_spec", lambda name: None)  # pyright: ignore[reportUnknownLambdaType]
    c_library.c_library.cache_clear()
    assert c_library.c_library() is None
    kept.parent.chmod(0o700)
    c_library.c_library.cache_clear()
    assert c_library.c_library() is not None
    c_library.c_library.cache_clear()
