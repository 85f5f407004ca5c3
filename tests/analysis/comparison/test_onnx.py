"""ONNX networks beside ONNX Runtime: each layer judged by itself, by what the artifact gave it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="ONNX is not installed (pip install '.[onnx]')")
pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed (pip install '.[onnx]')")

from mizzen.analysis.comparison.exactness import Inputs, compare, failures_of
from mizzen.analysis.comparison.onnx import OnnxComparison, onnx_beside
from mizzen.artifact.interface import Array
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.options import CompileOptions
from mizzen.compiler.source import Source
from mizzen.diagnostics import Device, MizzenError
from mizzen.report.comparison import LayerComparison, Outcome

from ...compiler.onnx.networks import images, torn, whole  # noqa: TID252 no package with a name

U55 = "ethos-u55-128"


def layers_of(data: bytes, inputs: Inputs | None = None) -> dict[str, LayerComparison]:
    result = compare(data, U55, inputs=inputs)
    assert not list(failures_of(result))
    return {layer.kind: layer for layer in result.layers}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_layers_of_small_networks(dtype: str) -> None:
    layers = layers_of(whole(dtype).data, Inputs(arrays=[images(32)]))
    relu = layers["Relu"]
    assert relu.outcome in (Outcome.EQUAL, Outcome.BOUNDED)
    assert relu.elements == 32 * 120
    assert layers["Conv"].outcome in (Outcome.EQUAL, Outcome.BOUNDED, Outcome.FUSED)


def test_what_onnx_runtime_computes_is_equal() -> None:
    layers = layers_of(torn().data)
    assert (layers["LRN"].outcome, layers["LRN"].device) == (Outcome.EQUAL, Device.CPU)


@pytest.mark.parametrize(
    "name", ["digits/qdq_u8s8_perchannel.onnx", "emmtrix/micro_kws_m_static_qdq.onnx"]
)
def test_real_networks(name: str, model_file: Callable[[str], Path]) -> None:
    result = compare(model_file(f"onnx/{name}"), U55)
    assert not result.wrong
    assert result.reference == "ONNX Runtime"
    seen = [layer for layer in result.layers if layer.outcome is not Outcome.FUSED]
    assert {layer.outcome for layer in seen} <= {Outcome.EQUAL, Outcome.BOUNDED}
    assert all(layer.steps <= 1 for layer in seen)
    assert len(seen) >= len(result.layers) - 3


def beside(data: bytes) -> OnnxComparison:
    target = resolve_target(CompileOptions(U55, prove="off"))
    return onnx_beside(Source(data, "net.onnx"), target, None, None)


def test_a_layer_that_is_wrong_is_named_and_no_other() -> None:
    """The first convolution of the reference has other biases than the artifact's."""
    network = torn()
    compared, other = beside(network.data), _with_other_bias()
    for layer, step in compared._steps.items():  # pyright: ignore[reportPrivateUsage]
        if layer.index == 0:
            step.model = other
    compared.add([[images(4)]])
    layers, _ = compared.result()
    assert layers[0].outcome is Outcome.DIFFERS
    assert layers[0].steps > 1
    assert {layer.outcome for layer in layers[1:]} <= {Outcome.EQUAL, Outcome.BOUNDED}


def _with_other_bias() -> bytes:
    import onnx

    compared = beside(torn().data)
    step = next(iter(compared._steps.values()))  # pyright: ignore[reportPrivateUsage]
    model = onnx.load_model_from_string(step.model)
    for tensor in model.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        if array.dtype == np.int32 and array.size > 1:
            changed: Array = array + np.int32(2000)
            tensor.CopyFrom(onnx.numpy_helper.from_array(changed, tensor.name))
    return model.SerializeToString()


def test_an_artifact_that_was_there_before() -> None:
    compared = beside(whole().data)
    with pytest.raises(MizzenError) as caught:
        compare(whole().data, U55, artifact=compared.artifact)
    assert caught.value.diagnostic.code == "E489"
