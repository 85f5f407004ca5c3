"""Manifests in artifacts: each container carries one, runtimes pass over it, no bit goes unseen."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

import mizzen
from mizzen.artifact.alone import file_alone
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.parts import parts_of
from mizzen.artifact.sealing import NAME, sealed, unsealed
from mizzen.artifact.steps import NpuStep, read_network
from mizzen.artifact.verifying import not_as_written
from mizzen.cpu.tflm import CpuKernels
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer import read, write
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.report.manifest import BEGIN, NO_DIGEST, Facts, Proved, Source, digest_outside, find

from .networks import islands

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits.tflite"
U55, N78 = "ethos-u55-128", "ethos-n78-4tops-4ple"
FACTS = Facts(
    "mizzen 1.2.3", "Mizzen", Source("net"), {"accelerator": U55}, Proved(0, 0, NO_DIGEST, "x")
)


@pytest.fixture(scope="module")
def digits() -> Artifact:
    return mizzen.compile(DIGITS, U55)


@pytest.fixture(scope="module")
def executorch(digits: Artifact, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("executorch") / "digits.pte"
    digits.save(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def archive() -> bytes:
    """A network of which ONNX Runtime computes a part."""
    pytest.importorskip("onnx", reason="the package onnx is not installed")
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    import onnx
    from onnx import TensorProto, helper

    def scaled(name: str) -> list[onnx.NodeProto]:
        q = helper.make_node("QuantizeLinear", [name, "s", "z"], [f"{name}_q"])
        return [q, helper.make_node("DequantizeLinear", [f"{name}_q", "s", "z"], [f"{name}_d"])]

    nodes = [
        *scaled("x"),
        helper.make_node("Relu", ["x_d"], ["r"]),
        *scaled("r"),
        helper.make_node("TopK", ["r_d", "k"], ["t", "places"]),
        *scaled("t"),
        helper.make_node("Relu", ["t_d"], ["u"]),
        *scaled("u"),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16])],
        [helper.make_tensor_value_info("u_d", TensorProto.FLOAT, [1, 4])],
        [
            helper.make_tensor("s", TensorProto.FLOAT, [], [0.05]),
            helper.make_tensor("z", TensorProto.INT8, [], [0]),
            helper.make_tensor("k", TensorProto.INT64, [1], [4]),
        ],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    artifact = mizzen.compile(made.SerializeToString(), U55)
    assert artifact.name.endswith(".zip"), artifact.name
    return artifact.data


def npu_step(artifact: Artifact) -> NpuStep:
    (step,) = artifact.steps
    assert isinstance(step, NpuStep)
    return step


def require_whole(data: bytes) -> None:
    found = find(data)
    assert found is not None
    assert found.manifest.bytes == len(data)
    assert found.manifest.file_sha256 == digest_outside(data, found)
    loaded = mizzen.load(data)
    assert loaded.manifest == found.manifest
    assert loaded.doubts == ()
    parts = parts_of(data, "net")
    assert (parts.npu, parts.tables_sha256) == (found.manifest.npu, found.manifest.tables_sha256)


def test_every_container_has_one(digits: Artifact, executorch: bytes, archive: bytes) -> None:
    for data in (digits.data, executorch, archive):
        require_whole(data)
        bare = unsealed(data, "net")
        assert BEGIN not in bare
        assert mizzen.load(bare).manifest is None
        found = find(data)
        assert found is not None
        assert sealed(bare, "net", found.manifest.facts) == data
        assert sealed(data, "net", found.manifest.facts) == data
        assert len(data) - len(bare) < 1536


def test_what_it_says(digits: Artifact) -> None:
    manifest = digits.manifest
    assert manifest is not None
    facts = manifest.facts
    assert facts.tool == f"mizzen {mizzen.__version__}"
    assert facts.source == Source("digits.tflite", sha256(DIGITS.read_bytes()).hexdigest())
    assert facts.configuration["accelerator"] == U55
    assert facts.proof.verdict == "equal"
    assert digits.report is not None
    assert facts.proof.sha256 == digits.report.proof.digest
    assert digits.report.flash_bytes == len(digits.data) == manifest.bytes


def test_the_stream_has_one_digest_in_every_container(digits: Artifact, executorch: bytes) -> None:
    assert digits.manifest is not None
    assert mizzen.load(executorch).manifest is not None
    assert parts_of(executorch, "net").npu == digits.manifest.npu


def test_a_file_has_nearly_one_size_with_a_proof_and_without(digits: Artifact) -> None:
    bare = mizzen.compile(DIGITS, U55, prove="off")
    assert 0 <= len(bare.data) - len(digits.data) <= 16


def test_choices_are_named() -> None:
    options = {"search": "thorough"}
    chosen = mizzen.compile(
        DIGITS, U55, prove="off", ignore_ops=["SOFTMAX"], target_options=options
    )
    assert chosen.manifest is not None
    told = chosen.manifest.facts.configuration
    assert (told["ignore_ops"], told["search"]) == ("SOFTMAX", "thorough")
    assert chosen.manifest.facts.proof == Proved(0, 0, NO_DIGEST, "not compared")


def test_the_container_of_an_ethos_n_is_divided() -> None:
    artifact = mizzen.compile(DIGITS, N78, prove="off")
    require_whole(artifact.data)
    assert artifact.manifest is not None
    (code,) = artifact.manifest.npu
    assert code.stream_sha256 != code.constants_sha256


def test_tflite_micro_and_litert_pass_over_it() -> None:
    kinds = {operator.kind for operator in read_network(DIGITS.read_bytes(), "net").main.operators}
    artifact = mizzen.compile(DIGITS, U55, ignore_ops=sorted(kinds))
    assert not any(step.on_npu for step in artifact.steps)
    assert artifact.manifest is not None
    inputs = np.random.default_rng(3).integers(-128, 128, (4, 8, 8, 1)).astype(np.int8)
    (wanted,) = CpuKernels(unsealed(artifact.data, "net")).run([inputs[:, None]], 4)
    (given,) = CpuKernels(artifact.data).run([inputs[:, None]], 4)
    np.testing.assert_array_equal(given, wanted)
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is not installed")
    results = []
    for data in (artifact.data, unsealed(artifact.data, "net")):
        interpreter = litert.Interpreter(model_content=data)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], inputs[:1])
        interpreter.invoke()
        results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    np.testing.assert_array_equal(*results)


def test_another_entry_of_the_metadata_stays(digits: Artifact) -> None:
    record = read(digits.data, SCHEMA, "net")
    names = [entry["name"] for entry in record["metadata"]]
    assert names == ["OfflineMemoryAllocation", NAME]


def test_an_archive_has_it_as_its_comment(archive: bytes) -> None:
    with ZipFile(io.BytesIO(archive)) as opened:
        assert opened.testzip() is None
        assert opened.comment.startswith(BEGIN)


def found_in(data: bytes) -> str:
    try:
        artifact = mizzen.load(data)
    except MizzenError as error:
        return error.diagnostic.code
    (finding,) = not_as_written(artifact)
    return finding.code


@pytest.mark.filterwarnings("ignore::mizzen.MizzenWarning")
def test_flipped_bits_are_found(digits: Artifact, executorch: bytes, archive: bytes) -> None:
    rng = np.random.default_rng(7)
    for data in (digits.data, executorch, archive):
        for bit in rng.integers(0, 8 * len(data), 60):
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            assert found_in(bytes(flipped)) in {"E681", "E682", "E684"}


@pytest.mark.filterwarnings("ignore::mizzen.MizzenWarning")
def test_it_says_which_part_changed(digits: Artifact) -> None:
    step = npu_step(digits)
    words = step.program.words.tobytes()
    weights = step.program.constants[0].tobytes()
    for place, said in (
        (digits.data.index(words) + 400, "what changed is the command stream of NPU operator 0"),
        (digits.data.index(weights) + 900, "what changed is the constants of NPU operator 0"),
        (digits.data.index(b"probabilities"), "what changed is the table of inputs and outputs"),
        (digits.data.index(b"ethos-u_1"), "a name, an operator of the CPU or how the file"),
    ):
        flipped = bytearray(digits.data)
        flipped[place] ^= 1
        (finding,) = not_as_written(mizzen.load(bytes(flipped)))
        assert finding.code == "E681"
        assert said in finding.message
    flipped = bytearray(digits.data)
    flipped[digits.data.index(b'"tool"') + 1] ^= 1
    (finding,) = not_as_written(mizzen.load(bytes(flipped)))
    assert finding.render() == (
        "error[E682]: the manifest in artifact must have the bytes that the digest in its last "
        "line is of\n  help get the file again, or compile the network again"
    )


@pytest.mark.filterwarnings("ignore::mizzen.MizzenWarning")
def test_a_changed_artifact_hands_no_manifest_on(digits: Artifact, tmp_path: Path) -> None:
    flipped = bytearray(digits.data)
    flipped[digits.data.index(npu_step(digits).program.constants[0].tobytes()) + 900] ^= 1
    artifact = mizzen.load(bytes(flipped))
    artifact.save(tmp_path / "net.pte")
    assert mizzen.load(tmp_path / "net.pte").manifest is None
    artifact.save(tmp_path / "net.tflite")  # the same bytes, which still tell
    assert [row.code for row in mizzen.load(tmp_path / "net.tflite").doubts] == ["W332"]


def test_a_part_of_an_artifact_has_none() -> None:
    artifact = mizzen.compile(islands(), U55, ignore_ops=["ABS"], prove="off")
    assert artifact.manifest is not None
    assert len(artifact.manifest.npu) == 2
    assert BEGIN not in file_alone(artifact.data, "net", 0)


def test_what_letters_like_it_stay_without() -> None:
    record = read(DIGITS.read_bytes(), SCHEMA, "net")
    named = write(record | {"description": BEGIN.decode()}, SCHEMA)
    assert sealed(named, "net", FACTS) == named


def test_of_another_format_of_manifest(digits: Artifact) -> None:
    data = digits.data.replace(b'"format":1,', b'"format":2,')
    found = find(digits.data)
    assert found is not None
    line = digits.data[found.start + len(BEGIN) : found.end].splitlines()[0]
    new = line.replace(b'"format":1,', b'"format":2,')
    data = data.replace(
        sha256(line).hexdigest().encode(), sha256(new).hexdigest().encode()
    )  # fmt: skip
    with pytest.warns(mizzen.MizzenWarning, match="W334"):
        (finding,) = not_as_written(mizzen.load(data))
    assert finding.render() == (
        "error[E683]: the manifest in artifact must have format 1, and has 2\n"
        "  help install a newer Mizzen"
    )


def test_a_network_in_firmware_ends_where_its_manifest_says(
    digits: Artifact, tmp_path: Path
) -> None:
    image = tmp_path / "firmware.bin"
    image.write_bytes(b"\xff" * 64 + digits.data + b"\xa5" * 200)
    loaded = mizzen.load(image)
    assert loaded.data == digits.data
    assert loaded.doubts == ()


def test_it_is_pickled_with_its_artifact(digits: Artifact) -> None:
    assert pickle.loads(pickle.dumps(digits)).manifest == digits.manifest


def test_other_processes_write_the_same_bytes(digits: Artifact) -> None:
    program = (
        "import mizzen, sys; "
        f"sys.stdout.buffer.write(mizzen.compile({str(DIGITS)!r}, {U55!r}).data)"
    )
    made = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    assert made.stdout == digits.data
