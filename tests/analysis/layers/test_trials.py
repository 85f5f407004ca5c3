"""Advice: what was compiled and found cheaper, of layers as the user's network has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.analysis.checking.budget import again
from mizzen.analysis.cost import cost_report
from mizzen.analysis.layers import layers, trials
from mizzen.analysis.layers.trials import Subject, advice, network_of
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.compile import source_of
from mizzen.compiler.options import CompileOptions
from mizzen.package.tflite.builder import NetworkBuilder

MODEL = "kws_ref_model.tflite"


def convolution(channels: int) -> bytes:
    """Return a network of one convolution whose output has so many channels."""
    net = NetworkBuilder("conv")
    source = net.tensor("in", (1, 16, 16, 16), np.dtype(np.int8), [0.02], [0])
    weights = np.ones((channels, 3, 3, 16), np.int8)
    kernel = net.constant("w", weights, [0.01], [0])
    bias = net.constant("b", np.zeros(channels, np.int32), [0.0002], [0])
    result = net.tensor("out", (1, 16, 16, channels), np.dtype(np.int8), [0.5], [0])
    options = {"stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}
    net.operator("CONV_2D", [source, kernel, bias], [result], ("Conv2DOptions", options))
    return net.finish([source], [result])


def subject(model: Path | bytes, accelerator: str, modes: Sequence[str] | None = None) -> Subject:
    artifact = mizzen.compile(model, accelerator, prove="off")
    assert artifact.report is not None
    made = layers(artifact.report, cost_report(artifact))
    target = resolve_target(CompileOptions(accelerator))
    compile_again = again(model, accelerator)
    return Subject(artifact, made, compile_again, modes, network_of(source_of(model)), target)


def test_a_memory_mode_is_told_with_what_it_brings(model_file: Callable[[str], Path]) -> None:
    model = model_file(MODEL)
    (found,) = advice(subject(model, "ethos-u55-128"))
    changed = mizzen.compile(model, "ethos-u55-128", memory_mode="Sram_Only", prove="off")
    assert changed.report is not None
    assert (found.what, found.layer) == ("--memory-mode Sram_Only", None)
    assert found.after.cycles == changed.report.cycles < found.before.cycles
    assert found.after.sram_bytes > found.before.sram_bytes
    assert found.after.flash_bytes == 0


def test_a_board_without_the_mode_hears_nothing(model_file: Callable[[str], Path]) -> None:
    assert advice(subject(model_file(MODEL), "ethos-u55-128", ["Shared_Sram"])) == []


def test_nothing_is_told_of_what_would_save_nothing(model_file: Callable[[str], Path]) -> None:
    """On U85 the constants are in SRAM already; depthwise layers are what they are."""
    assert advice(subject(model_file(MODEL), "ethos-u85-256")) == []


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256"])
def test_channels_are_those_of_the_users_layer(accelerator: str) -> None:
    """Of 17 channels 16 take clearly fewer cycles; 16 fill the array, and nothing is told."""
    (found,) = (each for each in advice(subject(convolution(17), accelerator)) if each.kind)
    assert (found.layer, found.what) == (0, "16 output channels instead of 17")
    assert found.after.cycles * 17 < found.before.cycles * 16
    assert not [each for each in advice(subject(convolution(16), accelerator)) if each.kind]


def test_no_trial_begins_after_the_time(
    model_file: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "SECONDS", -1.0)
    begun: list[str] = []
    assert advice(subject(model_file(MODEL), "ethos-u55-128"), begun.append) == []
    assert begun == []


@pytest.mark.parametrize(
    "accelerator", ["ethos-u55-64", "ethos-u55-128", "ethos-u65-256", "ethos-n78-4tops-4ple"]
)
def test_shapes_are_those_of_the_network_on_every_npu(
    model_file: Callable[[str], Path], accelerator: str
) -> None:
    """Not of the pieces that a schedule makes of a layer: these have 1 to 140 channels."""
    made = subject(model_file(MODEL), accelerator).layers
    shapes = [layer.shape for layer in made if layer.index is not None]
    assert shapes[:2] == ["49x10x1 -> 25x5x64", "25x5x64 -> 25x5x64"]
    assert shapes[9:] == ["25x5x64 -> 1x1x64", "1x1x64 -> 64", "64 -> 12", "12 -> 12"]


def test_the_table_of_ethos_n_says_what_its_cycles_are(model_file: Callable[[str], Path]) -> None:
    artifact = mizzen.compile(model_file(MODEL), "ethos-n78-4tops-4ple", prove="off")
    assert "at least 2,500 cycles for a stripe" in cost_report(artifact).meaning
    assert not cost_report(mizzen.compile(model_file(MODEL), "ethos-u55-64", prove="off")).meaning
