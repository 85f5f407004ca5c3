from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mizzen.analysis.comparison.precision_onnx import OnnxNetworks
from mizzen.calibration import Activations, Method, Quantized, Scheme, quantize_file
from mizzen.diagnostics import MizzenError

from . import networks
from .networks import Array, reals, saved

onnx: Any = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

pytestmark = pytest.mark.filterwarnings("ignore::mizzen.diagnostics.MizzenWarning")


def _not_found(name: str) -> None:
    """Find no package."""


def quantised(path: Path, scheme: Scheme | None = None, count: int = 32, **words: Any) -> Quantized:
    return quantize_file(path, saved(path.parent, reals(count)), scheme=scheme, **words)


def kinds(result: Quantized) -> Counter[str]:
    return Counter(node.op_type for node in onnx.load_model_from_string(result.data).graph.node)


def code_of(path: Path, scheme: Scheme | None = None, count: int = 32) -> str:
    with pytest.raises(MizzenError) as caught:
        quantised(path, scheme, count)
    return caught.value.diagnostic.render()


def test_everything_becomes_integers(tmp_path: Path) -> None:
    """Weights have a scale by channel, the ReLU is the range of what is in front of it."""
    result = quantised(networks.classifier(tmp_path))
    model = onnx.load_model_from_string(result.data)
    held = {tensor.name: tensor for tensor in model.graph.initializer}
    weights = next(node for node in model.graph.node if node.name.startswith("w_"))
    assert onnx.numpy_helper.to_array(held[weights.input[1]]).shape == (4,)
    assert held[weights.input[0]].data_type == onnx.TensorProto.INT8
    assert "Relu" not in kinds(result)
    assert not result.report.floating
    assert not result.diagnostics
    onnx.checker.check_model(model)


def test_each_layer_is_held_against_the_floating_point_one(tmp_path: Path) -> None:
    """By the names of its results, that of the output too."""
    precision = quantised(networks.classifier(tmp_path)).report.precision
    assert precision is not None
    assert {layer.name for layer in precision.layers} == {"maps", "means", "flat", "y"}
    assert not precision.unmatched
    assert all(layer.sqnr_db is not None and layer.sqnr_db > 25 for layer in precision.layers)


def test_sixteen_bits_have_no_zero_point_and_one_rounding(tmp_path: Path) -> None:
    result = quantised(networks.classifier(tmp_path), Scheme(activations=Activations.INT16))
    model = onnx.load_model_from_string(result.data)
    held = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    zeros = [held[n.input[2]] for n in model.graph.node if n.op_type == "QuantizeLinear"]
    assert {zero.dtype.name for zero in zeros} == {"int16"}
    assert not any(zero.any() for zero in zeros)
    relu = next(node for node in model.graph.node if node.op_type == "Relu")
    maker = next(node for node in model.graph.node if relu.input[0] in node.output)
    assert maker.op_type == "Conv"
    assert not result.report.floating
    precision = result.report.precision
    assert precision is not None
    assert all(layer.sqnr_db is not None and layer.sqnr_db > 40 for layer in precision.layers)


def test_old_operators_are_written_anew(tmp_path: Path) -> None:
    result = quantised(networks.classifier(tmp_path, opset=11))
    model = onnx.load_model_from_string(result.data)
    assert {each.domain: each.version for each in model.opset_import} == {"": 13}
    assert "operators of opset 11 are written as those of opset 13" in result.report.said


def test_a_bias_of_two_axes(tmp_path: Path) -> None:
    """What ONNX Runtime makes of a MatMul and an Add, which its quantiser does not take."""
    random = np.random.default_rng(0)
    constants = {
        "w": random.normal(size=(72, 5)).astype(np.float32),
        "b": random.normal(size=(1, 5)).astype(np.float32),
    }
    nodes = [
        onnx.helper.make_node("Flatten", ["x"], ["flat"]),
        onnx.helper.make_node("MatMul", ["flat", "w"], ["sums"]),
        onnx.helper.make_node("Add", ["sums", "b"], ["y"]),
    ]
    path = networks.onnx_file(tmp_path / "net.onnx", nodes, constants, ["y"])
    precision = quantised(path).report.precision
    assert precision is not None
    assert all(layer.sqnr_db is not None and layer.sqnr_db > 25 for layer in precision.layers)


