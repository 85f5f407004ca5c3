"""Processes that use mutated files, each within its memory and time, one file after another.

A worker is forked of a process that has everything imported, and says how each file ended. One
that ends by itself, takes too long or takes too much memory is a finding, and another worker goes
on after the file that it had.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import io
import json
import os
import re
import resource
import select
import shutil
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mizzen.cli.main import OF_THE_SYSTEM, Exit, main
from mizzen.diagnostics import MizzenError
from mutations_formats import Corpus, Input, input_of

MOST_ADDRESSES = 4 << 30
"""Bytes of addresses that a worker may have, besides those of the process that it is forked of."""
MOST_BYTES = 2 << 30
"""What it may have of memory, at its peak."""
FRESH_BYTES = 3 << 29
"""A worker that has had so much ends after the file, so that the next is measured anew."""
MOST_SECONDS = 20.0
"""Of the processor: of the worker and what it has started."""
MOST_CLOCK_SECONDS = 300.0
"""What waits for nothing uses no processor, nor does what the work of others keeps from it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the use of a file ended.

    kind       "right" for an exit status 0, 1 or 2 in time; else what was found: "bug",
               "exception", "exit", "executed", "memory", "hang", "died"
    code       the diagnostic's code, where there was one
    signature  of a finding: the exception and where it was raised
    peak_bytes of the worker so far
    """

    number: int
    format: str
    use: str
    base: str
    kind: str
    exit: int
    code: str
    seconds: float
    peak_bytes: int
    signature: str = ""
    text: str = ""


def use(given: Input, corpus: Corpus, folder: Path) -> Outcome:
    """Use a file, in this process and this thread, and say how that ended."""
    path = folder / f"{given.number}{given.base.suffix}"
    path.write_bytes(given.data)
    beside = folder / f"{given.number}{given.format.beside}"
    if given.format.beside:
        shutil.copy(given.base.with_suffix(given.format.beside), beside)
    errors = io.StringIO()
    start = time.perf_counter()
    kind, status, trace = "right", 0, ""
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(errors),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            if given.use.function is not None:
                status = _called(
                    given.use.function, beside if given.format.beside else path, errors
                )
            else:
                words = {"x": path, "c": corpus.folder, "o": folder / "out", "x_beside": beside}
                status = main([word.format(**words) for word in given.use.words])
        except BaseException:
            kind, status, trace = "exception", -1, traceback.format_exc()
    seconds = time.perf_counter() - start
    said = errors.getvalue()
    if status == Exit.BUG:
        kind, trace = "bug", said
    elif status not in (0, 1, 2) and kind == "right":
        kind, trace = "exit", said
    if any(name.name == "EXECUTED" for name in folder.iterdir()):
        kind, trace = "executed", said
    _emptied(folder)
    code = re.search(r"error\[(E\d+)\]", said)
    return Outcome(
        given.number, given.format.name, given.use.name, given.base.name, kind, int(status),
        "" if code is None else code[1], seconds, _peak_bytes(),
        signature_of(trace) if kind != "right" else "", trace[-6000:] if kind != "right" else "",
    )  # fmt: skip


def _called(function: object, path: Path, errors: io.StringIO) -> int:
    """Call what a verb calls, and end as the verb would."""
    assert callable(function)
    try:
        function(path)
    except MizzenError as error:
        errors.write(str(error))
        return Exit.WRONG_INPUT
    except MemoryError:
        return Exit.WRONG_INPUT
    except OSError as error:
        if error.errno in OF_THE_SYSTEM:
            return Exit.WRONG_INPUT
        errors.write(traceback.format_exc())
        return Exit.BUG
    except Exception:
        errors.write(traceback.format_exc())
        return Exit.BUG
    return Exit.HOLDS


def _peak_bytes() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _emptied(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


FRAME = re.compile(r'File "[^"]*?/(?:src/)?([^"]*\.py)", line (\d+), in (\S+)')


def signature_of(trace: str) -> str:
    """Say where a trace ends in the project's own code, and with which exception."""
    frames = [row for row in FRAME.findall(trace) if "mizzen/" in row[0]]
    path, line, function = frames[-1] if frames else ("?", "0", "?")
    raised = [
        row
        for row in trace.splitlines()
        if re.match(r"[\w.]+(Error|Exception|Interrupt|Exit|Warning)\b", row)
    ]
    kind = raised[-1].partition(":")[0] if raised else "?"
    return f"{kind} at {path.rpartition('mizzen/')[2]}:{line} in {function}"


@dataclass(slots=True)
class Worker:
    """A worker as its parent sees it."""

    pid: int
    pipe: int
    traces: Path
    folder: Path
    numbers: Sequence[int]
    done: int = 0
    since: float = 0.0
    buffer: bytes = b""

    @property
    def current(self) -> int:
        """The number of the file that it has."""
        return self.numbers[min(self.done, len(self.numbers) - 1)]


