"""Workers: the same answer from any number of them, whatever happens to one."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from operator import truediv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.analysis.evaluation import Judgement, Listener, evaluate, judge
from mizzen.analysis.evaluation.inference import Inference
from mizzen.analysis.evaluation.samples import Stored
from mizzen.analysis.evaluation.spreading import Engine, OnProcesses, OnRay
from mizzen.artifact.artifact import Artifact
from mizzen.data.columns import DataSet, array_column
from mizzen.data.labels import Labels
from mizzen.diagnostics import Diagnostic, MizzenError, Severity
from mizzen.report.evaluation import Evaluation
from mizzen.workers import use_one_thread
from mizzen.workers.crew import Crew, Lost, Processes


@pytest.fixture(scope="session")
def digits(repository: Path) -> Artifact:
    path = repository / "examples" / "digits" / "digits.tflite"
    return mizzen.compile(path, "ethos-u55-128", prove="off")


@pytest.fixture(scope="session")
def samples(digits: Artifact, repository: Path) -> Stored:
    folder = repository / "examples" / "digits"
    column = array_column(
        np.load(folder / "images.npy"), digits.inputs[0], "images", sequences=False
    )
    return Stored("digits", DataSet((column,)), Labels(np.load(folder / "labels.npy")))


@pytest.fixture(scope="module")
def on_ray() -> Iterator[Engine]:
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    variables = {"PYTHONPATH": os.pathsep.join(("src", os.environ.get("PYTHONPATH", "")))}
    ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": variables})
    yield OnRay(None, 2)
    ray.shutdown()


def timeless(found: Evaluation) -> Evaluation:
    return replace(found, seconds=0.0)


@dataclass(frozen=True)
class Killing:
    """Processes that are killed before they are given one of some samples, so many times each."""

    jobs: int
    samples: frozenset[int]
    times: int

    def start(self, work: Inference) -> Crew:
        return _Killing(Processes(self.jobs, work), self)


class _Killing:
    def __init__(self, crew: Processes, plan: Killing) -> None:
        self.crew, self.plan, self.size = crew, plan, crew.size
        self.killed: dict[int, int] = {}

    def submit(self, worker: int, task: Any) -> None:
        column = task.columns[0]
        for sample in self.plan.samples & set(range(column.first, column.first + column.size)):
            if self.killed.get(sample, 0) < self.plan.times:
                self.killed[sample] = self.killed.get(sample, 0) + 1
                self.crew.workers[worker].process.send_signal(signal.SIGKILL)
        self.crew.submit(worker, task)

    def wait(self) -> tuple[int, Any | Lost]:
        return self.crew.wait()

    def replace(self, worker: int) -> None:
        self.crew.replace(worker)

    def close(self) -> None:
        self.crew.close()


def test_processes_say_the_same(digits: Artifact, samples: Stored) -> None:
    alone = timeless(judge(digits, samples, Judgement()))
    seen: list[int] = []
    listener = Listener(progress=seen.append)
    found = judge(digits, samples, Judgement(), engine=OnProcesses(3), listener=listener)
    assert timeless(found) == alone
    assert seen == sorted(seen)
    assert seen[-1] == 100


def test_actors_say_the_same(digits: Artifact, samples: Stored, on_ray: Engine) -> None:
    alone = timeless(judge(digits, samples, Judgement()))
    assert timeless(judge(digits, samples, Judgement(), engine=on_ray)) == alone


def test_a_dead_worker_is_replaced_and_named(digits: Artifact, samples: Stored) -> None:
    said: list[Diagnostic] = []
    found = judge(
        digits, samples, Judgement(), engine=Killing(2, frozenset((37,)), 1),
        listener=Listener(warn=said.append),
    )  # fmt: skip
    assert timeless(found) == timeless(judge(digits, samples, Judgement()))
    (warning,) = said
    assert (warning.code, warning.severity) == ("W256", Severity.WARNING)
    assert warning.message.startswith("process ")
    assert warning.message.endswith(
        "ended with SIGKILL while it inferred images[36] to images[47]; another does it again"
    )


def test_a_sample_that_every_worker_dies_of_is_named(digits: Artifact, samples: Stored) -> None:
    with pytest.raises(MizzenError) as error:
        judge(digits, samples, Judgement(), engine=Killing(2, frozenset((37,)), 9))
    assert error.value.diagnostic.render() == (
        "error[E252]: a worker must infer images[37], and 2 died of it, the last with SIGKILL\n"
        "  help leave the sample out, or give the machine more memory"
    )


@pytest.mark.parametrize("jobs", [1, 2])
def test_of_several_wrong_samples_the_first_is_named(
    digits: Artifact, samples: Stored, jobs: int
) -> None:
    column: Any = samples.data.columns[0]
    images = column.rows[:, 0].astype(np.float32)
    images[[20, 21, 77], 0, 3, 3, 0] = np.inf
    with pytest.raises(MizzenError, match=r"error\[E208\]: data\[20\]: input .* infinity"):
        evaluate(digits, images, np.zeros(100, int), jobs=jobs)


def test_an_error_that_nobody_expected_is_told() -> None:
    crew = Processes(1, partial(truediv, 1))
    try:
        crew.submit(0, 4)
        assert crew.wait() == (0, 0.25)
        crew.submit(0, 0)
        with pytest.raises(RuntimeError, match=r"in a worker: Traceback(.|\n)*ZeroDivisionError"):
            crew.wait()
    finally:
        crew.close()


def test_without_ray_the_engine_says_so(
    digits: Artifact, samples: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MizzenError, match=r"E543.*ray must be installed for this engine"):
        judge(digits, samples, Judgement(), engine=OnRay(None))


def test_one_thread_unless_the_environment_says_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    use_one_thread()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    use_one_thread()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "3"
