"""ETDumps: what ExecuTorch's own code writes, and damaged ones."""

from __future__ import annotations

import re
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from mizzen.analysis.measurement.calibration import read_log
from mizzen.analysis.measurement.formats import Format
from mizzen.analysis.measurement.reading import Measurement, OperatorTime
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer.etdump import SCHEMA
from mizzen.flatbuffer.reader import Record
from mizzen.flatbuffer.writer import write

NPU = "+EthosUBackend::execute()NPU"


def event(name: str, instruction: int, start: int, end: int, **more: str) -> Record:
    profile = {
        "name": name, "instruction_id": instruction, "start_time": start, "end_time": end, **more
    }  # fmt: skip
    return {"profile_event": profile}


EVENTS = [
    event("Method::execute", -1, 0, 5000),
    event("OPERATOR_CALL", 0, 10, 110),
    event("native_call_quantize.out", 0, 15, 100),
    event("DELEGATE_CALL", 1, 120, 4000),
    event(NPU, 1, 200, 3900),
    event("OPERATOR_CALL", 2, 4000, 4300),
    {"allocation_event": {"allocator_id": 1, "allocation_size": 64}},
]


def dump(runs: int = 1) -> bytes:
    return write({"version": 0, "run_data": [{"name": "run", "events": EVENTS}] * runs}, SCHEMA)


READ = (
    OperatorTime("quantize.out", 100, False),
    OperatorTime("DELEGATE_CALL", 3700, True),
    OperatorTime("OPERATOR_CALL", 300, False),
)


@pytest.mark.parametrize("prefix", [b"", b"\x00\x10\x00\x00"], ids=["plain", "with-its-size"])
def test_instructions_are_a_profile(prefix: bytes) -> None:
    assert read_log("net.etdp", prefix + dump(2)).measurements == (
        Measurement(Format.ETDUMP, 1, operators=READ),
        Measurement(Format.ETDUMP, 2, operators=READ),
    )


def test_a_measurement_is_told_by_its_run() -> None:
    assert [each.where for each in read_log("net.etdp", dump(2)).measurements] == ["run 1", "run 2"]


def test_the_table_has_the_fields_of_executorchs_schema() -> None:
    found = find_spec("executorch")
    if found is None or found.submodule_search_locations is None:
        pytest.skip("ExecuTorch is not installed")
    folder = Path(next(iter(found.submodule_search_locations))) / "devtools" / "etdump"
    text = re.sub(r"//[^\n]*", "", (folder / "etdump_schema_flatcc.fbs").read_text())
    for name, body in re.findall(r"table (\w+) *\{([^}]*)\}", text):
        if name in SCHEMA.tables:
            theirs = re.findall(r"(\w+) *:", body)
            ours = [field.name for field in SCHEMA.fields(name)]
            assert ours == theirs[: len(ours)], name
            assert len(ours) == len(theirs) or name == "DebugEvent"


def test_a_damaged_dump_is_refused_by_its_place() -> None:
    data = bytearray(dump())
    data[:4] = b"\xf0\xff\xff\x00"
    with pytest.raises(MizzenError) as caught:
        read_log("net.etdp", bytes(data))
    assert caught.value.diagnostic.code == "E102"


def test_any_damage_ends_in_an_answer_or_a_refusal() -> None:
    whole = dump()
    for place in range(0, len(whole), 3):
        data = bytearray(whole)
        data[place] ^= 0xFF
        with suppress(MizzenError):
            read_log("net.etdp", bytes(data))


def test_a_dump_without_instructions_measures_nothing() -> None:
    data = write({"version": 0, "run_data": [{"name": "run", "events": EVENTS[:1]}]}, SCHEMA)
    with pytest.raises(MizzenError) as caught:
        read_log("net.etdp", data)
    assert caught.value.diagnostic.code == "E740"