def start(corpus: Corpus, seed: int, numbers: Sequence[int]) -> Worker:
    """Fork a worker for files of these numbers."""
    folder = Path(tempfile.mkdtemp(prefix="mutations-"))
    traces = folder.with_suffix(".traces")
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(ours)
            os.setsid()
            _serve(corpus, seed, numbers, theirs, folder, traces)
            status = 0
        finally:
            os._exit(status)
    os.close(theirs)
    return Worker(pid, ours, traces, folder, numbers, since=time.monotonic())


def _serve(
    corpus: Corpus, seed: int, numbers: Sequence[int], pipe: int, folder: Path, traces: Path
) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    addresses = pages * resource.getpagesize() + MOST_ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    faulthandler.register(signal.SIGUSR1, file=traces.open("w"), all_threads=True)
    os.chdir(folder)
    os.environ["MIZZEN_DEBUG"] = "1"
    os.environ["COLUMNS"] = "80"
    gc.freeze()
    for number in numbers:
        outcome = use(input_of(corpus, seed, number), corpus, folder)
        os.write(pipe, json.dumps(asdict(outcome)).encode() + b"\n")
        if outcome.peak_bytes > FRESH_BYTES:
            return


def outcomes(worker: Worker, wait: float) -> Iterator[Outcome]:
    """Give what a worker has told within a time; its last outcome may be how it ended."""
    ready, _, _ = select.select([worker.pipe], [], [], wait)
    if ready:
        data = os.read(worker.pipe, 1 << 16)
        if not data:
            yield from _ended(worker)
            return
        *lines, worker.buffer = (worker.buffer + data).split(b"\n")
        for line in lines:
            worker.done += 1
            worker.since = time.monotonic()
            outcome = Outcome(**json.loads(line))
            yield _in_memory(outcome)
    elif _over_time(worker):
        yield _hung(worker)


def _in_memory(outcome: Outcome) -> Outcome:
    if outcome.kind != "right" or outcome.peak_bytes <= MOST_BYTES:
        return outcome
    return replace(outcome, kind="memory", signature=f"over {MOST_BYTES} bytes")


def _over_time(worker: Worker) -> bool:
    clock = time.monotonic() - worker.since
    if clock < MOST_SECONDS:
        return False
    return clock > MOST_CLOCK_SECONDS or _processor_seconds(worker) > MOST_SECONDS


def _processor_seconds(worker: Worker) -> float:
    """Return what the worker's session has used since it has its file: at most what clocks say.

    A worker uses the processor all the time; so what it used in all, over the share of time that it
    has had its file, would need a second number. The share of one look is enough.
    """
    before = _session_ticks(worker.pid)
    time.sleep(0.5)
    share = (_session_ticks(worker.pid) - before) / os.sysconf("SC_CLK_TCK") / 0.5
    return share * (time.monotonic() - worker.since)


def _session_ticks(session: int) -> int:
    total = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == session:
                    total += int(fields[11]) + int(fields[12])
    return total


def _hung(worker: Worker) -> Outcome:
    seconds = time.monotonic() - worker.since
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker.pid, signal.SIGUSR1)
        time.sleep(0.5)
    trace = worker.traces.read_text() if worker.traces.exists() else ""
    _kill(worker)
    os.waitpid(worker.pid, 0)
    frames = re.findall(r'File "[^"]*mizzen/([^"]*)", line (\d+) in (\S+)', trace)
    place = "{}:{} in {}".format(*frames[0]) if frames else "?"
    worker.done += 1
    return _without_answer(worker, "hang", f"hang at {place}", trace[-6000:], seconds)


def _ended(worker: Worker) -> Iterator[Outcome]:
    """Say with what a worker ended, if it should not have."""
    _, status = os.waitpid(worker.pid, 0)
    _kill(worker)
    if status != 0:
        worker.done += 1
        reason = (
            f"signal {os.WTERMSIG(status)}"
            if os.WIFSIGNALED(status)
            else f"status {os.WEXITSTATUS(status)}"
        )
        trace = worker.traces.read_text() if worker.traces.exists() else ""
        yield _without_answer(worker, "died", f"worker ended with {reason}", trace[-6000:], 0.0)
    worker.pid = 0


def _kill(worker: Worker) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(worker.pid, signal.SIGKILL)


def _without_answer(
    worker: Worker, kind: str, signature: str, text: str, seconds: float
) -> Outcome:
    number = worker.numbers[worker.done - 1]
    worker.pid = 0
    return Outcome(number, "", "", "", kind, -1, "", seconds, 0, signature, text)


def put_away(worker: Worker) -> None:
    """End a worker that may still run, and take its files away."""
    if worker.pid:
        _kill(worker)
        os.waitpid(worker.pid, 0)
    os.close(worker.pipe)
    shutil.rmtree(worker.folder, ignore_errors=True)
    worker.traces.unlink(missing_ok=True)
