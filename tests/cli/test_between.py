"""`inspect --between`: the forms of a network on its way to commands, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mizzen.cli.between import _compared, _ranges
from mizzen.package.tflite.builder import NetworkBuilder

from ..targets.ethos_u.generator.streaming_networks import (  # noqa: TID252 tests are no package with a name
    Streaming,
    streaming_network,
)

Run = Callable[..., tuple[int, str, str]]
U55 = ("--accelerator-config", "ethos-u55-128")


def headings(text: str) -> list[str]:
    return [line for line in text.splitlines() if line[:1].strip()]


def test_all_stages(here: Path, run: Run) -> None:
    status, out, err = run(
        "inspect", "digits.tflite", "--between", "schedule,lower,arrange", *U55
    )  # fmt: skip
    assert status == 0, err
    assert headings(out) == [
        "Graph: 42 operations",
        "Lowered: 33 operations of the NPU",
        "Arranged: 34 operations, 3 lines changed",
        "Scheduled: 34 steps, 1.5 KiB of SCRATCH",
    ]
    changed = out.partition("\nArranged")[2].partition("\n\n")[0].splitlines()[1:]
    assert [line[:20] for line in changed] == [
        "    ... 1 line as be",
        "  + %windows = TENSO",
        "  + %windows@0<1x8x2",
        "  - %conv0 = CONV(%i",
        "  + %conv0 = CONV(%w",
        "    ... 37 lines as ",
    ]


def test_only_the_stages_that_are_asked_for(here: Path, run: Run) -> None:
    """A form that nothing before it was asked for is shown whole."""
    status, out, _ = run("inspect", "digits.tflite", "--between", "arrange", *U55)
    assert status == 0
    assert headings(out) == ["Arranged: 34 operations"]
    assert "sequence(%image: tensor<8x8x1xi8, NHWC>) {" in out


def test_a_document(here: Path, run: Run) -> None:
    words = ("--between", "lower,schedule", "--json", *U55)
    status, out, _ = run("inspect", "digits.tflite", *words)
    data = json.loads(out)
    assert status == 0
    assert (data["model"], data["accelerator"]) == ("digits.tflite", "ethos-u55-128")
    assert data["graph"][0].startswith("graph @digits.tflite(%image")
    (part,) = data["parts"]
    assert part["operators"] == list(range(8))
    assert part["lower"][0].startswith("sequence(%image")
    assert part["schedule"][1] == "  region SCRATCH = 1536 bytes"
    assert "arrange" not in part


def test_the_memory_that_is_asked_for_is_used(here: Path, run: Run) -> None:
    words = ("--between", "schedule", "--arena-cache-size", "4K", *U55)
    _, out, _ = run("inspect", "digits.tflite", *words)
    assert "fetch blob" in out


def test_chains_are_in_stripes_where_memory_is_short(tmp_path: Path, run: Run) -> None:
    net = NetworkBuilder("wide")
    first = last = net.tensor("x", (1, 32, 32, 4), np.int8, 0.1, 3)
    sides = {"stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}
    for name, channels, given in (("wide", 32, 4), ("narrow", 4, 32)):
        weights = net.constant(f"{name}_w", np.ones((channels, 3, 3, given), np.int8), 0.01)
        biases = net.constant(f"{name}_b", np.zeros(channels, np.int32), 0.001)
        made = net.tensor(name, (1, 32, 32, channels), np.int8, 0.1, 3)
        net.operator("CONV_2D", [last, weights, biases], [made], ("Conv2DOptions", sides))
        last = made
    (tmp_path / "wide.tflite").write_bytes(net.finish([first], [last]))
    words = ("inspect", tmp_path / "wide.tflite", "--between", "arrange", *U55)
    assert "%narrow[0:" not in run(*words)[1]
    _, out, _ = run(*words, "--arena-cache-size", "20K")
    assert "%narrow[0:8, :, :] = CONV(" in out


def pooled_to_real_numbers() -> bytes:
    net = NetworkBuilder("real")
    x = net.tensor("x", (1, 4, 4, 8), np.int8, 0.1, 3)
    y = net.tensor("pooled;and;more", (1, 2, 2, 8), np.int8, 0.1, 3)
    real = net.tensor("real", (1, 2, 2, 8), np.float32)
    sizes = {"filter_width": 2, "filter_height": 2, "stride_w": 2, "stride_h": 2, "padding": 1}
    net.operator("MAX_POOL_2D", [x], [y], ("Pool2DOptions", sizes))
    net.operator("DEQUANTIZE", [y], [real])
    return net.finish([x], [real])


def test_what_no_rule_takes_is_named(tmp_path: Path, run: Run) -> None:
    """The rest is shown in parts; names that a converter joined are their first."""
    (tmp_path / "real.tflite").write_bytes(pooled_to_real_numbers())
    words = ("inspect", tmp_path / "real.tflite", "--between", "lower,arrange", *U55)
    status, out, _ = run(*words)
    assert status == 0
    assert headings(out) == [
        "Graph: 2 operations",
        "Refused: no rule takes these operators for the NPU",
        "Part 1 of 1: 1 operator, 0",
        "Lowered: 1 operation of the NPU",
        "Arranged: 1 operation, as lowered",
    ]
    assert 'operator 1 DEQUANTIZE -> "real"  no rule has a form of DEQUANTIZE' in out
    assert "%pooled = POOL_MAX(%x)" in out
    refused = json.loads(run(*words, "--json")[1])["refused"]
    assert refused == [
        {"operator": 1, "kind": "DEQUANTIZE", "reason": "no rule has a form of DEQUANTIZE"}
    ]


def test_the_main_subgraph_is_shown(tmp_path: Path, run: Run) -> None:
    """Variables are filled by a subgraph of its own."""
    data = streaming_network(Streaming(1, 8, ((3, 8),)))
    (tmp_path / "streaming.tflite").write_bytes(data)
    words = ("inspect", tmp_path / "streaming.tflite", "--between", "lower", *U55)
    status, out, err = run(*words)
    assert status == 0
    assert "  shown is the main one of 2 subgraphs\n" in err
    assert " state) {" in out


def test_an_npu_without_code_of_our_own(here: Path, run: Run) -> None:
    accelerator = "ethos-n78-4tops-4ple"
    words = ("--between", "lower", "--accelerator-config", accelerator, "--quiet")
    status, _, err = run("inspect", "digits.tflite", *words)
    assert status == 2
    assert err == (
        "error[E576]: what becomes of a network step by step can be read for Ethos-U, whose code "
        f"Mizzen writes itself, and not for {accelerator}\n"
        "  help take --accelerator-config ethos-u55-128, or compile the network and give `mizzen "
        "inspect` the artifact\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--between", "lover"), "--between takes lower, arrange, schedule, not 'lover'"),
        (("--between", "lower", "--why"), "--why is for artifacts, without --between"),
        (("--memory-mode", "Sram_Only"), "--memory-mode is for a network, with --between"),
    ],
)
def test_options_that_do_not_go_together(
    here: Path, run: Run, words: tuple[str, ...], said: str
) -> None:
    status, _, err = run("inspect", "digits.tflite", *words)
    assert status == 2
    assert err == (
        f"error[E200]: the command line is wrong: {said}\n  help mizzen inspect --help\n"
    )


def test_a_compiled_network_is_refused(velas: Path, run: Run) -> None:
    status, _, err = run("inspect", velas, "--between", "lower", "--quiet")
    assert status == 2
    assert "error[E109]" in err


def test_lines_of_one_tensor_stand_together() -> None:
    before = ["  %a = X(%i)", "  %b = Y(%a)", "  return %b"]
    after = ["  %a = Z(%i)", "  %c = TENSOR", "  %b@0<i8> = Y(%a)", "  return %b"]
    lines, count = _compared(before, after)
    assert lines == [
        "- %a = X(%i)", "+ %a = Z(%i)", "+ %c = TENSOR", "- %b = Y(%a)", "+ %b@0<i8> = Y(%a)",
        "  ... 1 line as before",
    ]  # fmt: skip
    assert count == 3


def test_a_line_that_is_only_further_in_is_as_before() -> None:
    before = ["  %a = X(%i)", "  %b = Y(%a)"]
    after = ["  chain {", "    %a = X(%i)", "    %b = Y(%a)", "  }"]
    lines, count = _compared(before, after)
    assert lines == ["+ chain {", "  ... 2 lines as before", "+ }"]
    assert count == 2


def test_ranges_of_operators() -> None:
    assert _ranges([0, 1, 2, 5, 7, 8]) == "0..2, 5, 7..8"
