"""What the quantizer refuses, with the whole text."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from mizzen.diagnostics import MizzenError
from mizzen.quantize import (
    EthosUQuantizer,
    get_symmetric_a16w8_quantization_config,
    get_symmetric_quantization_config,
)


def prepare(module: nn.Module, *inputs: torch.Tensor) -> torch.fx.GraphModule:
    quantizer = EthosUQuantizer("ethos-u55-128").set_global(get_symmetric_quantization_config())
    return prepare_pt2e(torch.export.export(module.eval(), inputs).module(), quantizer)


def text_of(error: pytest.ExceptionInfo[MizzenError]) -> str:
    """Return an error's text without the line of the user's program."""
    return re.sub(r"\w+\.py:\d+", "FILE", str(error.value))


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log(self.layer(x))


@pytest.mark.parametrize(
    "make", [get_symmetric_quantization_config, get_symmetric_a16w8_quantization_config]
)
def test_dynamic_quantization_is_refused(make: Callable[..., Any]) -> None:
    with pytest.raises(MizzenError) as error:
        make(is_dynamic=True)
    assert str(error.value) == (
        "error[E873]: scales must be known when the network is compiled, and is_dynamic=True came\n"
        "  rule Ethos-U has no operation that finds the range of a tensor\n"
        "  help use is_dynamic=False, and calibrate"
    )


def test_limits_that_do_not_fit_are_refused() -> None:
    with pytest.raises(MizzenError) as error:
        get_symmetric_quantization_config(act_qmin=0, act_qmax=255)
    assert str(error.value) == (
        "error[E872]: limits of int8 activations must be -128 <= minimum < maximum <= 127, "
        "and 0 and 255 came"
    )


def test_a_network_that_was_never_calibrated_is_refused() -> None:
    prepared = prepare(nn.Sequential(nn.Linear(4, 4)), torch.randn(1, 4))
    with pytest.raises(MizzenError) as error:
        convert_pt2e(prepared)
    assert error.value.diagnostic.code == "E870"
    assert "every quantized tensor must have been seen in calibration" in str(error.value)


def test_a_recurrent_layer_that_was_never_calibrated_is_refused() -> None:
    with pytest.warns(UserWarning, match="were assigned during export"):
        prepared = prepare(nn.LSTM(4, 4), torch.randn(3, 1, 4))
    with pytest.raises(MizzenError) as error:
        convert_pt2e(prepared)
    assert error.value.diagnostic.code == "E870"


def test_values_that_are_not_finite_are_refused_where_they_occur() -> None:
    prepared = prepare(Named(), torch.randn(1, 4))
    with pytest.raises(MizzenError) as error:
        prepared(torch.tensor([[-4.0, 1, 2, 3]]) * 100)
    text = text_of(error)
    assert re.match(
        r"error\[E871\]: calibration must see finite values only, and \d (NaN|infinite) of 4 came",
        text,
    )
    assert text.endswith(
        '  at   FILE, log -> "log"\n'
        "  help check the calibration inputs, and masks that add minus infinity; calibrate with "
        "inputs like those in use, or clamp before what is infinite there"
    )


@pytest.mark.parametrize("kind", [torch.float64, torch.float16])
def test_other_types_of_numbers_are_refused(kind: torch.dtype) -> None:
    with pytest.raises(MizzenError) as error:
        prepare(nn.Linear(4, 4).to(kind), torch.randn(1, 4, dtype=kind))
    assert str(error.value) == (
        "error[E874]: a network must compute in float32 before it is quantized, "
        f"and {str(kind).removeprefix('torch.')} came\n"
        '  at   linear -> "linear"\n'
        "  help call model.float() on the module, and export it again with float32 inputs"
    )


def test_a_quantizer_without_a_configuration_is_refused() -> None:
    program = torch.export.export(nn.Linear(4, 4), (torch.randn(1, 4),)).module()
    with pytest.raises(MizzenError) as error:
        prepare_pt2e(program, EthosUQuantizer("ethos-u55-128"))
    assert str(error.value) == (
        "error[E876]: a quantizer must have something to quantize, and no operator was selected\n"
        "  help call set_global(get_symmetric_quantization_config()), or set_module_type"
    )


def test_what_has_no_integer_form_is_reported_with_its_place() -> None:
    class Sorted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sort(self.layer(x)).values

    quantizer = EthosUQuantizer("ethos-u55-128").set_global(get_symmetric_quantization_config())
    program = torch.export.export(Sorted(), (torch.randn(1, 4),)).module()
    prepare_pt2e(program, quantizer)
    (stays,) = quantizer.report()
    assert (stays.operator, stays.reason) == ("sort", "sort has no integer form")
    assert stays.origin.source is not None
    assert stays.origin.source.partition(":")[0] == "test_diagnostics.py"
    assert stays.diagnostic().as_dict()["message"] == (
        "sort stays in floating point: sort has no integer form"
    )


def test_integers_that_the_target_has_not_are_refused() -> None:
    """Ethos-N computes with 8 bits: with 16, all of a network would be on the CPU."""
    quantizer = EthosUQuantizer("ethos-n78-4tops-4ple")
    quantizer.set_global(get_symmetric_quantization_config())
    wide = get_symmetric_a16w8_quantization_config()
    for choose in (
        quantizer.set_global,
        quantizer.set_io,
        partial(quantizer.set_module_name, "layer"),
        partial(quantizer.set_module_type, nn.Linear),
    ):
        with pytest.raises(MizzenError) as error:
            choose(wide)
        assert str(error.value) == (
            "error[E878]: activations for Ethos-N must have 8 bits, and 16 came\n"
            "  help use get_symmetric_quantization_config(), or another accelerator"
        )


def test_an_accelerator_that_there_is_not_is_refused() -> None:
    with pytest.raises(MizzenError, match="E210"):
        EthosUQuantizer("ethos-u56-128")
