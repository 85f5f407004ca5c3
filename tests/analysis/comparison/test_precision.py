"""Quantised networks beside their floating-point ones: noise counted once more, by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mizzen.analysis.comparison.precision import (
    Data,
    failures_of,
    precision,
    precision_of_programs,
)
from mizzen.cli.main import main
from mizzen.diagnostics import MizzenError
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.report.precision import BINS

Real = npt.NDArray[np.float32]

FLOAT32 = 1e-4
"""Relative: sums of 8 and 6 products in float32, whose orders differ, have errors of some 14 units
of 2**-24 of their greatest term; the error that is measured is a hundredth of that term."""
DECIBELS = 1e-3
"""20 log10(1 + FLOAT32) is 0.0009 dB."""

RNG = np.random.default_rng(7)
FIRST = RNG.normal(0, 0.5, (6, 8)).astype(np.float32)
SECOND = RNG.normal(0, 0.5, (3, 6)).astype(np.float32)
BIASES = RNG.normal(0, 0.2, 6).astype(np.float32), RNG.normal(0, 0.2, 3).astype(np.float32)
INPUT_STEP, HIDDEN_STEP, OUTPUT_STEP = 0.03, 0.02, 0.025
INPUTS = RNG.uniform(-3, 3, (40, 8)).astype(np.float32)


def options(relu: bool) -> tuple[str, dict[str, Any]]:
    return "FullyConnectedOptions", {"fused_activation_function": int(relu)}


def floating(names: tuple[str, str], *, rounded: bool = False) -> bytes:
    """Return two products with a ReLU between; `rounded` weights are of 8 bits."""
    net = NetworkBuilder()
    x = net.tensor("x", (1, 8), np.float32)
    hidden, y = (
        net.tensor(name, (1, n), np.float32) for name, n in zip(names, (6, 3), strict=True)
    )
    for source, result, weights, bias, relu in (
        (x, hidden, FIRST, BIASES[0], True), (hidden, y, SECOND, BIASES[1], False)
    ):  # fmt: skip
        held = net.constant(f"w{result}", weights)
        if rounded:
            step = float(np.abs(weights).max() / 127)
            held = net.constant(f"w{result}", np.rint(weights / step).astype(np.int8), step)
        net.operator("FULLY_CONNECTED", [source, held, net.constant(f"b{result}", bias)],
                     [result], options(relu))  # fmt: skip
    return net.finish([x], [y])


def quantised(names: tuple[str, str]) -> bytes:
    net = NetworkBuilder()
    x = net.tensor("x_int8", (1, 8), np.int8, INPUT_STEP, 0)
    hidden = net.tensor(names[0], (1, 6), np.int8, HIDDEN_STEP, -128)
    y = net.tensor(names[1], (1, 3), np.int8, OUTPUT_STEP, 5)
    for source, result, step, weights, bias, relu in (
        (x, hidden, INPUT_STEP, FIRST, BIASES[0], True),
        (hidden, y, HIDDEN_STEP, SECOND, BIASES[1], False),
    ):
        weight_step = float(np.abs(weights).max() / 127)
        integers = np.rint(weights / weight_step).astype(np.int8)
        offsets = np.rint(bias / (weight_step * step)).astype(np.int32)
        held = net.constant(f"w{result}", integers, weight_step)
        shift = net.constant(f"b{result}", offsets, weight_step * step)
        net.operator("FULLY_CONNECTED", [source, held, shift], [result], options(relu))
    return net.finish([x], [y])


def reals(values: Real) -> tuple[Real, Real]:
    hidden = np.maximum(values @ FIRST.T + BIASES[0], 0)
    return hidden, hidden @ SECOND.T + BIASES[1]


def sqnr_db(exact: npt.NDArray[Any], found: npt.NDArray[Any]) -> float:
    signal = np.square(exact.astype(np.float64)).sum()
    noise = np.square(exact.astype(np.float64) - found.astype(np.float64)).sum()
    return 10 * math.log10(signal / noise)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    one, other = tmp_path / "net.tflite", tmp_path / "float.tflite"
    one.write_bytes(quantised(("hidden", "y_int8")))
    other.write_bytes(floating(("hidden", "y")))
    return one, other


def test_noise_is_what_one_counts_by_hand(files: tuple[Path, Path]) -> None:
    found = precision(*files, Data([INPUTS]))
    hidden, result = reals(INPUTS)
    import mizzen

    integers = np.clip(np.rint(INPUTS / np.float32(INPUT_STEP)), -128, 127).astype(np.int8)
    given = mizzen.compile(files[0], "ethos-u55-128", prove="off").run(integers)
    assert isinstance(given, np.ndarray)
    ours = (given.astype(np.float64).reshape(-1, 3) - 5) * np.float32(OUTPUT_STEP)
    last = found.layers[-1]
    assert last.sqnr_db == pytest.approx(sqnr_db(result, ours), abs=DECIBELS)
    assert last.largest == pytest.approx(np.abs(result - ours).max(), rel=FLOAT32)
    assert last.mean == pytest.approx(np.abs(result - ours).mean(), rel=FLOAT32)
    steps = np.abs(result - ours) / np.float32(OUTPUT_STEP)
    assert last.bins == tuple(np.histogram(steps, (0, *BINS, np.inf))[0])
    assert (last.elements, sum(last.bins)) == (120, 120)
    assert last.low == pytest.approx(result.min(), rel=FLOAT32 / 10)  # an extreme, no difference
    first = found.layers[0]
    beyond = hidden > (255.5 * HIDDEN_STEP)
    assert first.saturated == pytest.approx(beyond.mean())
    assert found.real_data


def test_tensors_are_matched_through_the_endings_of_converters(tmp_path: Path) -> None:
    one, other = tmp_path / "net.tflite", tmp_path / "float.tflite"
    for names in (
        ("a/Relu;a/BiasAdd", "StatefulPartitionedCall:01"),
        ("a/BiasAdd;a/Relu1", "StatefulPartitionedCall:0"),
        ("something_else", "y"),
    ):
        one.write_bytes(quantised(("a/Relu;a/BiasAdd", "StatefulPartitionedCall:0")))
        other.write_bytes(floating(names))
        found = precision(one, other, Data([INPUTS]))
        assert [row.counterpart for row in found.layers] == list(names)
        assert not found.unmatched


def test_weights_of_8_bits_are_the_real_numbers_that_they_stand_for(
    files: tuple[Path, Path],
) -> None:
    exact = precision(*files, Data([INPUTS])).layers[-1]
    files[1].write_bytes(floating(("hidden", "y"), rounded=True))
    found = precision(*files, Data([INPUTS])).layers[-1]
    assert found.sqnr_db is not None
    assert exact.sqnr_db is not None
    assert found.sqnr_db >= exact.sqnr_db


def test_networks_that_have_nothing_in_common_are_refused(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    net = NetworkBuilder()
    x, y = net.tensor("x", (1, 8), np.float32), net.tensor("z", (1, 8), np.float32)
    net.operator("RELU", [x], [y])
    other = tmp_path / "other.tflite"
    other.write_bytes(net.finish([x], [y]))
    with pytest.raises(MizzenError, match=r"E495.*must have layers in common"):
        precision(files[0], other)
    net = NetworkBuilder()
    x, y = net.tensor("x", (1, 9), np.float32), net.tensor("z", (1, 9), np.float32)
    net.operator("RELU", [x], [y])
    other.write_bytes(net.finish([x], [y]))
    with pytest.raises(MizzenError, match=r"E495.*must take what net.tflite does"):
        precision(files[0], other)


def test_a_layer_that_is_too_noisy_fails(files: tuple[Path, Path]) -> None:
    found = precision(*files, Data([INPUTS]))
    worst = found.worst_first[0]
    assert worst.sqnr_db is not None
    assert not list(failures_of(found, worst.sqnr_db - 0.1))
    (failure,) = failures_of(found, worst.sqnr_db + 0.1)
    assert failure.code == "E486"
    assert worst.name in failure.message


def test_the_command(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", INPUTS)
    words = ["compare", str(files[0]), "--float", str(files[1])]
    assert main([*words, "--data", str(tmp_path / "x.npy"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["inputs"] == 40
    assert document["diagnostics"] == []
    assert [row["index"] for row in document["layers"]] in ([0, 1], [1, 0])
    assert main([*words, "--min-sqnr", "90"]) == 1
    captured = capsys.readouterr()
    assert "Layers, the worst first" in captured.out
    assert "W492" in captured.err
    assert "E486" in captured.err
    assert main([*words, "--run", "2"]) == 2
    assert main(["compare", str(files[0]), "--data", "x.npy"]) == 2


def test_a_convolution_stands_for_the_normalisation_that_it_took_in(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch programs need PyTorch")
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config

    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(2, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Conv2d(4, 3, 3)
    ).eval()
    model[1].running_mean[:] = torch.randn(4)
    example = (torch.randn(1, 2, 8, 8),)
    quantizer = EthosUQuantizer("ethos-u55-128")
    quantizer.set_global(get_symmetric_quantization_config())
    exported = torch.export.export(model, example)
    prepared = prepare_pt2e(exported.module(), quantizer)
    images = torch.randn(12, 1, 2, 8, 8)
    for image in images:
        prepared(image)
    converted = convert_pt2e(prepared)
    torch.export.save(torch.export.export(converted, example), tmp_path / "net.pt2")
    torch.export.save(exported, tmp_path / "float.pt2")
    found = precision(tmp_path / "net.pt2", tmp_path / "float.pt2", Data([images.numpy()]))
    assert [row.counterpart for row in found.layers] == ["batch_norm", "conv2d_1"]
    with torch.no_grad():
        theirs = torch.cat([model(image) for image in images]).numpy()
        ours = torch.cat([converted(image) for image in images]).numpy()
    assert found.layers[-1].sqnr_db == pytest.approx(sqnr_db(theirs, ours), abs=DECIBELS)
    assert found.layers[0].sqnr_db is not None
    assert found.layers[0].sqnr_db > 20
    same = precision_of_programs(
        torch.export.export(converted, example), exported, Data([images.numpy()])
    )
    assert same.layers == found.layers
