"""Damaged ExecuTorch programs, and payloads of their delegates, end in a diagnostic or a result."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mizzen.artifact.loading import artifact_of
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer import ptd
from mizzen.flatbuffer.pte import join, split
from mizzen.package.executorch import vela_bin
from mizzen.package.executorch.joining import keys_elsewhere, with_data

from .damage import damaged

GOLDEN = Path(__file__).parents[1] / "artifact" / "pte"
PROGRAMS = {path.stem: path.read_bytes() for path in sorted(GOLDEN.glob("*.pte"))}
LARGEST_INPUT_BYTES = 1 << 22
PAYLOAD_CODES = {"E170", "E171", "E172"}
SLOW = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
LONG = settings(SLOW, max_examples=3000)


def payload_of(data: bytes) -> bytes:
    """Return the payload of a program's first delegate."""
    file = split(data, "file")
    (held, *_) = file.program["backend_delegate_data"] or [None]
    return file.segments[1] if held is None else held["data"].tobytes()


PAYLOADS = {name: payload_of(data) for name, data in PROGRAMS.items()}


def code_of(error: MizzenError) -> str:
    assert str(error).startswith(f"error[{error.diagnostic.code}]: ")
    return error.diagnostic.code


def outcome(data: bytes) -> str:
    """Load and run a program; give what came of it."""
    try:
        artifact = artifact_of(data, "net.pte")
        if sum(info.size_bytes for info in artifact.inputs) > LARGEST_INPUT_BYTES:
            return "large"
        artifact.run(*(np.zeros(info.shape, info.dtype) for info in artifact.inputs))
    except MizzenError as error:
        return code_of(error)
    return "result"


def judge_payload(data: bytes) -> None:
    code = None
    try:
        content = vela_bin.read(data, "delegate")
    except MizzenError as error:
        code = code_of(error)
    else:
        assert len(content.commands) + len(content.weights) <= len(data)
    assert code is None or code in PAYLOAD_CODES


ANY_PROGRAM = st.sampled_from(sorted(PROGRAMS)).flatmap(lambda name: damaged(PROGRAMS[name]))
ANY_PAYLOAD = st.sampled_from(sorted(PAYLOADS)).flatmap(lambda name: damaged(PAYLOADS[name]))


@SLOW
@given(ANY_PROGRAM)
def test_any_damage_ends_in_a_diagnostic_or_a_result(data: bytes) -> None:
    assert outcome(data)


@settings(max_examples=200)
@given(ANY_PAYLOAD)
def test_any_damage_of_a_payload_is_told(data: bytes) -> None:
    judge_payload(data)


@settings(max_examples=30, deadline=None)
@given(ANY_PROGRAM)
def test_reading_takes_memory_in_proportion_to_the_file(data: bytes) -> None:
    tracemalloc.start()
    with suppress(MizzenError):
        artifact_of(data, "net.pte")
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < (1 << 22) + 200 * len(data)


@pytest.mark.sweep
@LONG
@given(ANY_PROGRAM)
def test_much_damage_ends_in_a_diagnostic_or_a_result(data: bytes) -> None:
    assert outcome(data)


@pytest.mark.sweep
@settings(max_examples=20000, deadline=None)
@given(ANY_PAYLOAD)
def test_much_damage_of_a_payload_is_told(data: bytes) -> None:
    judge_payload(data)


def whole(name: str) -> bytes:
    """Return a program with the data that it has in files beside it."""
    missing = keys_elsewhere(PROGRAMS[name], name)
    contents: dict[str, bytes] = {}
    for file in sorted(GOLDEN.glob("*.ptd")):
        contents |= ptd.named_data(file.read_bytes(), file.name)
    return with_data(PROGRAMS[name], name, {key: contents[key] for key in sorted(missing)})


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_taken_apart_and_joined_again_it_is_the_same_program(name: str) -> None:
    file = split(whole(name), name)
    program = {key: value for key, value in file.program.items() if key != "segments"}
    data = join(type(file)(program, file.segments))
    assert split(data, name).program["named_data"] == file.program["named_data"]
    again = artifact_of(data, name)
    given_ = np.zeros((1, *again.inputs[0].shape[1:]), np.float32)
    np.testing.assert_array_equal(again.run(given_), artifact_of(whole(name), name).run(given_))
