"""What other toolchains get wrong without a word: here it is right, or refused with a reason."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import (
    convert_pt2e,
    prepare_pt2e,
    prepare_qat_pt2e,
)

from mizzen.diagnostics import MizzenError
from mizzen.quantize import (
    EthosUQuantizer,
    get_symmetric_a16w8_quantization_config,
    get_symmetric_quantization_config,
)
from mizzen.torch import (
    EthosUCompileSpec,
    EthosUPartitioner,
    compile,
    compile_converted,
    compile_for,
)

Build = Callable[..., Any]

U55 = "ethos-u55-128"
U85 = "ethos-u85-256"


class _Small(nn.Sequential):
    """A convolution and an activation."""

    def __init__(self) -> None:
        super().__init__(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())


class _Adds(nn.Module):
    """Adds to its state in place."""

    state: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("state", torch.zeros(1, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state.add_(torch.sigmoid(x))
        return self.state * 0.5


class _Copies(_Adds):
    """Replaces its state by a mean of it and the input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state.copy_(self.state * 0.5 + x * 0.5)
        return self.state * 1.0


def _image(*, batch: int = 1) -> torch.Tensor:
    return torch.randn(batch, 3, 12, 12)


@pytest.mark.parametrize("kind", [_Adds, _Copies])
def test_a_state_updated_in_place_goes_on_from_call_to_call(kind: type[_Adds]) -> None:
    """The first call starts from zero, whatever calibration left; the next ones go on.

    Twelve steps of a range of at most 4 are the drift allowed: one rounding of the state and one
    of the output in each of 3 calls, and as much again for calibration's clipping.
    """
    row = torch.full((1, 4), 0.8)
    artifact = compile(kind().eval(), (row,), U55, calibration=[(row,)] * 4)
    session, model = artifact.session(), kind().eval()
    found = [session.run(row.numpy()) for _ in range(3)]
    expected = [model(row).clone().numpy() for _ in range(3)]
    assert np.abs(np.array(found) - np.array(expected)).max() <= 12 * 4 / 255
    assert not np.array_equal(found[0], found[1])
    again = artifact.session()
    assert np.array_equal(again.run(row.numpy()), found[0])


def test_a_run_without_a_session_always_starts_from_the_initial_state() -> None:
    """Calls of `run` do not know of each other."""
    row = torch.full((1, 4), 0.8)
    artifact = compile(_Adds().eval(), (row,), U55, calibration=[(row,)] * 4)
    assert np.array_equal(artifact.run(row.numpy()), artifact.run(row.numpy()))


def test_a_model_that_never_was_quantized_is_refused() -> None:
    """No artifact that has everything on the CPU without a word."""
    exported = torch.export.export(_Small().eval(), (_image(),))
    with pytest.raises(MizzenError) as caught:
        compile_converted(exported, U55, name="small")
    found = caught.value.diagnostic
    assert found.code == "E167"
    assert found.message == "small must be quantised, and nothing in it is"
    assert "mizzen.torch.compile()" in (found.help or "")


def test_a_model_that_never_was_calibrated_is_refused() -> None:
    """No scales of 1."""
    quantizer = EthosUQuantizer(U55).set_global(get_symmetric_quantization_config())
    exported = torch.export.export(_Small().eval(), (_image(),))
    prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    with pytest.raises(MizzenError) as caught:
        convert_pt2e(prepared)
    found = caught.value.diagnostic
    assert found.code == "E870"
    assert found.message == (
        "every quantized tensor must have been seen in calibration, and this one never was"
    )


def test_a_quantizer_that_selects_nothing_is_refused() -> None:
    """Without `set_global` there is nothing to do, and that is said."""
    exported = torch.export.export(_Small().eval(), (_image(),))
    with pytest.raises(MizzenError) as caught:
        prepare_pt2e(exported.module(check_guards=False), EthosUQuantizer(U55))
    assert caught.value.diagnostic.code == "E876"
    assert "set_global" in (caught.value.diagnostic.help or "")


