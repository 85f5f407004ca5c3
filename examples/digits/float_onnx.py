"""Write the trained float network as ONNX, and images to calibrate and to test it with.

    python examples/digits/float_onnx.py

Tensors are [N, channels, height, width], as PyTorch's exporter writes them; the batch is open.
`docs/how-to/quantize.md` quantises what this writes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from demo import Digits, load_digits
from network import Array, Convolution, Network, make_network, same_padding, train

OPSET, IR_VERSION = 17, 8
CALIBRATION_IMAGES, TEST_IMAGES = 64, 200


def to_onnx(network: Network) -> onnx.ModelProto:
    """Return the network, whose input is `image` and whose output is `scores`."""
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []

    def constant(name: str, array: Array) -> str:
        constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    x, side = "image", 8
    for index, layer in enumerate(network.convolutions):
        weight = constant(f"conv{index}.weight", _kernels(layer))
        bias = constant(f"conv{index}.bias", layer.bias)
        size = layer.weight.shape[0]
        before, after = same_padding(side, size, layer.stride)
        window: dict[str, Any] = {
            "kernel_shape": [size, size],
            "strides": [layer.stride] * 2,
            "pads": [before, before, after, after],
            "group": layer.weight.shape[2] if layer.depthwise else 1,
        }
        sums, name = f"conv{index}.sums", f"conv{index}"
        nodes.append(helper.make_node("Conv", [x, weight, bias], [sums], name=name, **window))
        x, side = f"conv{index}.relu", -(-side // layer.stride)
        nodes.append(helper.make_node("Relu", [sums], [x], name=f"relu{index}"))
    pool: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes.append(helper.make_node("MaxPool", [x], ["pooled"], name="pool", **pool))
    nodes.append(helper.make_node("Flatten", ["pooled"], ["flat"], name="flatten"))
    # Rows of the dense weights are of [height, width, channel], and the tensor has channels first.
    half = side // 2
    rows = network.dense_weight.reshape(half, half, -1, network.dense_weight.shape[1])
    dense = constant("dense.weight", rows.transpose(3, 2, 0, 1).reshape(rows.shape[3], -1))
    given = ["flat", dense, constant("dense.bias", network.dense_bias)]
    nodes.append(helper.make_node("Gemm", given, ["scores"], name="dense", transB=1))
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, ["N", 10])],
        constants,
    )
    versions = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=versions, ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    return model


def _kernels(layer: Convolution) -> Array:
    """Return weights with the output channels first."""
    if layer.depthwise:
        return layer.weight.transpose(2, 0, 1)[:, None]
    return layer.weight.transpose(3, 2, 0, 1)


def write(digits: Digits, network: Network, folder: Path) -> None:
    """Write the network, images that calibrate, and others with their labels."""
    onnx.save(to_onnx(network), folder / "digits_float.onnx")
    calibration = digits.train_images[:CALIBRATION_IMAGES].transpose(0, 3, 1, 2)
    test = digits.images[:TEST_IMAGES].transpose(0, 3, 1, 2)
    np.savez_compressed(folder / "calibration.npz", image=calibration)
    labels = digits.labels[:TEST_IMAGES]
    np.savez_compressed(folder / "test.npz", image=test, labels=labels)


def main() -> None:
    """Train, and write the files."""
    parser = argparse.ArgumentParser(description="Write the digits network as float ONNX.")
    parser.add_argument("--output-dir", type=Path, default=Path(__file__).parent)
    folder: Path = parser.parse_args().output_dir
    folder.mkdir(parents=True, exist_ok=True)
    digits = load_digits()
    network = make_network(seed=0)
    train(network, digits.train_images, digits.train_labels)
    write(digits, network, folder)


if __name__ == "__main__":
    main()
