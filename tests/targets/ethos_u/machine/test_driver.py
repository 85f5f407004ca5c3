"""Driver payloads: Vela's own, and everything the driver would refuse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.machine import driver
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.program import HardwareId

from .. import streams  # noqa: TID252 tests are no package with a name

COP1 = 0x31504F43
COP2 = 0x32504F43
TAG = 0x4D55_4556
CONFIGURATION = [0x0010_0001, 0x0000_1807, 0x1006_6001]
STREAM = [0x0002, 0xFFFF_0000]


def payload(*words: int) -> bytes:
    return np.array(words, dtype="<u4").tobytes()


def test_a_payload_has_hardware_and_stream() -> None:
    parsed = driver.parse(payload(COP1, *CONFIGURATION, 5, 5, 5, 2 << 16 | 2, *STREAM))
    assert parsed.hardware == HardwareId(config_word=0x1807, id_word=0x1006_6001)
    assert parsed.version == (0, 1)
    assert parsed.words.tolist() == STREAM
    assert parsed.offset_bytes == 32


def cop2(*head: int) -> bytes:
    record = [4 * (1 + len(head) + len(STREAM)), 4 * len(head), *head, *STREAM]
    return payload(COP2, 1, 4 * (1 + len(record)), 0, 1, *record)


def test_a_later_payload_has_the_same() -> None:
    parsed = driver.parse(cop2(TAG, 1, 20, 0x1807, 0x1006_6001, 1, 64, 0, 0xFFFF_FFFF))
    assert parsed.hardware == HardwareId(config_word=0x1807, id_word=0x1006_6001)
    assert parsed.version is None
    assert parsed.words.tolist() == STREAM
    assert parsed.offset_bytes == 64
    assert driver.parse(cop2(0)).hardware is None


def test_the_hardware_may_be_missing() -> None:
    parsed = driver.parse(payload(COP1, 5, 5, 2 << 16 | 2, *STREAM, 5))
    assert (parsed.hardware, parsed.version, parsed.offset_bytes) == (None, None, 16)
    assert parsed.words.tolist() == STREAM


def test_a_later_payload_is_aligned_too() -> None:
    with pytest.raises(
        MizzenError, match=r"E523.*multiple of 16 bytes in the payload, not at byte"
    ):
        driver.parse(cop2(0, 0))


def test_the_stream_is_a_view() -> None:
    data = np.frombuffer(payload(COP1, 5, 5, 2 << 16 | 2, *STREAM), np.uint8)
    assert np.shares_memory(driver.parse(data).words, data)


def test_the_length_has_24_bits() -> None:
    stream = np.zeros(0x1_0002, np.uint32)
    built = driver.build(stream, None)
    assert np.frombuffer(built, "<u4")[3] == 0x0002_0102
    assert len(driver.parse(built).words) == 0x1_0002


@given(
    stream=st.lists(st.integers(0, 2**32 - 1), max_size=20),
    hardware=st.none()
    | st.builds(HardwareId, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
    version=st.tuples(st.integers(0, 15), st.integers(0, 15)),
)
def test_parsing_inverts_building(
    stream: list[int], hardware: HardwareId | None, version: tuple[int, int]
) -> None:
    parsed = driver.parse(driver.build(stream, hardware, version))
    assert parsed.words.tolist() == stream
    assert parsed.hardware == hardware
    assert parsed.version == (None if hardware is None else version)
    assert parsed.offset_bytes % 16 == 0


def outcome(data: bytes) -> driver.Payload | str:
    try:
        return driver.parse(data)
    except MizzenError as error:
        return error.diagnostic.code


@given(st.binary(max_size=60) | st.binary(max_size=60).map(lambda rest: b"COP1" + rest))
def test_any_bytes_parse_or_are_refused(data: bytes) -> None:
    parsed = outcome(data)
    if isinstance(parsed, str):
        assert parsed in {f"E52{digit}" for digit in range(6)}
    else:
        assert len(parsed.words) * 4 + parsed.offset_bytes <= len(data)


@pytest.mark.parametrize("accelerator", streams.ACCELERATORS)
def test_vela_payloads_are_rebuilt_identically(
    archive: Callable[[str, str], bytes], accelerator: str
) -> None:
    data = streams.payload(archive("hello_world_int8.tflite", accelerator))
    parsed = driver.parse(data)
    assert parsed.version is not None
    assert driver.build(parsed.words, parsed.hardware, parsed.version) == data
    made_for = driver.configuration(parsed.hardware)
    assert made_for.accelerator == accelerator
    assert made_for.arch is streams.ACCELERATORS[accelerator][0]


REFUSED = [
    (b"COP1\0", "E520]: a driver payload must be whole words of 4 bytes, not 5 bytes"),
    (b"", "E520]: a driver payload must be whole words of 4 bytes, not 0 bytes"),
    (b"TFL3", "E521]: a driver payload must start with COP1 or COP2, not b'TFL3'"),
    (
        payload(COP1, 5, 7),
        "E522]: the driver action at word 2 must be OPTIMIZER_CONFIG (1), COMMAND_STREAM (2) or "
        "NOP (5), not 7 (unknown)",
    ),
    (
        payload(COP1, 3),
        "E522]: the driver action at word 1 must be OPTIMIZER_CONFIG (1), COMMAND_STREAM (2) or "
        "NOP (5), not 3 (READ_APB)",
    ),
    (
        payload(COP1, 1 << 16 | 2, 0),
        "E523]: the command stream must start at a multiple of 16 bytes in the payload, not at "
        "byte 8",
    ),
    (
        payload(COP1, 1, 2),
        "E524]: OPTIMIZER_CONFIG at word 1 must have 3 words, not 2: the payload ends",
    ),
    (
        payload(COP1, 5, 5, 4 << 16 | 2, 0, 0, 0),
        "E524]: COMMAND_STREAM at word 3 must be followed by its 4 words, not 3: the payload ends",
    ),
]


@pytest.mark.parametrize(("data", "message"), REFUSED)
def test_what_the_driver_would_refuse(data: bytes, message: str) -> None:
    with pytest.raises(MizzenError) as caught:
        driver.parse(data)
    assert str(caught.value) == f"error[{message}\n  rule Ethos-U core driver, ethosu_driver.c"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            payload(COP2, 2, 0, 0),
            "error[E521]: a COP2 payload must be of version 1, not 2\n"
            "  help compile with `--cop-format COP1`",
        ),
        (
            b"COP2",
            "error[E521]: a COP2 payload must be of version 1, not None\n"
            "  help compile with `--cop-format COP1`",
        ),
        (
            payload(COP2, 1, 0, 0),
            "error[E525]: a driver payload must have a command stream, but has none",
        ),
        (
            payload(COP2, 1, 4, 0),
            "error[E524]: a COP2 payload must have 4 bytes after word 3, not 0",
        ),
        (
            payload(COP2, 1, 4, 0, 1),
            "error[E524]: a record of COP2 at word 4 must have a head: the payload ends",
        ),
        (
            payload(COP2, 1, 8, 0, 7, 0),
            "error[E522]: the record of COP2 at word 4 must be a command stream (1), not 7",
        ),
        (
            payload(COP2, 1, 8, 0, 1, 0),
            "error[E524]: the record at word 6 must have a head: the payload ends",
        ),
        (
            payload(COP2, 1, 16, 0, 1, 8, 6, 0),
            "error[E524]: the head of the command stream must have 6 bytes after word 6, not 4",
        ),
        (
            payload(COP2, 1, 16, 0, 1, 4, 0, 0),
            "error[E525]: a driver payload must have one command stream, not two",
        ),
        (
            payload(COP1, 5),
            "error[E525]: a driver payload must have a command stream, but has none",
        ),
        (
            payload(COP1, 5, 5, 2, 5, 5, 5, 2),
            "error[E525]: a driver payload must have one command stream, not two",
        ),
    ],
)
def test_what_is_no_payload_for_us(data: bytes, message: str) -> None:
    with pytest.raises(MizzenError) as caught:
        driver.parse(data)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("config", "accelerator", "shram_kib"),
    [
        (0x0000_1005, "ethos-u55-32", 16),
        (0x0000_1807, "ethos-u55-128", 24),
        (0x1000_3008, "ethos-u65-256", 48),
        (0x1000_6009, "ethos-u65-512", 96),
        (0x2000_0118, "ethos-u85-256", None),
    ],
)
def test_config_names_the_accelerator(config: int, accelerator: str, shram_kib: int | None) -> None:
    read = driver.configuration(HardwareId(config, 0x1006_6001))
    assert read.accelerator == accelerator
    assert read.shram_kib == shram_kib
    assert read.arch_version == (1, 0, 6)
    assert read.stream_version == (read.arch is Arch.U85)
    assert not read.custom_dma


def test_hardware_that_is_not_made() -> None:
    with pytest.raises(MizzenError) as caught:
        driver.configuration(None)
    assert str(caught.value) == (
        "error[E526]: the payload must say which NPU it is for, but has no OPTIMIZER_CONFIG"
    )
    with pytest.raises(MizzenError) as caught:
        driver.configuration(HardwareId(0x3000_1807, 0))
    assert str(caught.value) == (
        "error[E505]: CONFIG is 0x30001807, whose product must be one of U55 (0), U65 (1), U85 (2)"
        "\n  rule ethosu55_interface.h, ethosu65_interface.h, ethosu85_interface.h: config_r"
    )
    with pytest.raises(MizzenError) as caught:
        driver.configuration(HardwareId(0x0000_1809, 0))
    assert str(caught.value) == (
        "error[E526]: CONFIG of an Ethos-U55 must say one of 32, 64, 128, 256 MACs, not 512"
        "\n  rule ethosu55_interface.h, ethosu65_interface.h, ethosu85_interface.h: config_r"
    )
