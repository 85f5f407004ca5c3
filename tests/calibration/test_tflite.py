from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import mizzen
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.steps import read_network
from mizzen.calibration import Activations, Method, Quantized, Scheme, quantize_file
from mizzen.calibration.tflite_record import normal
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer.tflite import TensorType
from mizzen.frontends.tflite import Model

from . import networks
from .networks import floats, reals, saved

pytest.importorskip("ai_edge_quantizer")

pytestmark = pytest.mark.filterwarnings("ignore::mizzen.diagnostics.MizzenWarning")

Array = npt.NDArray[Any]
SHAPE = (6, 6, 2)


def _not_found(name: str) -> None:
    """Find no package."""


def quantised(path: Path, scheme: Scheme | None = None, count: int = 32) -> Quantized:
    return quantize_file(path, saved(path.parent, reals(count, SHAPE)), scheme=scheme)


def model_of(result: Quantized) -> Model:
    return read_network(result.data, "quantised.tflite")


def outputs(data: bytes, arrays: Array) -> Array:
    """Return what TensorFlow Lite Micro computes, as real numbers."""
    artifact = artifact_of(data, "net.tflite")
    info, (given,) = artifact.outputs[0], artifact.inputs
    if given.quantization is not None:
        scale, zero = given.quantization.scale[0], given.quantization.zero_point[0]
        limits = np.iinfo(given.dtype)
        arrays = np.clip(np.rint(arrays / scale) + zero, limits.min, limits.max).astype(given.dtype)
    result = artifact.run(arrays)
    assert isinstance(result, np.ndarray)
    if info.quantization is None:
        return result
    zero = info.quantization.zero_point[0]
    return (result.astype(np.float64) - zero) * info.quantization.scale[0]


def test_everything_becomes_integers_and_goes_to_the_npu(tmp_path: Path) -> None:
    """Inputs and outputs too. The codes of operators are in the field of old files."""
    path = networks.tflite_file(tmp_path)
    result = quantised(path)
    main = model_of(result).main
    kinds = {tensor.type for o in main.operators for tensor in main.present(o.outputs)}
    assert kinds == {TensorType.INT8}
    biases = [main.tensors[main.operators[place].inputs[2]] for place in (0, 2)]
    assert {tensor.type for tensor in biases} == {TensorType.INT32}
    assert not result.report.floating
    assert not result.diagnostics
    path.write_bytes(result.data)
    report = mizzen.compile(path, "ethos-u55-128").report
    assert report is not None
    assert not report.on_cpu


def test_sixteen_bits(tmp_path: Path) -> None:
    result = quantised(networks.tflite_file(tmp_path), Scheme(activations=Activations.INT16))
    main = model_of(result).main
    assert main.tensors[main.inputs[0]].type is TensorType.INT16
    assert main.tensors[main.operators[0].inputs[1]].type is TensorType.INT8
    precision = result.report.precision
    assert precision is not None
    assert all(layer.sqnr_db is not None and layer.sqnr_db > 40 for layer in precision.layers)


def test_a_bias_beside_weights_of_next_to_nothing(tmp_path: Path) -> None:
    """What batch normalisation leaves of a dead channel: the bias alone, which must stay."""
    weights = np.random.default_rng(1).normal(size=(4, 3, 3, 2)).astype(np.float32)
    weights[1:3] *= np.float32(1e-30)
    bias = floats([0.5, 1.25, 0.75, -0.25])
    path = networks.tflite_file(tmp_path, weights, bias)
    result = quantised(path)
    precision = result.report.precision
    assert precision is not None
    assert all(layer.sqnr_db is not None and layer.sqnr_db > 30 for layer in precision.layers)
    arrays = reals(32, SHAPE)
    exact = outputs(path.read_bytes(), arrays)
    assert np.abs(outputs(result.data, arrays) - exact).max() < 0.05 * np.abs(exact).max()


def test_an_operator_stays_in_floating_point(tmp_path: Path) -> None:
    """By its name, the first of what a converter joined, or its number."""
    path = networks.tflite_file(tmp_path)
    for name in ("maps;bias;sums", "maps", "0"):
        result = quantised(path, Scheme(keep_float=(name,)))
        assert [each.kind for each in result.report.floating] == ["CONV_2D"]


def test_a_network_is_cut(tmp_path: Path) -> None:
    main = model_of(quantised(networks.tflite_file(tmp_path), Scheme(cuts=("maps",)))).main
    assert [operator.kind for operator in main.operators] == ["CONV_2D"]
    assert [tensor.shape for tensor in main.present(main.outputs)] == [(1, 4, 4, 4)]


def test_a_percentile(tmp_path: Path) -> None:
    """One outlier in a hundred thousand numbers does not make the range."""
    path = networks.tflite_file(tmp_path)
    arrays = np.random.default_rng(0).uniform(-1, 1, (2048, *SHAPE)).astype(np.float32)
    arrays[7, 0, 0, 0] = 20
    data = saved(tmp_path, arrays)
    scales: list[float] = []
    for method in (Method.MINMAX, Method.PERCENTILE):
        result = quantize_file(path, data, scheme=Scheme(method), samples=2048)
        main = model_of(result).main
        quantization = main.tensors[main.inputs[0]].quantization
        assert quantization is not None
        scales.append(quantization.scale[0])
    assert scales == pytest.approx([21 / 255, 2 / 255], rel=0.05)


def test_the_form_that_the_quantiser_reads() -> None:
    """Codes in the new field, a name for each tensor, and no contents that nothing has."""
    record = {
        "operator_codes": [{"deprecated_builtin_code": 9, "builtin_code": 0}],
        "subgraphs": [
            {
                "tensors": [{"name": name, "buffer": 1} for name in ("a", "a", None)],
                "operators": None,
            }
        ],
        "buffers": [{}, {"data": b"used"}, {"data": b"left"}, {"data": b"of metadata"}],
        "metadata": [{"name": "m", "buffer": 3}],
    }
    result = normal(record)
    assert result["operator_codes"][0]["builtin_code"] == 9
    assert [t["name"] for t in result["subgraphs"][0]["tensors"]] == ["a", "a_1", "tensor_2"]
    assert result["buffers"] == [{}, {"data": b"used"}, {}, {"data": b"of metadata"}]


def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = networks.tflite_file(tmp_path)
    done = tmp_path / "done.tflite"
    done.write_bytes(quantised(path).data)
    for network, scheme, said in (
        (done, Scheme(), "done.tflite must be a floating-point network"),
        (path, Scheme(Method.ENTROPY), "ranges of TFLite networks are found by minmax, percentile"),
        (path, Scheme(keep_float=("map",)), "none is 'map'\n  help did you mean 'maps'"),
        (path, Scheme(cuts=("3",)), "--cut must name an operator"),
    ):
        with pytest.raises(MizzenError, match="E198") as caught:
            quantised(network, scheme)
        assert said in str(caught.value)
    monkeypatch.setattr("mizzen.calibration.tflite.find_spec", _not_found)
    with pytest.raises(MizzenError, match="E199") as caught:
        quantised(path)
    assert (
        caught.value.diagnostic.help
        == "install Mizzen with its extra quantize: pip install '.[quantize]' in its checkout"
    )
