"""ONNX networks compiled: what is on the NPU, what it computes, and how the report names it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="ONNX is not installed (pip install '.[onnx]')")

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.loading import load
from mizzen.artifact.onnx_steps import OrtStep
from mizzen.diagnostics import Device, MizzenError, Severity
from mizzen.report import CompileReport

from ...frontends.onnx.lowering.networks import (  # noqa: TID252 tests are no package with a name
    Network,
    from_runtime,
)
from .networks import X, differing, images, outputs, reference, torn, whole

ACCELERATORS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")


def report_of(artifact: Artifact) -> CompileReport:
    assert artifact.report is not None
    return artifact.report


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_a_network_of_integers_is_on_the_npu(accelerator: str, dtype: str) -> None:
    data, x = whole(dtype).data, images()
    artifact = mizzen.compile(data, accelerator)
    assert {place.device for place in report_of(artifact).placements} == {Device.NPU}
    assert artifact.name == "model_vela.tflite"
    assert differing(outputs(artifact, x), reference(data, x)) == 0


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize(
    "name",
    [
        "digits/qdq_s8_perchannel.onnx",
        "digits/qdq_u8u8.onnx",
        "digits/qop_s8.onnx",
        "emmtrix/micro_kws_m_static_qdq.onnx",
        "emmtrix/micro_kws_m_static_qoperator.onnx",
    ],
)
def test_real_networks_are_wholly_on_the_npu(
    name: str, accelerator: str, model_file: Callable[[str], Path]
) -> None:
    path = model_file(f"onnx/{name}")
    artifact = mizzen.compile(path, accelerator)
    assert not report_of(artifact).on_cpu
    shape = artifact.inputs[0].shape
    x = np.random.default_rng(0).uniform(0, 1, (4, *shape)).astype(np.float32)
    assert differing(outputs(artifact, x), reference(path.read_bytes(), x)) == 0


def test_rows_and_commands_name_the_users_nodes() -> None:
    network = whole()
    report = report_of(mizzen.compile(network.data, "ethos-u55-128"))
    rows = [(row.index, row.kind, row.name) for row in report.placements]
    kinds = [(kind, outputs[0]) for kind, _, outputs, _ in network.nodes]
    named = [(kind, name) for kind, name in kinds if kind in ("Conv", "Relu")]
    assert rows == [(index, *each) for index, each in enumerate(named)]
    (stream,) = report.origins
    assert {origin.operator for origin in stream.values()} <= {index for index, _, _ in rows}
    conv = next(origin for origin in stream.values() if origin.kind == "Conv")
    assert (conv.operator, conv.name) == (0, named[0][1])
    assert report.placements[0].cycles > 0
    assert report.placements[1].after == (0,)


def test_inputs_and_outputs_have_the_users_names() -> None:
    network = whole()
    artifact = mizzen.compile(network.data, "ethos-u55-128")
    assert [info.name for info in artifact.inputs] == ["image"]
    assert [info.name for info in artifact.outputs] == network.outputs
    assert artifact.inputs[0].dtype == np.float32


def test_names_in_the_saved_file(tmp_path: Path) -> None:
    network = whole()
    artifact = mizzen.compile(network.data, "ethos-u55-128")
    artifact.save(tmp_path / artifact.name)
    loaded = load(tmp_path / artifact.name)
    assert [info.name for info in loaded.inputs] == ["image"]
    assert [info.name for info in loaded.outputs] == network.outputs
    assert [info.dtype for info in (*loaded.inputs, *loaded.outputs)] == [np.int8] * 2


def test_bytes_of_the_user_stay_bytes() -> None:
    network = whole("uint8")
    network.nodes = network.nodes[1:-1]
    del network.inputs["image"]
    network.input("quantizelinear0_0", (1, 2, 6, 5), np.uint8)
    network.outputs = [network.nodes[-1][2][0]]
    data = network.data
    artifact = mizzen.compile(data, "ethos-u55-128")
    assert not report_of(artifact).on_cpu
    assert [info.dtype for info in (*artifact.inputs, *artifact.outputs)] == [np.uint8] * 2
    x = np.random.default_rng(3).integers(0, 256, (8, 1, 2, 6, 5)).astype(np.uint8)
    assert differing(outputs(artifact, x), reference(data, x)) == 0


def test_an_operator_of_real_numbers_runs_in_onnx_runtime(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    data, x = torn().data, images()
    artifact = mizzen.compile(data, "ethos-u55-128")
    report = report_of(artifact)
    assert [place.kind for place in report.on_cpu] == ["LRN"]
    (reason,) = report.on_cpu[0].reasons
    assert reason.rule == "no-integer-form"
    assert artifact.name == "model_vela.zip"
    session = runtime.InferenceSession(data, providers=["CPUExecutionProvider"])
    theirs = np.stack([session.run(None, {"image": image})[0] for image in x])
    ours = outputs(artifact, x)
    assert np.abs(ours[0].reshape(theirs.shape) - theirs).max() <= 0.1 + 1e-6  # one step
    artifact.save(tmp_path / artifact.name)
    again = load(tmp_path / artifact.name)
    assert differing(outputs(again, x), ours) == 0
    assert [info.name for info in again.outputs] == [info.name for info in artifact.outputs]


def test_operators_that_the_user_keeps_are_whole_steps() -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    data, x = whole("uint8").data, images()
    artifact = mizzen.compile(data, "ethos-u55-128", ignore_ops=["CONV"])
    assert [place.kind for place in report_of(artifact).on_cpu] == ["Conv", "Relu"]
    (step,) = [step for step in artifact.steps if isinstance(step, OrtStep)]
    assert step.kinds == ("Conv", "Relu")
    (ours,), (theirs,) = outputs(artifact, x), reference(data, x)
    assert np.abs(ours.reshape(theirs.shape) - theirs).max() <= 0.1 + 1e-6  # one step: a tie


def test_a_type_of_operator_that_onnx_has_not() -> None:
    assert error(whole().data, ignore_ops=["SOFTMAXX"]) == (
        "error[E222]: an operator type to keep on the CPU must be one of ONNX's, not 'SOFTMAXX'\n"
        "  help did you mean Softmax?"
    )


def error(data: bytes, **options: Any) -> str:
    with pytest.raises(MizzenError) as caught:
        mizzen.compile(data, "ethos-u55-128", **options)
    return str(caught.value)


def test_a_network_of_real_numbers() -> None:
    network = whole()
    network.nodes = [node for node in network.nodes if "Quantize" not in node[0]]
    x = network.input("image", (1, 2, 6, 5))
    network.nodes = []
    network.outputs = [network.add("Relu", x)]
    assert error(network.data) == (
        "error[E107]: model.onnx must be quantised, and nothing in it is: all of its numbers are "
        "real\n"
        "  help mizzen quantize model.onnx --data DATA -o model_int8.onnx"
    )


def test_a_network_of_which_only_weights_are_integers() -> None:
    network = Network()
    x = network.input("image", (1, 3))
    weight = network.weight(np.ones((3, 3), np.int8), X)
    network.outputs.append(network.add("MatMul", x, weight))
    assert error(network.data).startswith(
        "error[E107]: model.onnx must be quantised, and only its weights are: what passes between "
        "operators is real numbers\n"
    )


def test_a_network_whose_scales_are_given() -> None:
    network = Network()
    x, scale = network.input("x", (1, 3)), network.input("scale", ())
    zero = network.constant(np.array(0, np.int8))
    network.outputs.append(network.add("QuantizeLinear", x, scale, zero))
    assert error(network.data).startswith(
        "error[E107]: model.onnx must be quantised, and its scales are computed when it runs\n"
    )


def opened() -> bytes:
    """Return a network that leaves its batch open."""
    proto = whole().proto
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    del proto.graph.value_info[:]
    for output in proto.graph.output:
        output.type.tensor_type.ClearField("shape")
    return proto.SerializeToString()


def test_what_is_decided_for_the_user_is_said() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = report_of(mizzen.compile(opened(), "ethos-u55-128"))
    (note,) = [each for each in report.diagnostics if each.severity is Severity.NOTE]
    assert note.code == "N189"
    assert note.message == (
        'dimension "batch" of input "image" is taken as 1; --shape batch=N says another'
    )


@pytest.mark.parametrize("shapes", [{"batch": 2}, {"image": (2, 2, 6, 5)}, {"image": [2, 2, 6, 5]}])
def test_shapes_of_the_user(shapes: dict[str, int | tuple[int, ...]]) -> None:
    artifact = mizzen.compile(opened(), "ethos-u55-128", shapes=shapes)
    assert artifact.inputs[0].shape == (2, 2, 6, 5)
    assert not [each for each in report_of(artifact).diagnostics if each.code == "N189"]


@pytest.mark.parametrize(
    "shapes", [{"batch": 0}, {"batch": -1}, {"batch": 1.5}, {"": 1}, {"image": (1, 0)}, {"x": "12"}]
)
def test_shapes_that_are_none(shapes: dict[str, object]) -> None:
    text = error(opened(), shapes=shapes)
    assert text.startswith(
        "error[E197]: a shape must be the name of an input, or of an extent, and whole numbers "
        "from 1, and "
    )


def test_shapes_of_nothing() -> None:
    assert error(opened(), shapes={"bach": 2}).startswith(
        'error[E197]: "bach" must be an input of model.onnx or a symbolic dimension of one, which '
        "are: image, batch"
    )
    assert error(whole().data, shapes={"image": (2, 2, 6, 5)}).startswith("error[E197]")


def test_shapes_of_networks_that_leave_none_open() -> None:
    from mizzen.package.tflite.builder import NetworkBuilder

    net = NetworkBuilder()
    x, y = net.tensor("x", (1, 8), "int8", 0.1), net.tensor("y", (1, 8), "int8", 0.1)
    net.operator("RELU", [x], [y])
    assert error(net.finish([x], [y]), shapes={"x": (2, 8)}) == (
        "error[E197]: shapes are for ONNX networks, which may leave extents open, and "
        "model.tflite is not one: x\n"
        "  help leave out --shape"
    )


def test_weights_in_a_file_beside_it(tmp_path: Path) -> None:
    import onnx

    proto = whole().proto
    onnx.save(
        proto, tmp_path / "net.onnx", save_as_external_data=True, location="w", size_threshold=0
    )
    path = tmp_path / "net.onnx"
    artifact = mizzen.compile(path, "ethos-u55-128")
    x = images()
    assert differing(outputs(artifact, x), reference(whole().data, x)) == 0
    assert error(path.read_bytes()).startswith("error[E191]")


def test_checking_is_compiling() -> None:
    checked = mizzen.check(whole().data, "ethos-u55-128")
    assert checked.holds
    assert checked.artifact is not None
    assert not mizzen.check(torn().data, "ethos-u55-128").holds


def test_indices_of_64_bits_reach_an_operator_that_stays_on_the_cpu() -> None:
    """Its lowered form takes them in 32 bits, which no tensor of the network is."""
    network = Network()
    table = network.weight(np.arange(-60, 60).reshape(30, 4).astype(np.int8), X)
    places = network.input("places", (5,), np.int64)
    network.outputs.append(network.both(network.add("Gather", table, places, axis=0), X))
    artifact = mizzen.compile(network.data, ACCELERATORS[0], ignore_ops=("Gather",))
    given = np.array([3, 0, 29, -1, 7], np.int64)
    assert [each.kind for each in report_of(artifact).on_cpu] == ["Gather"]
    (wanted,) = from_runtime(network, {"places": given})
    assert np.array_equal(artifact.run(given), wanted)
