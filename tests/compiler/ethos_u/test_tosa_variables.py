"""TOSA networks by our own rules: variables, and what Vela's code is wrong for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.diagnostics import MizzenError
from mizzen.frontends import tosa as frontend
from mizzen.graph import DType, Graph, TensorType, Value
from mizzen.ops import Builder
from mizzen.package.tosa import write
from mizzen.reference import evaluate
from mizzen.report import Device

from .networks import report_of
from .test_tosa import MAP, build, rescale

STEPS = 20


def delay(initial: int = 0) -> Graph:
    """Return a network that adds to a map what it kept of the map before, and keeps the sum."""
    type = TensorType((1, 4, 4, 8), DType.INT8)
    graph = Graph()
    given = graph.add_input(type, "given")
    start = np.full(type.shape, initial, np.int8)
    graph.add("VARIABLE", (), (), {"name": "kept", "type": type, "initial": start})
    held = graph.add("VARIABLE_READ", (), [type], {"name": "kept", "type": type}).result
    b = Builder(graph)
    parts = [rescale(b, row, DType.INT32, 30 - 15) for row in (given, held)]
    total = rescale(b, b("ADD", *parts), DType.INT8, 46)
    graph.add("VARIABLE_WRITE", [total], [], {"name": "kept"})
    graph.set_outputs([b("CLAMP", total, min_val=-100, max_val=90)])
    return graph


def saved(graph: Graph, folder: Path) -> Path:
    path = folder / "network.tosa"
    path.write_bytes(write(graph))
    return path


@pytest.mark.parametrize("initial", [0, 3])
@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-512"])
def test_variables_are_kept_from_one_inference_to_the_next(
    accelerator: str, initial: int, tmp_path: Path
) -> None:
    path = saved(delay(initial), tmp_path)
    artifact = mizzen.compile(path, accelerator)
    report = report_of(artifact)
    assert {row.device for row in report.placements} == {Device.NPU}
    assert report.proof.equal == 1
    assert report.proof.inputs == 16
    graph = frontend.read(path.read_bytes(), "network.tosa")
    session, variables = artifact.session(), dict[str, np.ndarray]()
    rng = np.random.default_rng(1)
    for _ in range(STEPS):
        given = rng.integers(-128, 128, (1, 4, 4, 8)).astype(np.int8)
        (wanted,) = evaluate(graph, [given], variables=variables)
        found = session.run(given)
        assert np.array_equal(found[0] if isinstance(found, tuple) else found, wanted)


def test_variables_without_an_initial_value_are_refused() -> None:
    graph, kind = Graph(), TensorType((1, 4, 4, 8), DType.INT8)
    graph.add("VARIABLE", (), (), {"name": "kept", "type": kind, "initial": None})
    read = graph.add("VARIABLE_READ", (), [kind], {"name": "kept", "type": kind}).result
    graph.set_outputs([Builder(graph)("CLAMP", read, min_val=0, max_val=9)])
    with pytest.raises(MizzenError, match="variable kept has no initial value"):
        mizzen.compile(write(graph), "ethos-u55-128")


def test_checking_says_the_same(tmp_path: Path) -> None:
    found = mizzen.check(saved(delay(), tmp_path), "ethos-u55-128")
    assert not found.compilation.on_cpu


def two_scales() -> Graph:
    """Return a sum of operands whose scales Vela takes to be one."""

    def make(b: Builder, value: Value) -> Value:
        scaled = [rescale(b, value, DType.INT32, each) for each in (16, 17)]
        return rescale(b, b("ADD", *scaled), DType.INT8, 45)

    return build(make)


@pytest.mark.parametrize("generator", ["own", "best"])
def test_what_vela_sums_wrongly_is_right_by_our_rules(generator: str, tmp_path: Path) -> None:
    path = saved(two_scales(), tmp_path)
    options = {"generator": generator}
    artifact = mizzen.compile(path, "ethos-u55-128", target_options=options)
    choice = report_of(artifact).choice
    if generator == "best":
        assert choice is not None
        assert choice.reason.startswith("Vela's has none: Vela's code must compute what")
    image = np.random.default_rng(0).integers(-128, 128, MAP.shape).astype(np.int8)
    found = artifact.run(image)
    (wanted,) = evaluate(two_scales(), [image])
    assert np.array_equal(found[0] if isinstance(found, tuple) else found, wanted)
    with pytest.raises(MizzenError, match="E307"):
        mizzen.compile(path, "ethos-u55-128", target_options={"generator": "vela"})
