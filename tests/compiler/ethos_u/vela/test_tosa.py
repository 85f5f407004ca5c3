"""Vela as a judge of TOSA files: its code is taken as it is and proved, or there is an error."""

from __future__ import annotations

import numpy as np
import pytest

import mizzen
from mizzen.graph import DType, Graph, Value
from mizzen.ops import Builder
from mizzen.package.tosa import write

from ..networks import report_of  # noqa: TID252 tests are no package with a name
from ..test_tosa import MAP, build, joined, rescale  # noqa: TID252

ACCELERATORS = ("ethos-u55-128", "ethos-u85-256")
VELA = {"generator": "vela"}


def refusal(graph: Graph, accelerator: str = ACCELERATORS[0]) -> str:
    with pytest.raises(mizzen.MizzenError) as caught:
        mizzen.compile(write(graph), accelerator, target_options=VELA)
    return str(caught.value)


def halved(b: Builder, value: Value) -> Value:
    return rescale(b, rescale(b, value, DType.INT32, 20), DType.INT8, 31)


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_velas_code_is_proved(accelerator: str) -> None:
    artifact = mizzen.compile(write(build(halved)), accelerator, target_options=VELA)
    report = report_of(artifact)
    assert report.compiler == "Vela 5.2.0"
    assert report.proof.equal == 1
    assert report.proof.inputs > 1
    ours = mizzen.compile(write(build(halved)), ACCELERATORS[0])
    image = np.random.default_rng(1).integers(-128, 128, MAP.shape).astype(np.int8)
    assert np.array_equal(artifact.run(image), ours.run(image))


def test_wrong_code_is_an_error() -> None:
    said = refusal(build(joined))
    assert said.startswith("error[E307]: Vela's code must compute what the network does, and that")
    assert "help leave out `--generator`" in said


def test_what_stops_vela_is_said() -> None:
    def compare(b: Builder, value: Value) -> Value:
        wide = b("CAST", value, dtype=DType.INT32)
        return b("CAST", b("GREATER", wide, wide), dtype=DType.INT8)

    assert refusal(build(compare)) == (
        "error[E305]: the compiler must place every operator, and cannot: Non-passthrough "
        "operation (Greater) could not run on NPU\n"
        "  at   model.tosa\n"
        "  help leave out `--generator`: Mizzen's own code needs no Vela"
    )


def test_variables_are_not_given_to_vela() -> None:
    graph = Graph()
    graph.add("VARIABLE", (), (), {"name": "state", "type": MAP, "initial": None})
    read = graph.add("VARIABLE_READ", (), [MAP], {"name": "state", "type": MAP}).result
    graph.set_outputs([Builder(graph)("CLAMP", read, min_val=0, max_val=9)])
    assert refusal(graph).startswith(
        "error[E308]: Vela must get a network without variables, and this one has 'state'\n"
    )
