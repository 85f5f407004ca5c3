"""Artifacts of others: what Vela wrote in its raw format, checked stream by stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import mizzen
from mizzen.artifact.checking import StepCheck, check_streams
from mizzen.artifact.loading import artifact_of
from mizzen.targets.ethos_u.vela_raw import raw

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
    (found,) = check_streams(artifact_of(changed, "net.npz"))
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
    assert check_streams(mizzen.load(network)) == ()
