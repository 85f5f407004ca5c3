"""Programs of ExecuTorch before 1.0: another name of the backend, another form of its payload."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.opening import opened
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer import Record
from mizzen.package.executorch import reading, vela_bin
from mizzen.package.executorch.vela_bin import VelaTensor

from .changing import HERE, changed, plan

NAME = "ds_cnn_u55"
WHOLE = (HERE / f"{NAME}.pte").read_bytes()
CONTENT = vela_bin.read(reading.read(WHOLE, NAME).delegates[0].payload, NAME)


def payload(order: Sequence[int] = (0, 1, 2, 3)) -> bytes:
    """The delegate's payload in the old form; inputs' dimensions in another order."""

    def packed(tensors: Sequence[VelaTensor], order: Sequence[int]) -> bytes:
        rows = [
            struct.pack("<7i", *(each.shape[-4:][axis] for axis in order), each.element_bytes,
                        each.offset_bytes, each.region)
            for each in tensors
        ]  # fmt: skip
        return struct.pack("<i", len(rows)) + b"".join(rows)

    blocks = {
        "vela_bin_stream": b"",
        "cmd_data": CONTENT.commands,
        "weight_data": CONTENT.weights,
        "scratch_data": bytes(CONTENT.scratch_bytes),
        "inputs": packed(CONTENT.inputs, order),
        "outputs": packed(CONTENT.outputs, (0, 1, 2, 3)),
        "vela_end_stream": b"",
    }
    return b"".join(
        struct.pack("<16si12x", name.encode(), len(data)) + data + bytes(-len(data) % 16)
        for name, data in blocks.items()
    )


def old(data: bytes) -> bytes:
    def change(program: Record) -> None:
        delegate, held = plan(program)["delegates"][0], list(program["backend_delegate_data"])
        delegate["id"] = "ArmBackend"
        delegate["processed"] = {"location": 0, "index": len(held)}
        program["backend_delegate_data"] = [*held, {"data": list(data)}]

    return changed(change, NAME)


def test_an_old_program_runs_as_a_new_one() -> None:
    artifact, same = artifact_of(old(payload()), "old.pte"), artifact_of(WHOLE, "net.pte")
    (info,) = same.inputs
    given = np.linspace(-1, 1, int(np.prod(info.shape)), dtype=np.float32).reshape(info.shape)
    np.testing.assert_array_equal(artifact.run(given), same.run(given))


def test_tensors_in_another_order_are_refused() -> None:
    size = CONTENT.inputs[0].shape[-4:]
    with pytest.raises(MizzenError) as caught:
        artifact_of(old(payload((0, 3, 2, 1))), "old.pte")
    turned = [size[axis] for axis in (0, 3, 2, 1)]
    assert caught.value.diagnostic.code == "E527"
    assert f"must have the shape that its delegate says, {turned}, and" in str(caught.value)


def test_a_payload_in_a_file_of_its_own_is_an_artifact(tmp_path: Path) -> None:
    for data in (payload(), vela_bin.write(CONTENT)):
        path = tmp_path / "vela.bin"
        path.write_bytes(data)
        artifact = mizzen.load(path)
        assert [info.name for info in artifact.inputs] == ["input_0"]
        (example,) = [np.zeros(info.shape, info.dtype) for info in artifact.inputs]
        assert np.asarray(artifact.run(example)).size == CONTENT.outputs[0].size_bytes
    path.write_bytes(data[:200])
    with pytest.raises(MizzenError, match="E170"):
        opened(path, path.read_bytes())
