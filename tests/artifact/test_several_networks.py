"""Networks with signatures and control flow give what TensorFlow Lite Micro's kernels give.

The kernels execute the source, each signature as the main subgraph.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.analysis.instrumenting import instrument
from mizzen.artifact.alone import apart
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import read_network
from mizzen.cpu.tflm import CpuKernels

from .several_networks import CASES, Case, Net, adding, asking, built, composed, one_conv, several

ACCELERATORS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
BATCH = 6
COMPOSITE = "a composite"
"""TensorFlow Lite Micro has no kernel for it."""
KEEPING = "a variable of two signatures"
MADE = [row for row in CASES if row.name not in (COMPOSITE, KEEPING)]


def given(artifact: Artifact, seed: int) -> list[Any]:
    """Return inputs of a batch: flags, small counts, and any INT8."""
    random = np.random.default_rng(seed)
    most = {"bool": (0, 2), "int32": (0, 6), "int8": (-128, 128)}
    return [
        random.integers(*most[row.dtype.name], (BATCH, *row.shape)).astype(row.dtype)
        for row in artifact.inputs
    ]


def require_equal(data: bytes, artifact: Artifact) -> None:
    model = read_network(data, "net")
    views = [artifact, *map(artifact.signature, artifact.signatures)]
    for seed, view in enumerate(views):
        inputs = given(view, seed)
        wanted = CpuKernels(apart(model, view.contents.index)[1]).run(inputs, BATCH)
        found = view.run(*inputs)
        rows = found if isinstance(found, tuple) else (found,)
        for ours, theirs in zip(rows, wanted, strict=True):
            assert np.array_equal(ours.reshape(theirs.shape), theirs)


def require_told(artifact: Artifact) -> None:
    """Every operator is counted, and what is on the NPU is proved without hazards."""
    report = artifact.report
    assert report is not None
    assert sum(len(row.placements) for row in report.subgraphs) == len(report.placements)
    assert not report.proof.unproved
    assert not artifact.hazards
    assert all(row.proof.inputs for row in report.subgraphs if row.on_npu)


@pytest.mark.parametrize("case", MADE, ids=[row.name for row in MADE])
def test_networks_of_several_subgraphs_are_exact(case: Case, models: Path) -> None:
    data = built(case, models)
    artifact = mizzen.compile(data, ACCELERATORS[0])
    require_equal(data, artifact)
    require_told(artifact)


@pytest.mark.sweep
@pytest.mark.parametrize("accelerator", ACCELERATORS[1:])
@pytest.mark.parametrize("case", MADE, ids=[row.name for row in MADE])
def test_they_are_exact_on_every_ethos_u(case: Case, accelerator: str, models: Path) -> None:
    data = built(case, models)
    artifact = mizzen.compile(data, accelerator)
    require_equal(data, artifact)
    require_told(artifact)


def test_a_composite_is_a_call() -> None:
    """Its layers one after the other are the same network."""
    data = several([("main", composed()), ("inside", one_conv(4))])
    artifact = mizzen.compile(data, ACCELERATORS[0])
    (x,) = given(artifact, 1)
    middle = after_conv(10, x, "before")
    inside = CpuKernels(one_conv(4)).run([middle], BATCH)[0]
    assert np.array_equal(np.asarray(artifact.run(x)), after_conv(10, inside, "after"))


def after_conv(seed: int, x: Any, name: str) -> Any:
    """Return what the kernels make of the first layer of a network, or of its second one."""
    net = Net(seed)
    taken = net.map("x")
    made = [net.conv(taken, "before"), net.conv(taken, "after")]
    place = ("before", "after").index(name)
    return CpuKernels(net.finish([taken], made)).run([x], BATCH)[place]


def test_signatures_share_a_variable_in_a_session() -> None:
    """What one signature adds, the other reads: as one network that does both, on the kernels."""
    data = several([("add", adding(8)), ("ask", asking())], {"add": 0, "ask": 1})
    artifact = mizzen.compile(data, ACCELERATORS[0])
    session = artifact.session(BATCH)
    theirs = CpuKernels(adding(8)).session(BATCH)
    for seed in range(3):
        (x,) = given(artifact, seed)
        found = session.run(x[:, 0], signature="add")
        assert np.array_equal(np.asarray(found), theirs.run([x], BATCH)[0][:, 0])
    first = np.asarray(session.run(signature="ask"))
    again = np.asarray(session.run(signature="ask"))
    assert np.array_equal(first, again)
    fresh = np.asarray(artifact.session(BATCH).run(signature="ask"))
    assert not np.array_equal(first, fresh)


def test_the_main_network_is_cut_into_parts_and_others_stay_whole() -> None:
    data = several([("one", one_conv(4)), ("two", one_conv(5))], {"first": 0, "second": 1})
    artifact = mizzen.compile(data, ACCELERATORS[0])
    made = instrument(artifact)
    assert [said.render() for said in made.diagnostics] == [
        "warning[W355]: only the main subgraph is cut; what is on the NPU of others stays whole: "
        "two\n  at   model_vela.tflite"
    ]
    (x,) = given(artifact, 1)
    for name in artifact.signatures:
        found, wanted = (
            np.asarray(each.signature(name).run(x)) for each in (made.artifact, artifact)
        )
        assert np.array_equal(found, wanted)
