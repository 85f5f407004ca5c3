"""Real networks: the whole graph equals TFLite Micro, and is made in no time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mizzen.frontends.tflite import read
from mizzen.frontends.tflite.lower import lower

from .kernels import assert_exact, kinds

CPU_OPERATORS = {
    "ad01_int8.tflite": 0,
    "hello_world_int8.tflite": 0,
    "kws_ref_model.tflite": 1,
    "micro_speech_quantized.tflite": 1,
    "person_detect.tflite": 1,
    "pretrainedResnet_quant.tflite": 1,
    "vww_96_int8.tflite": 1,
    "audio_preprocessor_int8.tflite": 11,
}
"""How many operators TOSA has no exact form of: SOFTMAX, and those of signal processing."""


@pytest.mark.parametrize("name", CPU_OPERATORS)
def test_whole_networks_are_exact(name: str, model_file: Callable[[str], Path]) -> None:
    found = assert_exact(model_file(name).read_bytes())
    assert kinds(found).count("CUSTOM") == CPU_OPERATORS[name]


def test_a_network_of_300_kb_is_lowered_in_a_tenth_of_a_second(
    model_file: Callable[[str], Path], slowness: float
) -> None:
    data = model_file("vww_96_int8.tflite").read_bytes()
    seconds: list[float] = []
    for _ in range(5):
        start = time.process_time()
        lower(read(data, "vww"))
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.1 * slowness
