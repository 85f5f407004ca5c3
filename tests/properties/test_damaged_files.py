"""Whatever happens to a file, it ends in a diagnostic or in a result: no other exception, no hang.

Damage is done to a network, and to what the compiler makes of it.
"""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mizzen
from mizzen.artifact.loading import artifact_of
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer import read as read_file
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.frontends.tflite import macs, read

from .damage import damaged
from .small import small_network

SMALL = small_network()
NAMES = ("ethos-u55-64", "ethos-u65-512", "mixed", "ethos-n78", "cpu")
SLOW = settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])

FILE_CODES = {"E101", "E102"}
NETWORK_CODES = FILE_CODES | {"E103", "E104", "E105", "E106", "E108", "E133", "E134"}


def code_of(error: MizzenError) -> str:
    assert str(error).startswith(f"error[{error.diagnostic.code}]: ")
    return error.diagnostic.code


@given(damaged(SMALL))
def test_reading_a_file(data: bytes) -> None:
    code = None
    try:
        read_file(data, SCHEMA, "file")
    except MizzenError as error:
        code = code_of(error)
    assert code is None or code in FILE_CODES


@given(damaged(SMALL))
def test_reading_a_network(data: bytes) -> None:
    code = None
    try:
        main = read(data, "file").main
    except MizzenError as error:
        code = code_of(error)
    else:
        assert all(macs(main, operator) >= 0 for operator in main.operators)
    assert code is None or code in NETWORK_CODES


def outcome(data: bytes) -> str:
    """Load and run a file, once in a batch and once in a session; give what came of it."""
    try:
        artifact = artifact_of(data, "file")
        inputs = [np.zeros((2, *info.shape), info.dtype) for info in artifact.inputs]
        artifact.run(*inputs)
        artifact.session(2 if inputs else 1).run(*inputs)
    except MizzenError as error:
        return code_of(error)
    return "result"


@settings(max_examples=30)
@given(damaged(SMALL))
def test_reading_takes_memory_in_proportion_to_the_file(data: bytes) -> None:
    tracemalloc.start()
    outcome_of_reading(data)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < (1 << 20) + 200 * len(data)


def outcome_of_reading(data: bytes) -> str:
    try:
        read(data, "file")
    except MizzenError as error:
        return code_of(error)
    return "result"


@pytest.fixture(scope="module")
def artifacts() -> dict[str, bytes]:
    """Everything on one NPU, on another, and with one operator on the CPU between two."""
    pytest.importorskip("ethosu.regor", reason="Vela is not installed")
    return {
        "ethos-u55-64": mizzen.compile(SMALL, "ethos-u55-64").data,
        "ethos-u65-512": mizzen.compile(SMALL, "ethos-u65-512").data,
        "mixed": mizzen.compile(SMALL, "ethos-u55-128", ignore_ops=["FULLY_CONNECTED"]).data,
        "ethos-n78": mizzen.compile(SMALL, "ethos-n78-1tops-2ple").data,
        "cpu": SMALL,
    }


@pytest.mark.parametrize("name", NAMES)
def test_whole_files_give_results(artifacts: dict[str, bytes], name: str) -> None:
    assert outcome(artifacts[name]) == "result"


@SLOW
@given(st.data(), st.sampled_from(NAMES))
def test_loading_and_running(artifacts: dict[str, bytes], data: st.DataObject, name: str) -> None:
    assert outcome(data.draw(damaged(artifacts[name])))