def test_an_open_batch_is_one(tmp_path: Path) -> None:
    path = networks.classifier(tmp_path, batch="N")
    one, other = quantised(path), quantised(path, shapes={"N": 1})
    shape = onnx.load_model_from_string(one.data).graph.input[0].type.tensor_type.shape
    assert [dim.dim_value for dim in shape.dim] == list(networks.SHAPE)
    assert any('"N"' in said for said in one.report.said)
    assert one.data == other.data


@pytest.mark.parametrize("name", ["conv", "sums", "0"])
def test_an_operator_stays_in_floating_point(tmp_path: Path, name: str) -> None:
    """By its name, its output, its number. The ReLU behind it, which nothing limits, stays too."""
    result = quantised(networks.classifier(tmp_path), Scheme(keep_float=(name,)))
    assert {each.kind for each in result.report.floating} >= {"Conv"}
    model = onnx.load_model_from_string(result.data)
    conv = next(node for node in model.graph.node if node.op_type == "Conv")
    assert conv.input[0] == "x"
    assert conv.input[1] == "w"


@pytest.mark.parametrize("name", ["relu", "maps", "1"])
def test_a_network_is_cut(tmp_path: Path, name: str) -> None:
    result = quantised(networks.classifier(tmp_path), Scheme(cuts=(name,)))
    graph = onnx.load_model_from_string(result.data).graph
    assert [value.name for value in graph.output] == ["maps"]
    assert "Gemm" not in kinds(result)
    assert not any(tensor.name.startswith("dw") for tensor in graph.initializer)


def test_labels_of_the_whole_network_do_not_judge_a_part(tmp_path: Path) -> None:
    path = networks.classifier(tmp_path)
    data = saved(tmp_path, reals(12), np.zeros(12, np.int64))
    report = quantize_file(path, data, scheme=Scheme(cuts=("relu",))).report
    assert report.evaluation is not None
    assert not report.evaluation.metrics
    assert report.evaluation.reference is not None


def test_scores_beside_boxes(tmp_path: Path) -> None:
    """The operators to end the network with are named; with them there is nothing to say."""
    path = networks.detector(tmp_path)
    (warning,) = quantised(path).diagnostics
    assert warning.code == "W319"
    assert '"s" must keep at least 16 different numbers in "y", and keeps 1' in warning.message
    assert "--cut boxes --cut scores" in (warning.help or "")
    cut = quantised(path, Scheme(cuts=("boxes", "scores")))
    assert not cut.diagnostics
    names = [value.name for value in onnx.load_model_from_string(cut.data).graph.output]
    assert names == ["b", "s"]


@pytest.mark.parametrize("method", [Method.PERCENTILE, Method.ENTROPY])
def test_other_ways_to_find_ranges(
    tmp_path: Path, method: Method, capfd: pytest.CaptureFixture[str]
) -> None:
    result = quantised(networks.classifier(tmp_path), Scheme(method))
    assert result.report.method == method.value
    assert capfd.readouterr() == ("", "")


def test_what_is_refused(tmp_path: Path) -> None:
    path = networks.classifier(tmp_path)
    assert code_of(path, Scheme(Method.SEARCH)).startswith("error[E198]: ranges of ONNX networks")
    assert code_of(path, Scheme(keep_float=("cnv",))) == (
        "error[E198]: --keep-float must name an operator of net.onnx, by its name, its output or "
        "its number, and none is 'cnv'\n  help did you mean 'conv'?"
    )
    assert code_of(path, Scheme(cuts=("17",))).startswith("error[E198]: --cut must name")
    done = tmp_path / "done.onnx"
    done.write_bytes(quantised(path).data)
    assert code_of(done) == (
        "error[E198]: done.onnx must be a floating-point network, and is quantised already\n"
        "  help compile it as it is: `mizzen compile done.onnx`"
    )
    done.write_bytes(b"\x08\x07nothing")
    assert code_of(done).startswith("error[E190]")


def test_data_that_no_network_takes(tmp_path: Path) -> None:
    path = networks.classifier(tmp_path)
    for array, what in (
        (reals(12) * np.inf, "NaN or infinity"),
        (np.ones((12, 2, 6, 6), np.uint8), "uint8"),
    ):
        with pytest.raises(MizzenError, match="E208") as caught:
            quantize_file(path, saved(tmp_path, array))
        assert what in str(caught.value)


