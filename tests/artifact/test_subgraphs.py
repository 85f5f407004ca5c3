"""Signatures and control flow: each subgraph is compiled, proved and executed as TFLite does."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.artifact.steps import read_network
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer import write
from mizzen.flatbuffer.tflite import SCHEMA

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite"
ACCELERATORS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256", "ethos-n78-4tops-4ple")


def litert(data: bytes, name: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """Run a signature of the source by LiteRT's reference kernels."""
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    resolver = interpreter.OpResolverType.BUILTIN_REF
    runner = interpreter.Interpreter(
        model_content=data, experimental_op_resolver_type=resolver
    ).get_signature_runner(name)
    rows = [
        runner(**{key: array[place : place + 1] for key, array in inputs.items()})
        for place in range(len(next(iter(inputs.values()))))
    ]
    return {key: np.concatenate([row[key] for row in rows]) for key in rows[0]}


def numbers(artifact: Any, count: int = 8) -> dict[str, Any]:
    random = np.random.default_rng(5)
    return {
        row.name: random.integers(-128, 128, (count, *row.shape[1:])).astype(row.dtype)
        for row in artifact.inputs
    }


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("case", ["M1_two_signatures", "M2_second_signature_wrong"])
def test_each_signature_gives_what_litert_gives(cases: Path, case: str, accelerator: str) -> None:
    data = (cases / f"{case}.tflite").read_bytes()
    artifact = mizzen.compile(data, accelerator)
    assert artifact.signatures == ("encode", "decode")
    for name in artifact.signatures:
        signature = artifact.signature(name)
        inputs = numbers(signature)
        (found,) = litert(data, name, inputs).values()
        given = np.asarray(signature.run(*inputs.values()))
        if accelerator.startswith("ethos-u"):
            assert np.array_equal(given, found)
        else:  # one step by the documented rounding of 16 bits
            assert np.abs(given.astype(int) - found).max() <= 1


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_a_loop_whose_body_is_on_the_npu(cases: Path, accelerator: str) -> None:
    artifact = mizzen.compile(cases / "W1_while_rnn.tflite", accelerator)
    right = np.load(cases / "W1_while_rnn.npz")
    steps = 0 if accelerator.startswith("ethos-u") else 1  # the rounding of 16 bits
    given = np.asarray(artifact.run(right["input_0"])).astype(int)
    assert np.abs(given - right["output_0"]).max() <= steps
    assert artifact.report is not None
    body = next(row for row in artifact.report.subgraphs if row.subgraph == "body")
    assert body.on_npu
    assert body.proof.inputs
    batch = numbers(artifact)["x"]
    many = artifact.run(batch)
    for row, alone in zip(batch, many, strict=True):
        assert np.array_equal(np.asarray(artifact.run(row[np.newaxis]))[0], alone)


def test_a_signature_can_be_copied_and_sent(cases: Path) -> None:
    artifact = mizzen.compile(cases / "M1_two_signatures.tflite", "ethos-u55-128")
    signature = artifact.signature("decode")
    (inputs,) = numbers(signature).values()
    wanted = signature.run(inputs)
    for other in (copy.copy(signature), pickle.loads(pickle.dumps(signature))):
        assert [row.name for row in other.inputs] == ["u"]
        assert np.array_equal(other.run(inputs), wanted)


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("names", [("serving_default",), ("classify", "score")])
def test_one_subgraph_keeps_the_names_of_what_it_does(
    tmp_path: Path, names: tuple[str, ...], accelerator: str
) -> None:
    network = read_network(DIGITS.read_bytes(), DIGITS.name)
    (image,), (scores,) = network.main.inputs, network.main.outputs
    signatures = [
        {
            "signature_key": name,
            "subgraph_index": 0,
            "inputs": [{"name": f"{name}_image", "tensor_index": image}],
            "outputs": [{"name": f"{name}_digit", "tensor_index": scores}],
        }
        for name in names
    ]
    named = write({**network.record, "signature_defs": signatures}, SCHEMA)
    artifact = mizzen.compile(named, accelerator)
    artifact.save(tmp_path / "named.tflite")
    for read in (artifact, mizzen.load(tmp_path / "named.tflite")):
        assert read.signatures == names
        signature = read.signature(names[-1])
        assert [row.name for row in signature.inputs] == [f"{names[-1]}_image"]
        assert [row.name for row in signature.outputs] == [f"{names[-1]}_digit"]
        (images,) = numbers(signature).values()
        assert np.array_equal(signature.run(images), read.run(images))


def test_a_signature_that_there_is_not(cases: Path) -> None:
    artifact = mizzen.compile(cases / "M1_two_signatures.tflite", "ethos-u55-128")
    with pytest.raises(MizzenError) as caught:
        artifact.signature("train")
    assert str(caught.value) == (
        "error[E135]: M1_two_signatures_vela.tflite must have a signature 'train', and has encode, "
        "decode\n  help take one of these"
    )


def test_firmware_of_the_main_subgraph_names_the_other_signatures(
    cases: Path, tmp_path: Path
) -> None:
    artifact = mizzen.compile(cases / "M1_two_signatures.tflite", "ethos-u55-128")
    file = tmp_path / "m1.tflite"
    artifact.save(file)
    command = ["export", str(file), "--to", "tflm", "--board", "corstone300"]
    command += ["--output-dir", str(tmp_path / "project"), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "mizzen", *command], capture_output=True, text=True, check=True
    )
    assert (
        "warning[W312]: the firmware executes the main subgraph of m1.tflite, and the model in it "
        "has further signatures: decode\n"
    ) in done.stderr
