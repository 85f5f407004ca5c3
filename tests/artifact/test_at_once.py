"""One artifact used as objects are: by threads, forks, other processes, copies; in any batch."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection

import numpy as np
import pytest

import mizzen
from mizzen.artifact import execution
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import NpuStep
from mizzen.cpu import tflm
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer import Record, read, write
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.targets.ethos_u.judge.sim import machine

from .networks import N78, U55, U85, Array, convolutions, islands, random
from .test_artifact import memory_cell

THREADS = 8
CASES: dict[str, Callable[[], Artifact]] = {
    "ethos-u55": lambda: mizzen.compile(convolutions(), U55, prove="off"),
    "ethos-u85": lambda: mizzen.compile(convolutions(), U85, prove="off"),
    "ethos-n78": lambda: mizzen.compile(convolutions(), N78, prove="off"),
    "with the CPU": lambda: mizzen.compile(islands(), U55, ignore_ops=["ABS"], prove="off"),
    "with state": lambda: mizzen.compile(memory_cell(), U55, prove="off"),
}


def one(result: Array | tuple[Array, ...]) -> Array:
    assert isinstance(result, np.ndarray)
    return result


@pytest.fixture(scope="module", params=CASES)
def artifact(request: pytest.FixtureRequest) -> Artifact:
    found = CASES[request.param]()
    assert any(step.on_npu for step in found.steps)
    return found


def given(artifact: Artifact, count: int) -> list[Array]:
    return [random((1, *artifact.inputs[0].shape[1:]), seed) for seed in range(count)]


def answers(artifact: Artifact, inputs: list[Array]) -> list[Array]:
    return [one(artifact.run(array)) for array in inputs]


def wrong(found: list[Array], expected: list[Array]) -> int:
    return sum(not np.array_equal(*pair) for pair in zip(found, expected, strict=True))


def error_of(call: Callable[[], object]) -> str:
    with pytest.raises(MizzenError) as caught:
        call()
    return str(caught.value)


class TestThreads:
    def test_all_get_what_one_gets(self, artifact: Artifact) -> None:
        inputs = given(artifact, 12)
        expected = answers(artifact, inputs)
        with ThreadPoolExecutor(THREADS) as pool:
            rounds = list(pool.map(answers, [artifact] * THREADS, [inputs] * THREADS))
        assert [wrong(found, expected) for found in rounds] == [0] * THREADS

    def test_the_first_run_too(self) -> None:
        artifact = CASES["ethos-u55"]()
        inputs = given(artifact, 1)
        with ThreadPoolExecutor(THREADS) as pool:
            rounds = list(pool.map(answers, [artifact] * THREADS, [inputs] * THREADS))
        assert [wrong(found, answers(artifact, inputs)) for found in rounds] == [0] * THREADS

    def test_batches_of_different_sizes(self, artifact: Artifact) -> None:
        inputs = given(artifact, 12)
        expected = answers(artifact, inputs)

        def batches(size: int) -> list[Array]:
            parts = [np.concatenate(inputs[at : at + size]) for at in range(0, 12, size)]
            found = np.concatenate(answers(artifact, parts))
            return list(found[:, None])

        with ThreadPoolExecutor(THREADS) as pool:
            rounds = list(pool.map(batches, [1, 2, 3, 4, 5, 6, 12, 1]))
        flat = [array.reshape(1, *array.shape[1:]) for array in expected]
        for found in rounds:
            pairs = zip(found, flat, strict=True)
            assert all(np.array_equal(a.ravel(), b.ravel()) for a, b in pairs)

    def test_sessions_have_state_of_their_own(self) -> None:
        artifact = CASES["with state"]()
        inputs = given(artifact, 10)

        def stream(_: int) -> list[Array]:
            session = artifact.session()
            return [one(session.run(array)) for array in inputs]

        expected = stream(0)
        with ThreadPoolExecutor(THREADS) as pool:
            rounds = list(pool.map(stream, range(THREADS)))
        assert [wrong(found, expected) for found in rounds] == [0] * THREADS

    def test_calls_of_one_session_take_their_turns(self) -> None:
        """All calls bring the same input, so whoever is n-th gets the n-th output."""
        artifact = CASES["with state"]()
        (same,) = given(artifact, 1)
        session = artifact.session()
        expected = [one(session.run(same)) for _ in range(40)]
        shared = artifact.session()
        with ThreadPoolExecutor(THREADS) as pool:
            found = list(map(one, pool.map(shared.run, [same] * 40)))
        assert sorted(array.tobytes() for array in found) == sorted(a.tobytes() for a in expected)

    def test_idle_memory_stays_within_the_budget(self, monkeypatch: pytest.MonkeyPatch) -> None:
        artifact = CASES["ethos-u55"]()
        (step,) = artifact.steps
        assert isinstance(step, NpuStep)
        inputs = given(artifact, 8)
        monkeypatch.setattr(machine, "MEMORY_BUDGET_BYTES", 3 * step.simulator._image_bytes)
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(artifact.run, inputs * 4))
        assert 1 <= len(step.simulator._idle) <= 3


def in_a_fork(work: Callable[[], object]) -> object:
    """Return what `work` returns in a forked process, or the text of its error."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def child(pipe: Connection) -> None:
        try:
            pipe.send(work())
        except MizzenError as error:
            pipe.send(str(error))

    process = context.Process(target=child, args=(there,))
    process.start()
    try:
        assert here.poll(30), "the child hangs"
        return here.recv()
    finally:
        process.kill()
        process.join()


