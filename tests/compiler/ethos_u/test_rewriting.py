"""Rewritten networks through a whole compilation: what is proved, in whose names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.artifact.steps import read_network
from mizzen.compiler.ethos_u.rewriting import require_same
from mizzen.compiler.proof.options import DEFAULT
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer import write
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.graph import DType, Graph, TensorType
from mizzen.package import tosa

DIGITS = Path(__file__).resolve().parents[3] / "examples" / "digits" / "digits.tflite"


def compiled(path: Path, rewrite: str, prove: str = "off") -> mizzen.Artifact:
    options = {"rewrite": rewrite}
    return mizzen.compile(path, "ethos-u55-64", target_options=options, prove=prove)


def test_an_artifact_of_a_folded_network_is_the_network_s(repository: Path) -> None:
    images = np.load(repository / "examples" / "digits" / "images.npy")
    plain, folded = (
        mizzen.compile(DIGITS, "ethos-u55-64"),
        compiled(DIGITS, "fold2x2", prove="quick"),
    )
    assert folded.data != plain.data
    assert np.array_equal(folded.run(images), plain.run(images))
    assert folded.report is not None
    assert plain.report is not None
    assert folded.report.proof.equal == plain.report.proof.equal
    assert folded.report.proof.equal == 1
    assert [row.name for row in folded.report.placements] == [
        row.name for row in plain.report.placements
    ]
    assert folded.report.macs == plain.report.macs


def test_another_network_s_artifact_is_found_to_differ() -> None:
    """The comparison must be able to fail: an artifact of changed weights against the network."""
    model = read_network(DIGITS.read_bytes(), "digits.tflite")
    record = model.record
    weights = model.main.tensors[model.main.operators[6].inputs[1]]
    assert weights.values is not None
    buffer = record["subgraphs"][0]["tensors"][weights.index]["buffer"]
    record["buffers"][buffer]["data"] = np.roll(weights.values, 7).reshape(-1).view(np.uint8)
    other = mizzen.compile(write(record, SCHEMA), "ethos-u55-64", prove="off")
    original = read_network(DIGITS.read_bytes(), "digits.tflite")
    require_same(original, compiled(DIGITS, "fold2x2").contents, ("fold2x2",), DEFAULT)
    with pytest.raises(MizzenError) as caught:
        require_same(original, other.contents, ("fold2x2",), DEFAULT)
    text = caught.value.diagnostic.render()
    assert text.startswith(
        "error[E268]: what is rewritten by fold2x2 must give what the network gives, and of output "
        '"probabilities" '
    )
    assert text.endswith(
        " of 160 numbers differ\n  at   digits.tflite\n  help compile it without these rewrites"
    )


def test_rewrites_are_of_tflite_networks() -> None:
    graph = Graph()
    graph.set_outputs([graph.add_input(TensorType((1, 4, 4, 8), DType.INT8), "image")])
    with pytest.raises(MizzenError) as caught:
        mizzen.compile(tosa.write(graph), "ethos-u55-64", target_options={"rewrite": "swap"})
    assert caught.value.diagnostic.render() == (
        "error[E262]: rewrites are of TFLite networks, and this network is not one\n"
        "  help leave out --target-option rewrite"
    )


def test_a_rewrite_that_does_not_fit_is_refused() -> None:
    with pytest.raises(MizzenError) as caught:
        compiled(DIGITS, "pads")
    assert caught.value.diagnostic.render() == (
        "error[E267]: the rewrite pads must fit the network, and does not: a PAD of channels must "
        "stand between convolutions and additions\n"
        "  at   digits.tflite\n"
        "  help `mizzen tune` finds those that a network gains by"
    )
