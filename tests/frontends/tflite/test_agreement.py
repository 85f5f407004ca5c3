"""Operators whose options and shapes cannot be what a file says are refused before all else."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.artifact.steps import read_network
from mizzen.diagnostics import Diagnostic, MizzenError
from mizzen.package.tflite.builder import NetworkBuilder

WINDOW = {"padding": 0, "stride_w": 1, "stride_h": 1}
POOL = {**WINDOW, "filter_width": 2, "filter_height": 2}
DEPTHWISE = {**WINDOW, "depth_multiplier": 1}

Inputs = Sequence[Sequence[int] | np.ndarray[Any, Any]]


def net(
    kind: str, table: str, inputs: Inputs, output: Sequence[int], **options: Any
) -> Callable[[], bytes]:
    """An operator, whose first input is the network's if it is no constant."""

    def build() -> bytes:
        builder = NetworkBuilder()
        places: list[int] = []
        given: list[int] = []
        for place, row in enumerate(inputs):
            name = f"t{place}"
            if isinstance(row, np.ndarray):
                places.append(builder.constant(name, row, 0.1))
            else:
                places.append(builder.tensor(name, row, np.int8, 0.1))
                given.append(places[-1])
        y = builder.tensor("y", output, np.int8, 0.1)
        builder.operator(kind, places, [y], (table, options) if table else None)
        return builder.finish(given, [y])

    return build


def ones(*shape: int) -> np.ndarray[Any, Any]:
    return np.ones(shape, np.int8)


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int32)


def conv(output: Sequence[int] = (1, 6, 7, 5), **options: int) -> Callable[[], bytes]:
    inputs = [(1, 6, 7, 4), ones(5, 3, 3, 4), ints(*range(5))]
    return net("CONV_2D", "Conv2DOptions", inputs, output, **{**WINDOW, **options})


def pool(output: Sequence[int] = (1, 6, 7, 4), **options: int) -> Callable[[], bytes]:
    inputs = [(1, 6, 7, 4)]
    return net("MAX_POOL_2D", "Pool2DOptions", inputs, output, **{**POOL, **options})


def plain(kind: str, inputs: Inputs, output: Sequence[int]) -> Callable[[], bytes]:
    return net(kind, "", inputs, output)


OPTIONS = {
    "a dilation below 0": (
        conv(dilation_w_factor=-1),
        "have dilation_w_factor in 1..32768, not -1",
    ),
    "no dilation": (conv(dilation_h_factor=0), "have dilation_h_factor in 1..32768, not 0"),
    "a stride below 0": (conv(stride_w=-2), "have stride_w in 1..32768, not -2"),
    "no stride": (conv(stride_h=0), "have stride_h in 1..32768, not 0"),
    "a huge stride": (conv(stride_h=1 << 30), "have stride_h in 1..32768, not 1073741824"),
    "no such padding": (conv(padding=2), "have padding of [0, 1], not 2"),
    "no such activation": (
        conv(fused_activation_function=9),
        "have fused_activation_function of [0, 1, 2, 3, 4, 5], not 9",
    ),
    "no filter": (pool(filter_width=0), "have filter_width in 1..32768, not 0"),
    "a filter below 0": (pool(filter_height=-3), "have filter_height in 1..32768, not -3"),
    "none": (
        net("CONV_2D", "", [(1, 6, 7, 4), ones(5, 3, 3, 4)], (1, 6, 7, 5)),
        "be there, and are not",
    ),
}