class TestForks:
    def test_children_and_the_parent_at_once(self, artifact: Artifact) -> None:
        inputs = given(artifact, 10)
        expected = answers(artifact, inputs)

        def work() -> int:
            return wrong(answers(artifact, inputs), expected)

        with ThreadPoolExecutor(4) as pool:
            children = [pool.submit(in_a_fork, work) for _ in range(4)]
            here = [work() for _ in range(4)]
        assert here == [0] * 4
        assert [child.result() for child in children] == [0] * 4

    def test_a_child_has_workers_of_its_own(self) -> None:
        artifact = CASES["with the CPU"]()
        inputs = given(artifact, 1)
        answers(artifact, inputs)
        (worker,) = tflm._workers

        def work() -> int:
            assert not tflm._workers
            answers(artifact, inputs)
            return tflm._workers[0].process.pid

        assert in_a_fork(work) != worker.process.pid
        assert tflm._workers == [worker]
        assert worker.process.poll() is None

    def test_a_fork_while_another_thread_has_the_worker(self) -> None:
        artifact = CASES["with the CPU"]()
        inputs = given(artifact, 1)
        expected = answers(artifact, inputs)
        with tflm._workers.lock:
            thread = threading.Thread(target=lambda: found.append(in_a_fork(work)))
            found: list[object] = []

            def work() -> int:
                return wrong(answers(artifact, inputs), expected)

            thread.start()
            thread.join()
        assert found == [0]

    def test_a_session_belongs_to_its_process(self) -> None:
        artifact = CASES["with state"]()
        session = artifact.session()
        text = in_a_fork(lambda: one(session.run(*given(artifact, 1))))
        assert isinstance(text, str)
        assert text.startswith(
            f"error[E715]: a session must be run in the process that started it, {os.getpid()}, not"
        )


class TestCopies:
    def test_deep_copies(self, artifact: Artifact) -> None:
        inputs = given(artifact, 3)
        before = copy.deepcopy(artifact)
        expected = answers(artifact, inputs)
        after = copy.deepcopy(artifact)
        for found in (before, after, copy.copy(artifact)):
            assert wrong(answers(found, inputs), expected) == 0
            assert found is not artifact
            assert found.report == artifact.report
        assert wrong(answers(artifact, inputs), expected) == 0

    def test_pickles(self, artifact: Artifact) -> None:
        inputs = given(artifact, 3)
        before = pickle.dumps(artifact)
        expected = answers(artifact, inputs)
        for text in (before, pickle.dumps(artifact)):
            found = pickle.loads(text)
            assert wrong(answers(found, inputs), expected) == 0
            assert found.inputs == artifact.inputs
            assert found.data == artifact.data
            assert found.report == artifact.report

    def test_spawned_processes(self, artifact: Artifact) -> None:
        """The script is what such a process does: it knows nothing but the pickle."""
        inputs = given(artifact, 3)
        script = (
            "import pickle, sys\n"
            "artifact, inputs = pickle.load(sys.stdin.buffer)\n"
            "pickle.dump([artifact.run(x) for x in inputs], sys.stdout.buffer)\n"
        )
        expected = answers(artifact, inputs)
        done = subprocess.run(
            [sys.executable, "-c", script],
            input=pickle.dumps((artifact, inputs)),
            capture_output=True,
            check=True,
        )
        assert wrong(pickle.loads(done.stdout), expected) == 0

    def test_sessions_are_not_copied(self) -> None:
        session = CASES["with state"]().session()
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            assert error_of(lambda attempt=attempt: attempt(session)) == (
                "error[E716]: a session must stay one: its state cannot be copied, nor sent to "
                "another process\n"
                "  help copy or send the artifact, and start another session of it"
            )