def test_compiling_without_calibration_data_is_warned_of() -> None:
    """One example is not a calibration."""
    artifact = compile(_Small().eval(), (_image(),), U55)
    assert artifact.report is not None
    assert "W870" in [row.code for row in artifact.report.diagnostics]


@pytest.mark.parametrize(
    "make", [get_symmetric_quantization_config, get_symmetric_a16w8_quantization_config]
)
def test_ranges_of_weights_are_kept_to(make: Callable[..., Any]) -> None:
    """Limits that are given are the limits of the numbers."""
    quantizer = EthosUQuantizer(U55).set_global(make(weight_qmin=-7, weight_qmax=7))
    exported = torch.export.export(_Small().eval(), (_image(),))
    prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    prepared(_image())
    converted = convert_pt2e(prepared)
    weights = [row for row in converted.state_dict().values() if row.dtype == torch.int8]
    assert len(weights) == 1
    assert (int(weights[0].min()), int(weights[0].max())) in {(-7, 7), (-7, 6), (-6, 7)}


def test_small_activations_of_16_bits_get_a_scale_of_their_own() -> None:
    """The least scale is no floor for tensors of a common size."""
    quantizer = EthosUQuantizer(U55).set_global(get_symmetric_a16w8_quantization_config())
    exported = torch.export.export(_Small().eval(), (_image(),))
    prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    prepared(torch.full((1, 3, 12, 12), 0.5))
    scales = [
        node.args[1]
        for node in convert_pt2e(prepared).graph.nodes
        if str(node.target) == "quantized_decomposed.quantize_per_tensor.default"
    ]
    # The largest of the 32767 steps on one side is the largest value that came.
    assert scales[0] == pytest.approx(0.5 / 32767, rel=1e-4)


def test_dynamic_quantization_is_refused_at_once() -> None:
    """Not when scales are computed."""
    with pytest.raises(MizzenError) as caught:
        get_symmetric_quantization_config(is_dynamic=True)
    assert caught.value.diagnostic.code == "E873"
    assert caught.value.diagnostic.message == (
        "scales must be known when the network is compiled, and is_dynamic=True came"
    )


def test_a_model_of_float64_is_refused() -> None:
    """With the type that came."""
    with pytest.raises(MizzenError) as caught:
        compile(_Small().double().eval(), (_image().double(),), U55)
    assert caught.value.diagnostic.code == "E874"
    assert "must compute in float32" in caught.value.diagnostic.message
    assert "float64" in caught.value.diagnostic.message


def test_infinity_in_calibration_is_refused() -> None:
    """With how many numbers are none."""
    wrong = _image()
    wrong[0, 0, 0, 0] = float("inf")
    with pytest.raises(MizzenError) as caught:
        compile(_Small().eval(), (_image(),), U55, calibration=[(wrong,)])
    assert caught.value.diagnostic.code == "E871"
    assert caught.value.diagnostic.message == (
        "calibration must see finite values only, and 1 infinite of 432 came"
    )


def test_a_module_as_export_gives_it_can_be_quantized() -> None:
    """With the guards that PyTorch puts in."""
    quantizer = EthosUQuantizer(U55).set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(torch.export.export(_Small().eval(), (_image(),)).module(), quantizer)
    image = _image()
    prepared(image)
    artifact = compile_converted(torch.export.export(convert_pt2e(prepared), (image,)), U55)
    assert artifact.report is not None
    assert not artifact.report.on_cpu


def test_running_the_program_does_not_change_the_artifact(built: Build) -> None:
    """An artifact keeps its initial state when the program it was made of changes its own."""
    network = built(_Adds(), torch.full((1, 4), 0.8))
    (row,) = network.calls[0]
    before = network.run((row,))
    network.exported.module(check_guards=False)(row)
    assert np.array_equal(network.run((row,)), before)