SHAPES = {
    "a map of rank 0": (conv(()), "maps of 4 dimensions"),
    "other maps": (conv((2, 6, 7, 5)), "as many maps as it gives"),
    "other channels": (conv((1, 6, 7, 4)), "a filter for each channel that it gives"),
    "other rows": (conv((1, 5, 7, 5)), "as many rows as its windows cover, which is 6"),
    "strided": (conv(stride_w=2), "as many columns as its windows cover, which is 4"),
    "valid": (conv(padding=1), "as many rows as its windows cover, which is 4"),
    "dilated beyond the map": (
        conv(padding=1, dilation_h_factor=9),
        "as many rows as its windows cover, which is 0",
    ),
    "weights of other depth": (
        net("CONV_2D", "Conv2DOptions", [(1, 6, 7, 4), ones(5, 3, 3, 3)], (1, 6, 7, 5), **WINDOW),
        "weights for whole groups of channels",
    ),
    "few biases": (
        net("CONV_2D", "Conv2DOptions", [(1, 6, 7, 4), ones(5, 3, 3, 4), ints(1)], (1, 6, 7, 5),
            **WINDOW),
        "a bias for each channel that it gives",
    ),
    "another multiplier": (
        net("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", [(1, 6, 7, 4), ones(1, 3, 3, 8)],
            (1, 6, 7, 8), **DEPTHWISE),
        "8 channels for 4 times its multiplier, 1",
    ),
    "a transposed convolution": (
        net("TRANSPOSE_CONV", "TransposeConvOptions",
            [ints(1, 12, 14, 5), ones(5, 2, 2, 4), (1, 6, 7, 4)], (1, 6, 14, 5),
            **{**WINDOW, "stride_w": 2, "stride_h": 2}),
        "a shape as its first input says",
    ),
    "a pool of other channels": (pool((1, 6, 7, 3)), "as many channels as it gives"),
    "rows of weights": (
        net("FULLY_CONNECTED", "FullyConnectedOptions", [(1, 10), ones(3, 4)], (1, 3)),
        "whole rows of weights",
    ),
    "results": (
        net("FULLY_CONNECTED", "FullyConnectedOptions", [(2, 4), ones(3, 4)], (1, 3)),
        "as many results as its weights give, which is 6",
    ),
    "RESHAPE": (plain("RESHAPE", [(2, 3), ints(5)], (5,)), "as many elements as it gives"),
    "RELU": (plain("RELU", [(2, 3)], (3, 2)), "the shape that it gives"),
    "ADD": (
        plain("ADD", [(2, 3), ones(2, 2)], (2, 3)),
        "shapes of which one can be repeated to be the other",
    ),
    "the sum of others": (
        plain("ADD", [(2, 3), ones(1, 3)], (1, 3)),
        "the shape that follows, which is [2, 3]",
    ),
    "CONCATENATION": (
        net("CONCATENATION", "ConcatenationOptions", [(2, 3), ones(2, 2)], (2, 4), axis=1),
        "as many along axis 1 as its inputs, which is 5",
    ),
    "an axis too far": (
        net("CONCATENATION", "ConcatenationOptions", [(2, 3), ones(2, 2)], (2, 5), axis=2),
        "an axis of 2, not 2",
    ),
    "an axis twice": (
        plain("TRANSPOSE", [(2, 3), ints(1, 1)], (3, 2)), "every axis of 2 once, not [1, 1]"
    ),
    "TRANSPOSE": (
        plain("TRANSPOSE", [(2, 3), ints(1, 0)], (2, 3)),
        "the shape that follows, which is [3, 2]",
    ),
    "a pad below 0": (
        plain("PAD", [(4, 3), ints(-1, 0, 0, 0)], (3, 3)), "no pad below 0, not [-1, 0, 0, 0]"
    ),
    "PAD": (
        plain("PAD", [(4, 3), ints(1, 0, 0, 0)], (4, 3)),
        "the shape that follows, which is [5, 3]",
    ),
}  # fmt: skip


def refused(data: bytes) -> Diagnostic:
    with pytest.raises(MizzenError) as caught:
        read_network(data, "net.tflite")
    return caught.value.diagnostic


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name: str) -> None:
    build, must = OPTIONS[name]
    found = refused(build())
    kind = "MAX_POOL_2D" if "filter" in name else "CONV_2D"
    assert (found.code, found.message) == ("E142", f"the options of {kind} must {must}")


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str) -> None:
    build, must = SHAPES[name]
    found = refused(build())
    assert found.code == "E143"
    assert f" must have {must}, and takes [" in found.message


def test_options_of_another_operator() -> None:
    inputs = [(2, 3), ones(2, 2)]
    found = refused(net("CONCATENATION", "CastOptions", inputs, (2, 5))())
    assert found.code == "E142"
    assert found.message == (
        "the options of CONCATENATION must have axis, and have in_data_type, out_data_type"
    )
    assert refused(net("CONCATENATION", "", inputs, (2, 5))()).code == "E143"


def test_in_full() -> None:
    assert refused(SHAPES["RELU"][0]()).render() == (
        "error[E143]: RELU must have the shape that it gives, and takes [2, 3] to give [3, 2]\n"
        '  at   net.tflite, operator 0 RELU -> "y"\n'
        "  help convert the network again, with the shape of every input fixed"
    )


@pytest.mark.parametrize("build", [conv(), pool(), conv((1, 3, 4, 5), stride_h=2, stride_w=2)])
def test_what_fits_is_read(build: Callable[[], bytes]) -> None:
    assert read_network(build(), "net").main.operators


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("dilation_minus1_digits", "E142"),
        ("check_hangs_sometimes", "E143"),
        ("tflite_check-12-024a95c9", "E143"),
    ],
)
@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256", "ethos-n78-4tops-4ple"])
def test_cases_are_refused_at_once(name: str, code: str, accelerator: str, cases: Path) -> None:
    start = time.monotonic()
    for verb in (mizzen.compile, mizzen.check):
        with pytest.raises(MizzenError) as caught:
            verb(cases / "safety" / f"{name}.tflite", accelerator)
        assert caught.value.diagnostic.code == code
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("what", ["constant", "input", "result"])
def test_no_tensor_has_two_results(what: str) -> None:
    """An operator that wrote it would change what others read."""
    made = NetworkBuilder()
    x, y, z = (made.tensor(name, (1, 4), "int8", 0.5) for name in "xyz")
    constant = made.constant("c", np.zeros((1, 4), np.int8), 0.5)
    made.operator("RELU", [x], [y])
    made.operator("RELU", [y], [{"constant": constant, "input": x, "result": y}[what]])
    made.operator("ADD", [y, constant], [z], ("AddOptions", {}))
    with pytest.raises(MizzenError) as caught:
        read_network(made.finish([x], [z]), "net.tflite")
    kind = "a constant" if what == "constant" else "an input, or another's result"
    assert caught.value.diagnostic.code == "E144"
    assert caught.value.diagnostic.message.endswith(f"must be one result, and is {kind} too")
    assert caught.value.diagnostic.origin is not None
    assert caught.value.diagnostic.origin.operator == 1