class TestEndedWorkers:
    def test_between_runs_nobody_notices(self) -> None:
        artifact = CASES["with the CPU"]()
        inputs = given(artifact, 2)
        expected = answers(artifact, inputs)
        tflm._workers[0].process.kill()
        tflm._workers[0].process.wait()
        assert wrong(answers(artifact, inputs), expected) == 0

    def test_in_the_middle_of_a_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        artifact = CASES["with the CPU"]()
        inputs = given(artifact, 2)
        expected = answers(artifact, inputs)
        send = tflm.send

        def send_and_kill(*arguments: object) -> None:
            tflm._workers[0].process.send_signal(signal.SIGSTOP)
            send(*arguments)  # pyright: ignore[reportArgumentType] handed on as they came
            tflm._workers[0].process.kill()

        monkeypatch.setattr(tflm, "send", send_and_kill)
        assert error_of(lambda: artifact.run(inputs[0])) == (
            "error[E703]: the process of the CPU's kernels must go on, but something ended it with "
            "SIGKILL\n"
            '  at   model.tflite, operator 1 ABS -> "t2"\n'
            "  help run it again; the system ends processes when memory is short"
        )
        monkeypatch.undo()
        assert wrong(answers(artifact, inputs), expected) == 0

    def test_a_session_whose_call_failed_midway_says_so(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        artifact = CASES["with the CPU"]()
        session = artifact.session()
        session.run(*given(artifact, 1))
        tflm._workers[0].end()
        assert error_of(lambda: session.run(*given(artifact, 1))).startswith("error[E705]")
        assert error_of(lambda: session.run(*given(artifact, 1))).startswith(
            "error[E717]: a session's calls must all succeed, and one failed when some of the state"
        )


class TestLargeBatches:
    def test_parts_give_what_the_whole_gives(
        self, artifact: Artifact, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        inputs = np.concatenate(given(artifact, 23))
        whole = one(artifact.run(inputs))
        for budget in (1, 2000, 5000):
            monkeypatch.setattr(execution, "VALUES_BUDGET_BYTES", budget)
            assert np.array_equal(one(artifact.run(inputs)), whole)

    def test_memory_does_not_grow_with_the_batch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        artifact = mizzen.compile(islands((1, 16, 64)), U55, ignore_ops=["ABS"], prove="off")
        budget, size = 1 << 18, 4000
        monkeypatch.setattr(execution, "VALUES_BUDGET_BYTES", budget)
        monkeypatch.setattr(machine, "MEMORY_BUDGET_BYTES", budget)
        inputs = np.broadcast_to(random((16, 64)), (size, 16, 64))
        artifact.run(inputs[:1])
        tracemalloc.start()
        found = one(artifact.run(inputs))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        # Between the steps; in the memory and the workspaces of two NPU operators; a message to the
        # worker beside its answer. All values of the batch at once are 64 budgets.
        assert peak - found.nbytes < 12 * budget
        assert (found == found[0]).all()

    @pytest.mark.sweep
    def test_a_hundred_thousand_in_bounded_memory(self) -> None:
        """The four tensors of 4 KiB between the steps would be 1.6 GB beside those in memory."""
        script = (
            "import sys, resource, numpy as np\n"
            "from mizzen.artifact.loading import artifact_of\n"
            "artifact = artifact_of(sys.stdin.buffer.read(), 'islands')\n"
            "y = artifact.run(np.broadcast_to(np.int8(-3), (100_000, 16, 256)))\n"
            "assert (y == y[0, 0, 0]).all()\n"
            "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - y.nbytes)\n"
        )
        data = mizzen.compile(islands((1, 16, 256)), U55, ignore_ops=["ABS"]).data
        done = subprocess.run(
            [sys.executable, "-c", script], input=data, capture_output=True, check=True
        )
        print(f"beside the outputs: {int(done.stdout) >> 20} MiB")
        assert int(done.stdout) < 6 * execution.VALUES_BUDGET_BYTES


def with_scratch(data: bytes, size_bytes: int) -> bytes:
    """Declare memories of another size than an artifact's NPU operators need."""
    record: Record = read(data, SCHEMA, "net")
    for tensor in record["subgraphs"][0]["tensors"]:
        if tensor["name"].startswith("scratch"):
            tensor["shape"] = np.array([size_bytes], np.int32)
    return write(record, SCHEMA)


@pytest.mark.parametrize(("accelerator", "ignored"), [(U85, []), ("ethos-u65-256", ["ABS"])])
def test_memory_that_is_declared_is_not_taken_before_it_is_needed(
    accelerator: str, ignored: list[str]
) -> None:
    data = mizzen.compile(islands((1, 4, 8)), accelerator, ignore_ops=ignored, prove="off").data
    script = (
        "import sys, resource, numpy as np\n"
        "from mizzen.artifact.loading import artifact_of\n"
        "artifact = artifact_of(sys.stdin.buffer.read(), 'islands')\n"
        "y = artifact.run(np.full((2, 4, 8), -3, np.int8))\n"
        "assert not artifact.hazards\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10, y.tobytes().hex())\n"
    )
    peaks: list[int] = []
    found: list[bytes] = []
    for network in (data, with_scratch(data, 1 << 30)):
        done = subprocess.run(
            [sys.executable, "-c", script], input=network, capture_output=True, check=True
        )
        peak, outputs = done.stdout.split()
        peaks.append(int(peak))
        found.append(outputs)
    assert found[0] == found[1]
    assert peaks[1] - peaks[0] < 1 << 26
