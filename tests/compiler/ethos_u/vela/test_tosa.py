"""TOSA files compiled by Vela: what it gets wrong is known, and an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.artifact.loading import artifact_of
from mizzen.diagnostics import MizzenError
from mizzen.graph import DType, Graph, ResizeMode, Value
from mizzen.ops import Builder
from mizzen.package.tosa import write
from mizzen.targets.ethos_u.machine.system_config import resolve
from mizzen.targets.ethos_u.vela.generate import Compiled, NetworkForm, generate

from ..test_tosa import (  # noqa: TID252 tests are no package with a name
    MAP,
    Make,
    biases,
    build,
    greatest_channels,
    joined,
    padded,
    rescale,
    tied,
)

ACCELERATOR = "ethos-u55-128"


def refusal(graph: Graph, **keywords: Any) -> str:
    """Return what is said where Vela's code alone may be taken."""
    with pytest.raises(MizzenError) as caught:
        mizzen.compile(write(graph), ACCELERATOR, **keywords)
    return str(caught.value)


def test_an_operator_that_the_npu_does_not_have_is_told() -> None:
    def compare(b: Builder, value: Value) -> Value:
        wide = b("CAST", value, dtype=DType.INT32)
        return b("CAST", b("GREATER", wide, wide), dtype=DType.INT8)

    assert refusal(build(compare)) == (
        "error[E305]: ethos-u55-128 must run every operator, and the compiler cannot place "
        "GREATER: Non-passthrough operation (Greater) could not run on NPU\n"
        '  at   model.tosa, operator 1 GREATER -> "value_0"\n'
        "  help lower it to other operators, choose another accelerator, or split the network there"
    )


def test_state_must_come_and_go() -> None:
    graph = Graph()
    graph.add("VARIABLE", (), (), {"name": "state", "type": MAP, "initial": None})
    read = graph.add("VARIABLE_READ", (), [MAP], {"name": "state", "type": MAP}).result
    graph.set_outputs([Builder(graph)("CLAMP", read, min_val=0, max_val=9)])
    assert refusal(graph) == (
        "error[E158]: state must come and go as inputs and outputs, and the network has the "
        "variable 'state'\n"
        '  at   model.tosa, VARIABLE -> "state"\n'
        "  help make the variable an input, and what is written to it an output; Mizzen's own code "
        "for Ethos-U55 and U65 keeps variables: --generator own"
    )


def test_a_sum_of_two_whole_scales_is_wrong() -> None:
    """The compiler takes both scales to be one; it does not from 2^15 on."""

    def total(shift: int) -> Graph:
        def make(b: Builder, value: Value) -> Value:
            scaled = [rescale(b, value, DType.INT32, each) for each in (shift, shift + 1)]
            return rescale(b, b("ADD", *scaled), DType.INT8, 61 - shift)

        return build(make)

    image = np.arange(-128, 896).astype(np.int8).reshape(MAP.shape)
    # x * 2^n + x * 2^(n-1), over 2^(n+1): a multiple of 1/4, rounded half up
    exact = np.floor(image * 0.75 + 0.5).astype(np.int8)
    assert np.array_equal(_plain(write(total(14)), image), exact)
    for shift in (16, 29):
        assert not np.array_equal(_plain(write(total(shift)), image), exact)
        assert refusal(total(shift)) == (
            "error[E306]: operands must be scaled by one number, or by 2^15 or more before they "
            "are summed for this compiler, and ADD has others\n"
            '  at   model.tosa, operator 7 ADD -> "value_6"\n'
            "  rule Vela 5.2.0 compiles it wrongly, found by running the result\n"
            "  help scale the operands up further, and the sum down again"
        )


def test_biases_of_one_weight_are_refused_where_weights_have_no_room() -> None:
    assert refusal(build(biases)).startswith(
        "error[E306]: operators of the same weights and scales must have the same biases for this "
        "compiler, and CONV2D has others\n"
    )


def test_what_a_rule_says_is_compiled_wrongly_is_refused() -> None:
    def make(b: Builder, value: Value) -> Value:
        steps = b.shape([4, 2, 8, 2]), b.shape([-1, -3]), b.shape([1, 3])
        return b("RESIZE", value, *steps, mode=ResizeMode.NEAREST)

    assert refusal(build(make)) == (
        "error[E306]: RESIZE must have the same factor in both directions on Ethos-U55, and has a "
        "factor of 2x4\n"
        '  at   model.tosa, operator 3 RESIZE -> "result"\n'
        "  rule Vela 5.2.0 compiles it wrongly, found by running the result\n"
        "  help upscale by the same factor in both directions, in several steps if need be"
    )


def test_the_compiler_misplaces_parts() -> None:
    """Without the CLAMP the result is wrong, if the stream runs at all."""
    for make in (joined, padded, greatest_channels):
        _require_wrong(make)


def test_the_compiler_confuses_biases() -> None:
    """Without other weights, all operators have the first one's bias."""
    _require_wrong(tied)


def _require_wrong(make: Make) -> None:
    data = write(build(make))
    image = np.random.default_rng(1).integers(-128, 128, MAP.shape).astype(np.int8)
    right: Any = mizzen.compile(data, ACCELERATOR).run(image)
    assert not np.array_equal(right, _plain(data, image))


def _plain(data: bytes, image: Any) -> Any:
    """Run what the compiler makes of a file as it is; nothing if that writes outside its memory."""
    plain = generate(data, resolve(ACCELERATOR), NetworkForm.TOSA)
    assert isinstance(plain, Compiled)
    try:
        return artifact_of(plain.network, "plain").run(image)
    except MizzenError:
        return None
