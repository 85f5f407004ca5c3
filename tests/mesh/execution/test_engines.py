"""Engines: whichever executes a program, and whatever ends on the way, the result is the same."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.mesh.emission import emit
from mizzen.mesh.execution import Engine, InProcess, OnRay, Processes, compare, execute
from mizzen.mesh.execution.dividing import divide
from mizzen.mesh.execution.engines import Crew, Job, Lost
from mizzen.mesh.execution.part import Answer, Orders
from mizzen.mesh.machine import find_machine
from mizzen.mesh.mapping import Mapping, map_network
from mizzen.mesh.network import Network, network_of_tflite
from mizzen.mesh.program import Compute, MeshProgram, Receive, Send

Made = dict[str, Callable[[], Mapping]]


@pytest.fixture(scope="module")
def on_ray() -> Iterator[Engine]:
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    variables = {"PYTHONPATH": os.pathsep.join(("src", os.environ.get("PYTHONPATH", "")))}
    ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": variables})
    yield OnRay(2)
    ray.shutdown()


@pytest.fixture(params=["processes", "ray"])
def engine(request: pytest.FixtureRequest) -> Engine:
    return Processes(2) if request.param == "processes" else request.getfixturevalue("on_ray")


def images(program: MeshProgram, count: int) -> Any:
    shape = program.network.tensors[0].shape
    return np.random.default_rng(5).integers(-128, 128, (count, *shape)).astype(np.int8)


@pytest.mark.parametrize("name", ["residual", "several_tiles_an_element", "replicas"])
def test_every_tensor_is_that_of_the_whole_network(
    name: str, by_hand: Made, engine: Engine
) -> None:
    program = emit(by_hand[name]())
    rows = compare(program, [images(program, 21)], engine)
    assert [str(row) for row in rows if row.differing] == []


@pytest.mark.parametrize(
    "name",
    [
        "kws_ref_model",
        pytest.param("pretrainedResnet_quant", marks=pytest.mark.sweep),
        pytest.param("vww_96_int8", marks=pytest.mark.sweep),
    ],
)
def test_every_tensor_of_a_real_network(
    name: str, models: Path, split_at_random: Callable[[Network, int], Mapping], engine: Engine
) -> None:
    network = network_of_tflite((models / f"{name}.tflite").read_bytes(), name)
    program = emit(split_at_random(network, 5))
    rows = compare(program, [images(program, 5)], engine)
    assert [str(row) for row in rows if row.differing] == []


@dataclass(frozen=True)
class Killing:
    """An engine of which a worker is killed before it gets its third orders, so many times."""

    engine: Engine
    times: int

    @property
    def workers(self) -> int:
        return self.engine.workers

    def start(self, job: Job) -> Crew:
        return KillingCrew(self.engine.start(job), self.times)


class KillingCrew:
    def __init__(self, crew: Any, times: int) -> None:
        self.crew = crew
        self.times = times
        self.orders = 0

    def submit(self, part: int, orders: Orders) -> None:
        self.orders += 1
        if self.orders >= 3 and self.times:
            self.times -= 1
            os.kill(self.process(part), signal.SIGKILL)
        self.crew.submit(part, orders)

    def process(self, part: int) -> int:
        if hasattr(self.crew, "workers"):
            return self.crew.workers[part].process.pid
        return self.crew.ray.get(self.crew.actors[part].process.remote())

    def wait(self) -> tuple[int, Answer | Lost]:
        return self.crew.wait()

    def replace(self, part: int) -> None:
        self.crew.replace(part)

    def close(self) -> None:
        self.crew.close()


def test_a_killed_worker_is_replaced_and_the_result_is_the_same(
    by_hand: Made, engine: Engine
) -> None:
    program = emit(by_hand["residual"]())
    given = [images(program, 40)]
    expected = execute(program, given)
    found = execute(program, given, Killing(engine, 2))
    assert (expected.restarts, found.restarts) == (0, 2)
    assert np.array_equal(found.outputs[0], expected.outputs[0])


def test_a_worker_that_ends_again_and_again_is_given_up(by_hand: Made) -> None:
    program = emit(by_hand["residual"]())
    with pytest.raises(MizzenError) as error:
        execute(program, [images(program, 40)], Killing(Processes(1), 9))
    assert str(error.value) == (
        "error[E536]: the worker of part 0 must not end, and ended 6 times: SIGKILL"
    )


def test_messages_between_workers_are_counted(by_hand: Made) -> None:
    program = emit(by_hand["split_channels"]())
    found = execute(program, [images(program, 10)], InProcess(2))
    assert found.moved_messages == 2 * 3, "two batches, all tiles of the first layer"
    assert found.moved_bytes == 10 * 240
    alone = execute(program, [images(program, 10)])
    assert (alone.moved_messages, alone.moved_bytes) == (0, 0)


def test_elements_are_divided_by_their_work(hand_mapping: Mapping) -> None:
    program = emit(hand_mapping)
    for workers in (1, 2, 3, 100):
        parts = divide(program, workers)
        named = sorted(element for part in parts for element in part)
        assert named == [row.element for row in program.elements]
        assert all(parts)


@dataclass(frozen=True)
class Timed:
    """Processes whose seconds of CPU are noted when they end."""

    workers: int
    seconds: list[float]

    def start(self, job: Job) -> Crew:
        return TimedCrew(Processes(self.workers).start(job), self.seconds)


class TimedCrew(KillingCrew):
    def __init__(self, crew: Any, seconds: list[float]) -> None:
        super().__init__(crew, 0)
        self.seconds = seconds

    def close(self) -> None:
        for worker in self.crew.workers.values():
            fields = Path(f"/proc/{worker.process.pid}/stat").read_text().rpartition(")")[2].split()
            ticks = int(fields[11]) + int(fields[12])
            self.seconds.append(ticks / os.sysconf("SC_CLK_TCK"))
        self.crew.close()


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("name", "machine", "count"),
    [("pretrainedResnet_quant", "simba36", 5760), ("vww4_128_128_INT8", "spinnaker2-1", 240)],
)
def test_two_workers_share_the_work(name: str, machine: str, count: int, models: Path) -> None:
    """By seconds of CPU: cores are shared with other work when tests run."""
    network = network_of_tflite((models / f"{name}.tflite").read_bytes(), name)
    program = emit(map_network(network, find_machine(machine)))
    given = [images(program, count)]
    alone, shared = list[float](), list[float]()
    expected = execute(program, given, Timed(1, alone)).outputs
    found = execute(program, given, Timed(2, shared)).outputs
    assert all(np.array_equal(*pair) for pair in zip(expected, found, strict=True))
    assert alone[0] / max(shared) >= 1.6, (alone, shared)


def put(program: MeshProgram, place: int, instructions: list[Any]) -> MeshProgram:
    rows = list(program.elements)
    rows[place] = replace(rows[place], instructions=tuple(instructions))
    return replace(program, elements=tuple(rows))


def refusal(program: MeshProgram, given: list[Any], engine: Engine | None = None) -> str:
    with pytest.raises(MizzenError) as error:
        execute(program, given, engine)
    return str(error.value).split("\n")[0]


@pytest.mark.parametrize("workers", [InProcess(1), Processes(2)])
def test_what_a_program_does_not_say_does_not_happen(by_hand: Made, workers: Engine) -> None:
    program = emit(by_hand["split_channels"]())
    given = [images(program, 2)]
    rows = list(program.elements[0].instructions)
    assert refusal(put(program, 0, rows[1:]), given, workers) == (
        "error[E532]: chip 0, router 0,0, element 0, instruction 0: region 1 (input) must have "
        "elements [0:1, 0:6, 0:5, 0:3], of which 90 are not there"
    )
    unsent = [row for row in rows if not isinstance(row, Send)]
    assert refusal(put(program, 0, unsent), given, workers) == (
        "error[E535]: message 0 must come to chip 0, router 2,0, element 0 for image 0, and "
        "nothing can go on that would send it; 1 more wait"
    )
    last = list(program.elements[4].instructions)
    assert isinstance(last[0], Receive)
    elsewhere = [replace(last[0], region=0), *last[1:]]
    assert refusal(put(program, 4, elsewhere), given, workers) == (
        "error[E532]: chip 0, router 1,1, element 0, instruction 0: region 0 (constants) must "
        "hold a box of a tensor"
    )


def test_boxes_of_another_tensor_are_not_there(by_hand: Made) -> None:
    program = emit(by_hand["split_channels"]())
    given = [images(program, 2)]
    rows = list(program.elements[0].instructions)
    (place,) = [index for index, row in enumerate(rows) if isinstance(row, Send)][:1]
    sent = rows[place]
    assert isinstance(sent, Send)
    rows[place] = replace(sent, box=sent.box[1:])
    holds = ", ".join(f"{start}:{stop}" for start, stop in sent.box)
    asked = ", ".join(f"{start}:{stop}" for start, stop in sent.box[1:])
    assert refusal(put(program, 0, rows), given) == (
        f"error[E532]: chip 0, router 0,0, element 0, instruction {place}: region {sent.region} "
        f"(output) must hold elements [{asked}], and holds elements [{holds}]"
    )


def test_regions_that_share_bytes_overwrite_each_other(by_hand: Made) -> None:
    program = emit(by_hand["several_tiles_an_element"]())
    row = program.elements[0]
    outputs = [each.output for each in row.instructions if isinstance(each, Compute)]
    regions = list(row.regions)
    regions[outputs[1]] = replace(regions[outputs[1]], address=regions[outputs[0]].address)
    elements = (replace(row, regions=tuple(regions)), *program.elements[1:])
    found = refusal(replace(program, elements=elements), [images(program, 1)])
    assert "region 2 (output) must have elements [0:1, 0:4, 0:8, 0:8], of which 256 are" in found


def test_other_inputs_than_the_network_has_are_refused(by_hand: Made) -> None:
    program = emit(by_hand["split_channels"]())
    given = images(program, 2)
    assert refusal(program, []) == "error[E534]: 1 inputs must be given for hand, not 0"
    assert refusal(program, [given[..., :2]]) == (
        "error[E534]: input x must be int8 [images, 1, 6, 5, 3], and is int8 [2, 1, 6, 5, 2]"
    )
    assert refusal(program, [given.astype(np.int16)]) == (
        "error[E534]: input x must be int8 [images, 1, 6, 5, 3], and is int16 [2, 1, 6, 5, 3]"
    )
    assert refusal(program, [given[:0]]) == (
        "error[E534]: at least one image must be given, not none"
    )
    layers = tuple(replace(layer, chain=None) for layer in program.network.layers)
    shapes = replace(program, network=replace(program.network, layers=layers))
    assert refusal(shapes, [given]) == (
        "error[E534]: hand must have weights to be executed, and has shapes only"
    )


def test_without_ray_its_engine_says_so(by_hand: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    program = emit(by_hand["split_channels"]())
    with pytest.raises(MizzenError) as error:
        execute(program, [images(program, 1)], OnRay(2))
    assert str(error.value) == (
        "error[E543]: ray must be installed for this engine, and is not\n"
        "  help install Mizzen with its extra cluster: pip install '.[cluster]' in its checkout"
    )
