"""Whole quantised networks: what stays with ONNX Runtime, and how far results are off its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="ONNX is not installed (pip install '.[onnx]')")

from mizzen.frontends.onnx.lowering.lower import lower
from mizzen.frontends.onnx.lowering.lowered import Lowered
from mizzen.frontends.onnx.reading import read
from mizzen.graph import Array

from .networks import LIMITS, computed, on_host

INPUTS = 4

NETWORKS = {
    "digits/qdq_s8_perchannel.onnx": 1,
    "digits/qdq_s8_pertensor.onnx": 1,
    "digits/qdq_s8_symmetric.onnx": 1,
    "digits/qdq_u8s8_perchannel.onnx": 1,
    "digits/qdq_u8u8.onnx": 1,
    "digits/qop_s8.onnx": 1,
    "emmtrix/micro_kws_m_qdq.onnx": 1,
    "emmtrix/micro_kws_m_static_qdq.onnx": 1,
    "emmtrix/micro_kws_m_static_qoperator.onnx": 1,
    "emmtrix/micro_kws_m_qoperator_add_shape.onnx": 1,
    "st_quantised_here/st_mobilenet_v2_128_0.5_qdq.onnx": 1,
    "tract/qrelu_1.onnx": 0,
    "tract/qsigmoid_2.onnx": 0,
    "tract/qtanh_1.onnx": 0,
    # 16 bits: sums of 48 are scaled by 15, and means of them by 16.
    "digits/qdq_a16w8.onnx": 16,
}
"""Files that are wholly integers, and by how many steps an output may be off ONNX Runtime's."""

ModelFile = Callable[[str], Path]


def lowered_file(path: Path) -> Lowered:
    return lower(read(path.read_bytes(), path.name, path.parent), LIMITS)


@pytest.mark.parametrize("name", NETWORKS)
def test_nothing_stays_with_the_runtime(name: str, model_file: ModelFile) -> None:
    lowering = lowered_file(model_file(f"onnx/{name}"))
    assert on_host(lowering) == {}
    graph = lowering.graph
    assert [value.name for value in graph.inputs] == list(lowering.model.inputs)
    assert [value.name for value in graph.outputs] == list(lowering.model.outputs)


def of_runtime(path: Path, inputs: dict[str, Array]) -> Sequence[Array]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    results: Any = onnxruntime.InferenceSession(str(path), options).run(None, inputs)
    return list(results)


@pytest.mark.parametrize("name", NETWORKS)
def test_outputs_are_near_onnx_runtimes(name: str, model_file: ModelFile) -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    path = model_file(f"onnx/{name}")
    lowering = lowered_file(path)
    generator = np.random.default_rng(3)
    for _ in range(INPUTS):
        given = {
            name: generator.normal(size=lowering.model.types[name].shape).astype(np.float32)
            for name in lowering.model.inputs
        }
        (result,) = computed(lowering, *given.values())
        (wanted,) = of_runtime(path, given)
        (output,) = lowering.graph.outputs
        assert output.producer is not None
        quantization = output.producer.operands[0].quantization
        assert quantization is not None
        off = np.rint(np.abs(result.astype(np.float64) - wanted) / quantization.scale)
        assert off.max() <= NETWORKS[name]


def test_digits_are_classified_as_onnx_runtime_does(model_file: ModelFile) -> None:
    """On the images that the results of ONNX Runtime 1.32 were kept for."""
    path = model_file("onnx/digits/qdq_s8_perchannel.onnx")
    kept = np.load(path.with_name("qdq_s8_perchannel_ort.npz"))
    images = np.load(path.with_name("data.npz"))
    wanted = kept["y"]
    lowering = lowered_file(path)
    shape = lowering.model.types[lowering.model.inputs[0]].shape
    test = images["test"]
    classes = [computed(lowering, image.reshape(shape).astype(np.float32))[0].argmax()
               for image in test[: len(wanted)]]  # fmt: skip
    assert classes == wanted.reshape(len(wanted), -1).argmax(1).tolist()
