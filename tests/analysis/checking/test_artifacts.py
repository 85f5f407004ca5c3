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
from mizzen.artifact.loading import artifact_of, load_stream
from mizzen.artifact.steps import NpuStep
from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.machine import commands
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


SIDE, KERNEL = 2048, 300
"""Of a mean that a host takes minutes for; each of its numbers is possible."""


def slow_stream() -> bytes:
    """The commands of one pooling, for U65."""
    known = commands.instruction_set(commands.Arch.U65)
    wide = SIDE + KERNEL - 1
    given: dict[str, dict[str, int]] = {
        name: {} for name in (
            *(f"SET_IFM_PAD_{side}" for side in ("TOP", "LEFT", "RIGHT", "BOTTOM")),
            *(f"SET_{prefix}_BASE{tile}" for prefix in ("IFM", "OFM") for tile in range(4)),
            "SET_IFM_ZERO_POINT", "SET_OFM_ZERO_POINT", "SET_IFM_UPSCALE",
            "SET_ACC_FORMAT", "SET_ACTIVATION", "SET_ACTIVATION_MIN", "SET_BLOCKDEP",
        )
    }  # fmt: skip
    for prefix, width in (("IFM", wide), ("OFM", SIDE)):
        given |= {
            f"SET_{prefix}_REGION": {"region": 1},
            f"SET_{prefix}_PRECISION": {"scale_mode": int(prefix == "OFM")},
            f"SET_{prefix}_DEPTH_M1": {"depth": 1},
            f"SET_{prefix}_HEIGHT0_M1": {"height": width},
            f"SET_{prefix}_HEIGHT1_M1": {"height": width},
            f"SET_{prefix}_WIDTH0_M1": {"width": width},
            f"SET_{prefix}_STRIDE_X": {"stride": 1},
            f"SET_{prefix}_STRIDE_Y": {"stride": width},
            f"SET_{prefix}_STRIDE_C": {"stride": 1},
        }
    given |= {
        "SET_OFM_BASE0": {"address": wide * wide},
        "SET_OFM_HEIGHT_M1": {"height": SIDE},
        "SET_OFM_WIDTH_M1": {"width": SIDE},
        "SET_KERNEL_HEIGHT_M1": {"height": KERNEL},
        "SET_KERNEL_WIDTH_M1": {"width": KERNEL},
        "SET_KERNEL_STRIDE": {"stride_x": 1, "stride_y": 1},
        "SET_OFM_SCALE": {"scale": 1},
        "SET_ACTIVATION_MAX": {"clip_boundary": 255},
        "SET_OFM_BLK_HEIGHT_M1": {"height": 16},
        "SET_OFM_BLK_WIDTH_M1": {"width": 16},
        "SET_OFM_BLK_DEPTH_M1": {"depth": 8},
        "SET_IFM_IB_END": {"ib_end": 20},
        "SET_AB_START": {"ab_start": 20},
        "OP_POOL": {"pooling_mode": 1},
        "OP_STOP": {"mask": 0xFFFF},
    }
    made = [
        known[name](**{each.name: values.get(each.name, max(0, each.minimum))
                       for each in known[name].fields})
        for name, values in given.items()
    ]  # fmt: skip
    return commands.encode(made, commands.Arch.U65).tobytes()


def test_what_would_take_minutes_is_read_and_not_inferred(tmp_path: Path) -> None:
    path = tmp_path / "slow.bin"
    path.write_bytes(slow_stream())
    found = check_artifact(load_stream(path, "ethos-u65-256", {1: bytes(1 << 24)}))
    assert found.inferences == 0
    assert found.fault is None
    assert [doubt.code for doubt in found.doubts] == ["W345"]
    assert found.doubts[0].message == (
        "an artifact is inferred where one inference takes a host 45 s at most; slow.bin would "
        "take about 1,258 s, and was only read"
    )
