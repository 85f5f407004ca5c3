"""A layer alone with other channels: a network that computes the layer where they are its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mizzen.analysis.layers.neighbours import (
    Axis,
    channels_of,
    counts_around,
    forms_of,
    neighbour,
)
from mizzen.artifact.steps import read_network
from mizzen.cpu import CpuKernels
from mizzen.package.tflite.extract import extract


@pytest.fixture(scope="module")
def kernels() -> type[CpuKernels]:
    pytest.importorskip("tflite_micro")
    return CpuKernels


def test_numbers_around() -> None:
    assert counts_around(17) == [16, 17, 18, 24, 32]
    assert counts_around(32) == [16, 24, 31, 32, 33]
    assert counts_around(1) == [1, 2, 8, 16, 32]


@pytest.mark.parametrize("index", [0, 1, 11])
def test_with_its_own_channels_it_is_the_layer(
    index: int, model_file: Callable[[str], Path], kernels: type[CpuKernels]
) -> None:
    path = model_file("kws_ref_model.tflite")
    model = read_network(path.read_bytes(), path.name)
    operator = model.main.operators[index]
    whole = extract(model.record, [index]).network
    (source,) = read_network(whole, "layer").main.inputs
    info = read_network(whole, "layer").main.tensors[source]
    x = np.random.default_rng(index).integers(-128, 128, (1, *info.shape)).astype(np.int8)
    (wanted,) = kernels(whole, []).run([x], 1)
    forms = forms_of(model, operator)
    assert forms
    for form in forms:
        alone = neighbour(model, operator, form, channels_of(model, operator, form))
        (got,) = kernels(alone, []).run([x], 1)
        assert np.array_equal(got, wanted)


def test_more_channels_repeat_those_there_are(
    model_file: Callable[[str], Path], kernels: type[CpuKernels]
) -> None:
    path = model_file("kws_ref_model.tflite")
    model = read_network(path.read_bytes(), path.name)
    operator = model.main.operators[2]
    form = forms_of(model, operator)[0]
    assert (form.axis, channels_of(model, operator, form)) == (Axis.OUTPUT, 64)
    x = np.random.default_rng(0).integers(-128, 128, (1, 1, 25, 5, 64)).astype(np.int8)
    (wanted,) = kernels(neighbour(model, operator, form, 64), []).run([x], 1)
    (got,) = kernels(neighbour(model, operator, form, 67), []).run([x], 1)
    assert np.array_equal(got, np.concatenate([wanted, wanted[..., :3]], axis=-1))


def test_what_has_no_weights_has_no_neighbours(model_file: Callable[[str], Path]) -> None:
    path = model_file("kws_ref_model.tflite")
    model = read_network(path.read_bytes(), path.name)
    assert [forms_of(model, model.main.operators[index]) for index in (9, 10, 12)] == [()] * 3