def test_weights_beside_the_network(tmp_path: Path) -> None:
    """They are taken from its folder, and from nowhere else."""
    path = networks.classifier(tmp_path)
    whole = quantised(path)
    model = onnx.load(str(path))
    onnx.save(
        model, str(path), save_as_external_data=True, location="weights.bin", size_threshold=0
    )
    assert quantised(path).data == whole.data
    model = onnx.load(str(path), load_external_data=False)
    model.graph.initializer[0].external_data[0].value = "../weights.bin"
    path.write_bytes(model.SerializeToString())
    assert code_of(path).startswith("error[E191]")


def test_a_missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = networks.classifier(tmp_path)
    monkeypatch.setattr("mizzen.calibration.onnx.find_spec", _not_found)
    assert code_of(path) == (
        "error[E199]: onnx must be installed to quantise such a network, and is not\n"
        "  help install Mizzen with its extra onnx: pip install '.[onnx]' in its checkout"
    )


def test_accuracy_on_digits(repository: Path) -> None:
    """Within .003 of the floating-point network, on images that did not calibrate it."""
    folder = repository / "examples" / "digits"
    result = quantize_file(folder / "digits_float.onnx", folder / "test.npz")
    evaluation = result.report.evaluation
    assert evaluation is not None
    assert evaluation.reference is not None
    before, after = evaluation.reference.metrics[0].value, evaluation.metrics[0].value
    assert abs(before - after) <= 0.003


def test_constants_that_operators_share_are_each_ones_own(tmp_path: Path) -> None:
    """Also where the quantiser would name its copy of `b` like the tensor `b1`."""
    random = np.random.default_rng(5)
    constants = {
        "w": random.normal(size=(2, 2, 3, 3)).astype(np.float32),
        "b": random.normal(size=2).astype(np.float32),
        "half": networks.floats([0.5]),
    }
    nodes = [
        onnx.helper.make_node("Conv", ["x", "w", "b"], ["b1"], pads=[1] * 4),
        onnx.helper.make_node("Mul", ["b1", "half"], ["h"]),
        onnx.helper.make_node("ConvTranspose", ["h", "w", "b"], ["i"]),
        onnx.helper.make_node("Mul", ["i", "half"], ["y"]),
    ]
    result = quantised(networks.onnx_file(tmp_path / "net.onnx", nodes, constants, ["y"]))
    model = onnx.load_model_from_string(result.data)
    onnx.checker.check_model(model, full_check=True)
    makers = {name: node for node in model.graph.node for name in node.output}
    users = [node for node in model.graph.node if node.op_type not in QUANTIZING]
    own = [makers[name].input[0] for node in users for name in node.input[1:]]
    assert len(own) == len(set(own)) == 6
    assert all(layer.sqnr_db is not None and layer.sqnr_db > 25 for layer in layers_of(result))


QUANTIZING = ("QuantizeLinear", "DequantizeLinear")


def layers_of(result: Quantized) -> Any:
    assert result.report.precision is not None
    return result.report.precision.layers


@pytest.mark.parametrize("suffix", ["_scale", "_zero_point", "_quantized"])
def test_names_that_the_quantiser_gives_are_free(tmp_path: Path, suffix: str) -> None:
    """Constants, and what operators compute; inputs and outputs keep their names."""
    nodes = [
        onnx.helper.make_node("Mul", ["x", f"x{suffix}"], ["h"]),
        onnx.helper.make_node("Sigmoid", ["h"], [f"h{suffix}"]),
        onnx.helper.make_node("Add", ["h", f"h{suffix}"], ["y"]),
    ]
    constants = {f"x{suffix}": np.ones((1, 2, 1, 1), np.float32) * 3}
    result = quantised(networks.onnx_file(tmp_path / "net.onnx", nodes, constants, ["y"]))
    onnx.checker.check_model(onnx.load_model_from_string(result.data), full_check=True)
    assert all(layer.sqnr_db is not None and layer.sqnr_db > 25 for layer in layers_of(result))


def test_a_network_that_comes_out_damaged_is_refused(tmp_path: Path) -> None:
    """Outputs keep their names: where the quantiser takes them for its own, there is no file."""
    nodes = [
        onnx.helper.make_node("Sigmoid", ["x"], ["y"]),
        onnx.helper.make_node("Relu", ["y"], ["y_QuantizeLinear_Output"]),
        onnx.helper.make_node("Tanh", ["y_QuantizeLinear_Output"], ["z"]),
    ]
    outputs = ["y", "y_QuantizeLinear_Output", "z"]
    path = networks.onnx_file(tmp_path / "net.onnx", nodes, {}, outputs)
    text = code_of(path)
    assert text.startswith("error[E198]: the quantised network must be one that can be read, and ")
    assert "operator 4 QuantizeLinear" in text
    assert "help rename what the message names" in text


