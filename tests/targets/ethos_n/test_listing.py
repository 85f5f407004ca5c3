"""Listings of command streams, as text and as data."""

from __future__ import annotations

import json

from mizzen.targets.ethos_n.commands import encode
from mizzen.targets.ethos_n.commands_values import (
    Convert,
    DataTypeCode,
    DumpDram,
    Fence,
    Format,
    Location,
    TensorRecord,
)
from mizzen.targets.ethos_n.listing import list_stream

INPUT = TensorRecord(
    data_type=DataTypeCode.S8,
    format=Format.NHWC,
    shape=(1, 8, 4, 16),
    supertensor_shape=(1, 8, 12, 16),
    supertensor_offset=(0, 0, 8, 0),
    stripe_shape=(1, 8, 8, 16),
    tile_bytes=1024,
    dram_buffer_id=3,
    sram_offset_bytes=64,
    zero_point=-5,
    location=Location.DRAM,
)
STREAM = encode([Convert(INPUT, INPUT), Fence(), DumpDram(4, "conv.hex")])
REST = " " * 35
TENSOR = (
    "data_type=S8 format=NHWC shape=1x8x4x16 supertensor_shape=1x8x12x16\n"
    f"{REST}supertensor_offset=0x0x8x0 stripe_shape=1x8x8x16 tile_bytes=1024 dram_buffer_id=3\n"
    f"{REST}sram_offset_bytes=64 zero_point=-5 location=DRAM"
)
TEXT = f"""\
     4  CONVERT
        input                      {TENSOR}
        output                     {TENSOR}
    47  FENCE
    48  DUMP_DRAM
        dram_buffer_id             4
        filename                   conv.hex"""


def test_a_stream_as_text() -> None:
    listed = list_stream(STREAM)
    assert str(listed) == TEXT
    assert listed.stopped_by is None


def test_a_broken_stream_lists_what_is_good() -> None:
    listed = list_stream(STREAM + bytes.fromhex("0b000000"))
    assert str(listed) == TEXT
    data = json.loads(json.dumps(listed.as_dict()))
    assert data["command_stream"] == "3.1.0"
    first, fence, dump = data["commands"]
    assert first["offset_words"] == 4
    assert first["command"] == "CONVERT"
    assert first["input"]["data_type"] == "S8"
    assert first["output"]["supertensor_offset"] == [0, 0, 8, 0]
    assert fence == {"offset_words": 47, "command": "FENCE"}
    assert dump == {
        "offset_words": 48,
        "command": "DUMP_DRAM",
        "dram_buffer_id": 4,
        "filename": "conv.hex",
    }
    assert data["stopped_by"]["code"] == "E502"
    assert data["stopped_by"]["at"] == "command at word 82"


def test_what_is_no_stream_lists_nothing() -> None:
    listed = list_stream(b"")
    assert str(listed) == ""
    assert listed.stopped_by is not None
    assert listed.stopped_by.code == "E930"
