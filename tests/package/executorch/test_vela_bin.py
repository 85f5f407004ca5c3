"""Payloads of delegates: written as ExecuTorch's reader wants them, read with every check."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from mizzen.diagnostics import MizzenError
from mizzen.package.executorch.vela_bin import VelaBin, VelaTensor, read, write

CONTENT = VelaBin(
    commands=b"COP1" + bytes(range(9)),
    weights=bytes(range(20)),
    scratch_bytes=64,
    inputs=(VelaTensor((1, 3, 4), 1, 0), VelaTensor((5,), 2, 12)),
    outputs=(VelaTensor((2, 2), 4, 48),),
)


def test_is_laid_out_as_the_reader_wants_it() -> None:
    data = write(CONTENT)
    assert data[:16] == b"vela_bin_stream\0"
    assert data[32:48] == b"cmd_data".ljust(16, b"\0")
    assert struct.unpack_from("<IB11x", data, 48) == (13, 0)
    assert data[64:80] == CONTENT.commands + bytes(3)
    assert data[80:91] == b"weight_data"
    weights = 80 + 32
    assert data[weights : weights + 32] == CONTENT.weights + bytes(12)
    scratch = weights + 32
    assert data[scratch : scratch + 12] == b"scratch_size"
    assert struct.unpack_from("<I", data, scratch + 32) == (64,)
    inputs = scratch + 48
    assert data[inputs : inputs + 7] == b"inputs\0"
    assert struct.unpack_from("<10i", data, inputs + 32) == (2, 1, 1, 1, 1, 3, 4, 1, 0, 1)
    assert data[-32:-16] == b"vela_end_stream\0"
    assert len(data) % 16 == 0


def test_says_what_was_written() -> None:
    found = read(write(CONTENT), "a delegate")
    assert found.commands == CONTENT.commands
    assert found.weights == CONTENT.weights
    assert found.scratch_bytes == 64
    assert [row.shape for row in found.inputs] == [(1, 1, 1, 1, 3, 4), (1, 1, 1, 1, 1, 5)]
    assert [row.offset_bytes for row in found.inputs] == [0, 12]
    assert found.outputs == (VelaTensor((1, 1, 1, 1, 2, 2), 4, 48),)


def old(inputs: bytes) -> bytes:
    """The payload as ExecuTorch 0.4 wrote it."""
    output = struct.pack("<8i", 1, 2, 2, 0, 0, 4, 48, 1)
    blocks = (("vela_bin_stream", b""), ("cmd_data", CONTENT.commands),
              ("weight_data", CONTENT.weights), ("scratch_data", bytes(64)), ("inputs", inputs),
              ("outputs", output), ("vela_end_stream", b""))  # fmt: skip
    return b"".join(
        struct.pack("<16si12x", name.encode(), len(data)) + data + bytes(-len(data) % 16)
        for name, data in blocks
    )


def test_reads_the_form_before_version_1() -> None:
    inputs = struct.pack("<15i", 2, 1, 2, 3, 4, 1, 0, 1, 5, 0, 0, 0, 2, 24, 1)
    found = read(old(inputs), "a delegate")
    assert found == replace(
        CONTENT,
        inputs=(VelaTensor((1, 2, 3, 4), 1, 0), VelaTensor((5,), 2, 24)),
        outputs=(VelaTensor((2, 2), 4, 48),),
    )
    with pytest.raises(MizzenError, match="inputs cannot have 56 bytes for 2 tensors"):
        read(old(inputs[:-4]), "a delegate")
    with pytest.raises(MizzenError, match=r"must have positive extents of 32 bits, not \[0\]"):
        read(old(struct.pack("<8i", 1, 0, 0, 0, 0, 1, 0, 1)), "a delegate")


def test_multiplies_leading_dimensions_that_there_is_no_room_for() -> None:
    tensor = VelaTensor((2, 3, 1, 1, 2, 1, 2), 1, 0)
    (found,) = read(write(replace(CONTENT, inputs=(tensor,))), "a delegate").inputs
    assert found.shape == (6, 1, 1, 2, 1, 2)


def test_every_cut_is_told() -> None:
    data = write(CONTENT)
    for length in range(len(data)):
        with pytest.raises(MizzenError) as error:
            read(data[:length], "a delegate")
        assert error.value.diagnostic.code == "E170"


DAMAGED = [
    (0, b"vela_xxx", "'vela_bin_stream' must be at byte 0, not 'vela_xxx_stream' of 0 bytes"),
    (32, b"cmd_xxxx", "the block at byte 32 is 'cmd_xxxx', which is unknown; missing yet: "
     "['cmd_data', 'weight_data', 'scratch_size', 'inputs', 'outputs']"),
    (80, b"cmd_data\0\0\0", "the block at byte 80 must not be 'cmd_data' there; missing yet: "
     "['weight_data', 'scratch_size', 'inputs', 'outputs']"),
    (52, b"\2", "the block at byte 32 must say 0 or 1 of where it is"),
    (160, struct.pack("<I", 3), "scratch_size must have 4 bytes, not 3"),
    (224, struct.pack("<i", 3), "inputs cannot have 76 bytes for 3 tensors"),
]  # fmt: skip


@pytest.mark.parametrize(("at", "bytes_there", "reason"), DAMAGED)
def test_says_what_is_damaged(at: int, bytes_there: bytes, reason: str) -> None:
    data = bytearray(write(CONTENT))
    data[at : at + len(bytes_there)] = bytes_there
    with pytest.raises(MizzenError) as error:
        read(bytes(data), "a delegate")
    assert error.value.diagnostic.code == "E170"
    assert error.value.diagnostic.message == (
        f"a delegate must be a whole payload of an Ethos-U delegate: {reason}"
    )


def test_ends_where_it_says() -> None:
    with pytest.raises(MizzenError, match=r"E170.*it must end at byte 416, and goes on to 417"):
        read(write(CONTENT) + b"x", "a delegate")


WRONG = [
    (VelaTensor((0, 2), 1, 0), "inputs[0] must have positive extents of 32 bits, "
     "not [1, 1, 1, 1, 0, 2]"),
    (VelaTensor((2,), 3, 0), "inputs[0] must have elements of 1, 2, 4, 8 bytes, not 3"),
    (VelaTensor((2,), 1, 0, 2), "inputs[0] must lie in region 1, not in 2"),
    (VelaTensor((2,), 1, 63), "inputs[0] must lie in the 64 bytes of region 1, not at 63..65"),
]  # fmt: skip


@pytest.mark.parametrize(("tensor", "message"), WRONG)
def test_refuses_a_tensor_that_does_not_fit(tensor: VelaTensor, message: str) -> None:
    with pytest.raises(MizzenError) as error:
        write(replace(CONTENT, inputs=(tensor,)))
    assert error.value.diagnostic.code == "E171"
    assert error.value.diagnostic.message == message


def test_refuses_inputs_that_share_bytes() -> None:
    data = write(replace(CONTENT, inputs=(VelaTensor((4,), 1, 0), VelaTensor((4,), 1, 3))))
    with pytest.raises(MizzenError, match=r"E171.*inputs must not share bytes"):
        read(data, "a delegate")


def test_reads_tensors_in_regions_of_their_own() -> None:
    """As Vela's ``--separate-io-regions`` makes them, for drivers of Linux."""
    data = bytearray(write(CONTENT))
    at = data.index(b"outputs") + 32 + 4 + 36 - 4
    struct.pack_into("<i", data, at, 4)
    assert read(bytes(data), "a delegate").outputs[0].region == 4
    struct.pack_into("<i", data, at, 2)
    with pytest.raises(MizzenError) as error:
        read(bytes(data), "a delegate")
    assert error.value.diagnostic.message == (
        "a delegate: outputs[0] must lie in region 1, or in one of its own, not in 2"
    )


def test_takes_contents_that_are_elsewhere() -> None:
    key = "ab" * 32
    data = bytearray(write(replace(CONTENT, weights=key.encode())))
    data[80 + 20] = 1
    assert read(bytes(data), "a delegate", {key: b"weights"}).weights == b"weights"
    with pytest.raises(MizzenError) as error:
        read(bytes(data), "a delegate")
    assert error.value.diagnostic.code == "E172"
    assert error.value.diagnostic.message == (
        "a delegate: the contents of weight_data must be given, and are in another file"
    )
