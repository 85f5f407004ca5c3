"""ONNX networks on a device: the edge of integers as calls of kernels that runtimes have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("onnx", reason="ONNX is not installed (pip install '.[onnx]')")

import mizzen
from mizzen.artifact.device import device_program
from mizzen.boards import find_board
from mizzen.diagnostics import MizzenError
from mizzen.export import board_fit
from mizzen.package.device import KernelCall

from ..compiler.onnx.networks import (  # noqa: TID252 tests are no package with a name
    Network,
    images,
    outputs,
    torn,
    whole,
)
from .device_run import DeviceRun

U55 = "ethos-u55-128"


def of_bytes() -> Network:
    """Return a network that takes and gives bytes without a sign."""
    network = whole("uint8")
    network.nodes = network.nodes[1:-1]
    del network.inputs["image"]
    network.input("quantizelinear0_0", (1, 2, 6, 5), np.uint8)
    network.outputs = [network.nodes[-1][2][0]]
    return network


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_real_numbers_become_integers_as_on_the_host(dtype: str) -> None:
    pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")
    from mizzen.quantize import register_operators

    register_operators()
    artifact = mizzen.compile(whole(dtype).data, U55)
    device, x = DeviceRun(device_program(artifact)), images(16)
    (host,) = outputs(artifact, x)
    for image, expected in zip(x, host, strict=True):
        (given,) = device.run(image)
        assert np.array_equal(given, expected.reshape(given.shape))


def test_bytes_change_their_sign() -> None:
    artifact = mizzen.compile(of_bytes().data, U55)
    program = device_program(artifact)
    device = DeviceRun(program)
    x = np.random.default_rng(4).integers(0, 256, (16, 1, 2, 6, 5)).astype(np.uint8)
    (host,) = outputs(artifact, x)
    for image, expected in zip(x, host, strict=True):
        (given,) = device.run(image)
        assert given.dtype == np.uint8
        assert np.array_equal(given, expected.reshape(given.shape))
    calls = [call.operator for call in program.calls if isinstance(call, KernelCall)]
    assert calls == ["aten::_to_copy", "aten::add.Scalar", "aten::_to_copy"] * 2


@pytest.mark.parametrize("network", [whole("uint8"), of_bytes()], ids=["reals", "bytes"])
def test_every_call_has_a_kernel_of_the_c_runtime(network: Network) -> None:
    fit = board_fit(mizzen.compile(network.data, U55), find_board("corstone300"))
    assert not fit.findings


@pytest.mark.parametrize("network", [whole("uint8"), of_bytes()], ids=["reals", "bytes"])
def test_every_call_has_a_kernel_of_executorch(network: Network, tmp_path: Path) -> None:
    pytest.importorskip("executorch", reason="ExecuTorch is not installed")
    artifact = mizzen.compile(network.data, U55)
    artifact.save(tmp_path / "net.pte")
    loaded = mizzen.load(tmp_path / "net.pte")
    shape, dtype = artifact.inputs[0].shape, artifact.inputs[0].dtype
    x = np.random.default_rng(5).integers(0, 9, (4, *shape)).astype(dtype)
    (ours,), (theirs,) = outputs(loaded, x), outputs(artifact, x)
    assert np.array_equal(ours.reshape(theirs.shape), theirs)


def test_what_only_onnx_runtime_computes() -> None:
    artifact = mizzen.compile(torn().data, U55)
    with pytest.raises(MizzenError) as caught:
        device_program(artifact)
    assert str(caught.value) == (
        "error[E196]: every operator of model_vela.zip must be on the NPU to run on a device, and "
        "ONNX Runtime computes LRN\n"
        "  help `mizzen check MODEL` says why they are not on the NPU; change them, or cut the "
        "network there and compute the rest in the firmware"
    )