def test_transposed_convolutions_in_groups_have_one_scale(tmp_path: Path) -> None:
    """Channels of their weights are along the axis of one group alone."""
    random = np.random.default_rng(6)
    constants = {
        "w": random.normal(size=(4, 3, 3, 3)).astype(np.float32),
        "b": random.normal(size=6).astype(np.float32),
        "v": random.normal(size=(4, 2, 1, 1)).astype(np.float32),
    }
    nodes = [
        onnx.helper.make_node("Conv", ["x", "v"], ["h"], name="conv"),
        onnx.helper.make_node("ConvTranspose", ["h", "w", "b"], ["y"], group=2, name="up"),
    ]
    result = quantised(networks.onnx_file(tmp_path / "net.onnx", nodes, constants, ["y"]))
    assert not result.report.floating
    model = onnx.load_model_from_string(result.data)
    held = {each.name: each for each in model.graph.initializer}
    sizes = {
        node.input[0]: len(held[node.input[1]].dims)
        for node in model.graph.node
        if node.input[0] in held
    }
    assert sizes == {"w_quantized": 0, "b_quantized": 1, "v_quantized": 1}
    assert all(layer.sqnr_db is not None and layer.sqnr_db > 25 for layer in layers_of(result))


def test_large_networks_are_measured_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All tensors of both networks are held at once: few inferences of many, or of large ones."""
    counts: list[int] = []
    infer = OnnxNetworks.infer

    def counted(networks: OnnxNetworks, arrays: Sequence[Array]) -> Any:
        counts.append(len(arrays[0]))
        return infer(networks, arrays)

    monkeypatch.setattr(OnnxNetworks, "infer", counted)
    path = networks.classifier(tmp_path)
    noise = quantised(path).report.precision
    assert counts == [16, 16]
    counts.clear()
    measuring = import_module("mizzen.analysis.comparison.precision")
    monkeypatch.setattr(measuring, "MOST_BYTES", 5000)
    parts = quantised(path).report.precision
    assert sum(counts) == 32
    assert max(counts) < 10
    assert noise is not None
    assert parts is not None
    for one, other in zip(noise.layers, parts.layers, strict=True):
        assert one.sqnr_db == pytest.approx(other.sqnr_db)


@pytest.mark.parametrize("far", [-np.inf, -3e38])
def test_constants_that_no_scale_reaches_stay_in_floating_point(tmp_path: Path, far: float) -> None:
    nodes = [
        onnx.helper.make_node("Max", ["x", "least"], ["h"], name="most"),
        onnx.helper.make_node("Sigmoid", ["h"], ["y"], name="s"),
    ]
    constants = {"least": networks.floats([far])}
    result = quantised(networks.onnx_file(tmp_path / "net.onnx", nodes, constants, ["y"]))
    assert [each.name for each in result.report.floating] == ["h"]


def test_zeros_that_are_added_are_left_out(tmp_path: Path) -> None:
    """They have no range, and with a scale far from the other's ONNX Runtime's sums are wrong."""
    nodes = [
        onnx.helper.make_node("Add", ["x", "nothing"], ["h"], name="sum"),
        onnx.helper.make_node("Sigmoid", ["h"], ["s"], name="s"),
        onnx.helper.make_node("Add", ["wide", "s"], ["y"], name="wider"),
    ]
    constants = {
        "nothing": np.zeros((2, 1, 1), np.float32),
        "wide": np.zeros((3, 1, 2, 6, 6), np.float32),
    }
    result = quantised(networks.onnx_file(tmp_path / "net.onnx", nodes, constants, ["y"]))
    model = onnx.load_model_from_string(result.data)
    added = [node.name for node in model.graph.node if node.op_type == "Add"]
    assert added == ["wider"]
    assert "nothing_quantized" not in {each.name for each in model.graph.initializer}


def test_an_input_may_be_one_number(tmp_path: Path) -> None:
    nodes = [onnx.helper.make_node("Sigmoid", ["x"], ["y"])]
    path = networks.onnx_file(tmp_path / "net.onnx", nodes, {}, ["y"], shape=())
    result = quantize_file(path, saved(tmp_path, reals(12, ())))
    assert not result.report.floating
