"""Artifacts of PyTorch programs in threads, forks, copies and other processes."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection

import numpy as np
import pytest
import torch
from torch import nn

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.interface import Array
from mizzen.torch import compile

from .networks import Split, Whole

THREADS = 8


CASES = [
    (Whole, "ethos-u55-128"),
    (Split, "ethos-u85-256"),
    (Whole, "ethos-n78-4tops-4ple"),
    (Split, "ethos-n78-4tops-4ple"),
]


@pytest.fixture(scope="module", params=CASES, ids=lambda row: f"{row[0].__name__}-{row[1]}")
def artifact(request: pytest.FixtureRequest) -> Artifact:
    return built(*request.param)


def built(kind: type[nn.Module], accelerator: str) -> Artifact:
    torch.manual_seed(3)
    calls = [torch.randn(1, 3, 12, 12) for _ in range(4)]
    return compile(kind().eval(), (calls[0],), accelerator, calibration=calls)


@pytest.fixture(scope="module")
def inputs() -> list[Array]:
    rng = np.random.default_rng(5)
    return [rng.standard_normal((1, 3, 12, 12)).astype(np.float32) for _ in range(6)]


def answers(artifact: Artifact, inputs: list[Array]) -> list[Array]:
    found = [artifact.run(array) for array in inputs]
    return [array for array in found if isinstance(array, np.ndarray)]


def wrong(found: list[Array], expected: list[Array]) -> int:
    return sum(not np.array_equal(*pair) for pair in zip(found, expected, strict=True))


def test_threads(artifact: Artifact, inputs: list[Array]) -> None:
    expected = answers(artifact, inputs)
    with ThreadPoolExecutor(THREADS) as pool:
        rounds = list(pool.map(answers, [artifact] * THREADS, [inputs] * THREADS))
    assert [wrong(found, expected) for found in rounds] == [0] * THREADS


def test_forks(artifact: Artifact, inputs: list[Array]) -> None:
    """PyTorch has had threads of its own in the parent, which a fork does not take along."""
    expected = answers(artifact, inputs)
    torch.matmul(torch.randn(512, 512), torch.randn(512, 512))
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def child(pipe: Connection) -> None:
        pipe.send(wrong(answers(artifact, inputs), expected))

    children = [context.Process(target=child, args=(there,)) for _ in range(4)]
    for process in children:
        process.start()
    try:
        for _ in children:
            assert here.poll(60), "a child hangs"
            assert here.recv() == 0
    finally:
        for process in children:
            process.kill()
            process.join()


def test_copies_and_pickles(artifact: Artifact, inputs: list[Array]) -> None:
    expected = answers(artifact, inputs)
    for found in (copy.deepcopy(artifact), pickle.loads(pickle.dumps(artifact))):
        assert wrong(answers(found, inputs), expected) == 0
        assert found.inputs == artifact.inputs
        assert found.data == artifact.data


def test_another_process(inputs: list[Array]) -> None:
    """It knows nothing but the pickle; only one of these two needs PyTorch there."""
    artifacts = [built(Whole, "ethos-u55-128"), built(Split, "ethos-n78-4tops-4ple")]
    script = (
        "import pickle, sys\n"
        "artifacts, inputs = pickle.load(sys.stdin.buffer)\n"
        "pickle.dump([[row.run(x) for x in inputs] for row in artifacts], sys.stdout.buffer)\n"
    )
    given = pickle.dumps((artifacts, inputs))
    done = subprocess.run(
        [sys.executable, "-c", script], input=given, capture_output=True, check=True
    )
    for artifact, found in zip(artifacts, pickle.loads(done.stdout), strict=True):
        assert wrong(found, answers(artifact, inputs)) == 0
