"""Artifacts of others: what Vela wrote in its raw format, checked stream by stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import mizzen
from mizzen.analysis.checking.artifacts import ArtifactCheck, StepCheck, check_artifact
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.steps import NpuStep
from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.vela.raw import raw

Words = npt.NDArray[np.uint32]
WAITS = (0x11, 0x12)


@pytest.fixture(scope="module")
def written(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What Vela's own command makes of the digits network."""
    from ethosu.vela import vela

    folder = tmp_path_factory.mktemp("raw")
    network = repository / "examples" / "digits" / "digits.tflite"
    options = ("--accelerator-config=ethos-u55-128", "--output-format=raw")
    vela.main([str(network), *options, f"--output-dir={folder}"])
    (file,) = folder.glob("*.npz")
    return file.read_bytes()


def checked(data: bytes, change: Callable[[Words], object]) -> StepCheck:
    """Check a raw archive whose words have been changed."""
    model = raw.read(data, "net.npz")
    words = model.program.words.copy()
    change(words)
    changed = raw.write(replace(model, program=replace(model.program, words=words)))
    (found,) = check_artifact(artifact_of(changed, "net.npz")).steps
    return found


def test_a_raw_archive_of_vela(written: bytes) -> None:
    found = checked(written, lambda words: None)
    assert found.report is not None
    assert found.findings == ()
    assert found.as_dict() == {
        "step": 0,
        "malformed": False,
        "accelerator": "ethos-u55-128",
        "operations": found.report.operations,
        "findings": [],
    }
    assert found.report.operations > 10


def test_a_raw_archive_without_its_waits(written: bytes) -> None:
    def forget(words: Words) -> None:
        words[np.isin(words & 0xFFFF, WAITS)] = 0x13  # OP_PMU_MASK, enable=0

    found = checked(written, forget)
    assert {row.code for row in found.findings} == {"E671"}
    data = found.as_dict()
    assert isinstance(data["findings"], list)
    assert len(data["findings"]) == len(found.findings)


def test_a_raw_archive_whose_stream_is_malformed(written: bytes) -> None:
    def spoil(words: Words) -> None:
        words[0] |= 0x3FF

    found = checked(written, spoil)
    assert found.report is None
    assert [row.code for row in found.findings] == ["E502"]
    assert found.as_dict() == {
        "step": 0,
        "malformed": True,
        "findings": [found.findings[0].as_dict()],
    }


def test_a_network_without_streams(repository: Path) -> None:
    network = repository / "examples" / "digits" / "digits.tflite"
    assert check_artifact(mizzen.load(network)) == ArtifactCheck(())


FAMILIES = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256", "ethos-n78-4tops-4ple")


@pytest.mark.parametrize("accelerator", FAMILIES)
def test_what_cannot_be_run_is_not_sound(repository: Path, accelerator: str) -> None:
    """One bit of an artifact is another: whatever passes runs, on inputs that nobody tried."""
    network = repository / "examples" / "digits" / "digits.tflite"
    data = mizzen.compile(network, accelerator, prove="off").data
    rng = np.random.default_rng(3)
    inputs = rng.integers(-128, 127, (20, 8, 8, 1), np.int8, endpoint=True)
    refused = set[str]()
    for _ in range(12):
        bits = np.frombuffer(data, np.uint8).copy()
        bits[rng.integers(bits.size)] ^= 1 << int(rng.integers(8))
        try:
            artifact = artifact_of(bits.tobytes(), "net.tflite")
            found = check_artifact(artifact).findings
        except MizzenError:
            continue
        if found:
            refused |= {row.code for row in found}
        else:
            artifact.run(inputs)
    assert refused, "the seed makes some that only a check of the whole finds"


def test_weights_that_cannot_be_decoded(repository: Path) -> None:
    """The stream has no hazard; the simulator's plan stops at a word of the weights."""
    network = repository / "examples" / "digits" / "digits.tflite"
    compiled = mizzen.compile(network, "ethos-u55-128", prove="off")
    (step,) = compiled.steps
    assert isinstance(step, NpuStep)
    (constants,) = step.program.constants.values()
    place = compiled.data.index(constants.tobytes())
    spoilt = bytearray(compiled.data)
    spoilt[place + 2000 : place + 2400] = bytes(400)
    artifact = artifact_of(bytes(spoilt), "net.tflite")
    (found,) = check_artifact(artifact).steps
    assert found.report is None
    assert [row.code for row in found.findings] == ["E624"]
    with pytest.raises(MizzenError, match="E624"):
        artifact.run(np.zeros((1, 8, 8, 1), np.int8))
