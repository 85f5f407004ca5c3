"""Networks that keep variables: what is assigned is compared, and nothing is told that is right."""

from __future__ import annotations

import pytest

import mizzen
from mizzen.analysis.comparison.exactness import Inputs, compare, failures_of, notes_of
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.steps import NpuStep
from mizzen.diagnostics import MizzenError
from mizzen.report.comparison import Outcome

from ...targets.ethos_u.generator.streaming_networks import (  # noqa: TID252 tests are no package with a name
    random_streaming,
    streaming_network,
)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"])
def test_sound_streams_have_no_findings(accelerator: str, seed: int) -> None:
    found = compare(streaming_network(random_streaming(seed)), accelerator, inputs=Inputs(count=4))
    assert list(failures_of(found)) == []
    assert [row.code for row in notes_of(found)] == []


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-256"])
def test_what_is_assigned_is_seen(accelerator: str) -> None:
    data = streaming_network(random_streaming(1))
    found = compare(data, accelerator, inputs=Inputs(count=4))
    kept = [row for row in found.layers if row.kind == "STRIDED_SLICE"]
    assert kept
    assert all(row.outcome is Outcome.EQUAL and row.elements for row in kept)
    assigned = [row.into for row in found.layers if row.kind == "ASSIGN_VARIABLE"]
    assert assigned == [row.index for row in kept]


def test_wrong_state_is_told_where_it_is_kept() -> None:
    """An operation's zero point is another: what is told is at the state that it makes wrong."""
    data = streaming_network(random_streaming(1))
    artifact = mizzen.compile(data, "ethos-u55-128")
    assert artifact.report is not None
    (step,) = (row for row in artifact.steps if isinstance(row, NpuStep))
    start = artifact.data.find(step.program.words.tobytes())
    offsets = [
        instruction.offset_words
        for instruction in step.program.instructions
        if instruction.command.name == "SET_OFM_ZERO_POINT"
    ]
    told = set[str]()
    for offset in offsets:
        spoilt = bytearray(artifact.data)
        spoilt[start + 4 * offset + 2] ^= 1
        origins = artifact.report.origins
        try:
            broken = artifact_of(bytes(spoilt), artifact.name, artifact.report, origins)
            found = compare(data, artifact=broken)
        except MizzenError:
            continue
        assert not found.holds
        failures = [row.origin for row in failures_of(found) if row.code == "E483"]
        told |= {origin.kind or "" for origin in failures if origin is not None}
    assert "STRIDED_SLICE" in told
