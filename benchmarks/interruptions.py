"""Commands that signals end at random instants, and disks that are full: what is lost, what stays.

Run ``python benchmarks/interruptions.py`` for a table, with ``--json`` for the figures:

`trials`           commands that a signal was sent to, or that had a full disk
`damaged`          older files that are neither as they were nor as the command writes them
`mixed`            groups of files of which some are older and some new
`files_left`       files and folders that no user asked for, after SIGKILL at the next start
`processes_left`   processes of the command that are there two seconds after it
`hung`             commands that did not end within twenty seconds of a signal
`status_wrong`     exit statuses that do not say what happened

Each trial has older files in the places of all that the command writes, in a folder of its own, and
a folder of its own for temporary files. A signal comes once, at an instant between the start and a
little after the end of the undisturbed command. A full disk is a small tmpfs, which root can mount:
from one that has room for nothing new to one that has room for all. With ``--forked`` commands are
forked from a process that has imported everything and run each once, so that a trial takes a fifth
of the time, and none comes while Python imports.
"""

from __future__ import annotations

import argparse
import json
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
DIGITS = REPOSITORY / "examples" / "digits"
SHARED_MEMORY = Path("/dev/shm")
OUTPUT = "out"
OLD = b"older\n"
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGKILL")
SHELLS_BASE = 128
END_SECONDS = 20.0
UNDISTURBED_SECONDS = 600.0
GONE_SECONDS = 2.0
PAGE_BYTES = 4096
"""What a tmpfs gives room by."""
NO_ROOM = "E207"
FULL = "full"

COMMANDS: dict[str, tuple[str, ...]] = {
    "compile": ("compile", "digits.tflite", "--output-dir", OUTPUT),
    "run": ("run", "made/digits_vela.tflite", "--input", "images.npy", "--output-dir", OUTPUT),
    "evaluate": (
        "evaluate", "made/digits_vela.tflite", "--data", "images.npy", "--labels", "labels.npy",
        "--jobs", "2",
    ),
    "tune": (
        "tune", "digits.tflite", "--jobs", "2", "--budget-seconds", "3", "--output-dir", OUTPUT,
    ),
    "emulate-m33": ("emulate", "made/digits_vela.tflite", "--trace", f"{OUTPUT}/trace.json"),
    "emulate-m55": (
        "emulate", "made/digits_vela.tflite", "--cpu", "m55", "--trace", f"{OUTPUT}/trace.json",
    ),
    "mesh-map": ("mesh", "map", "digits.tflite", "--machine", "one", "-o", f"{OUTPUT}/p.mesh"),
    "mesh-run": ("mesh", "run", "p.mesh", "--engine", "processes", "--output-dir", OUTPUT),
    "mesh-report": ("mesh", "report", "p.mesh", "-o", f"{OUTPUT}/p.html"),
    "export": (
        "export", "made/digits_vela.tflite", "--to", "c", "--board", "corstone300",
        "--output-dir", OUTPUT,
    ),
    "report": (
        "report", "made/digits_vela.tflite", "-o", f"{OUTPUT}/page.html", "--csv", OUTPUT,
        "--trace", f"{OUTPUT}/trace.json",
    ),
}  # fmt: skip
"""Words of the commands, in a folder that has what they read."""

FIRST = (
    ("compile", "digits.tflite", "--output-dir", "made"),
    ("mesh", "map", "digits.tflite", "--machine", "one", "-o", "p.mesh"),
)
"""What makes that."""

Files = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Reference:
    """An undisturbed command: the seconds that it takes, and what it may write in each place."""

    seconds: float
    files: Mapping[str, frozenset[bytes]]

    @property
    def older(self) -> Files:
        """What is in these places before."""
        return dict.fromkeys(self.files, OLD)


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of a command that was disturbed."""

    command: str
    how: str
    status: int | None
    damaged: int
    mixed: bool
    files_left: tuple[str, ...]
    processes_left: int
    status_wrong: bool


class Place:
    """A folder in which a command is run, apart from all others."""

    def __init__(self, root: Path, store: Path) -> None:
        self.work, self.temporary = root / "work", root / "tmp"
        self.temporary.mkdir(parents=True)
        shutil.copytree(store, self.work)
        (self.work / OUTPUT).mkdir()

    @property
    def said(self) -> Path:
        """The file of what a command writes to standard error."""
        return self.work.with_name("said")

    def write(self, files: Files) -> None:
        """Put files into the folder of outputs."""
        for name, data in files.items():
            path = self.work / OUTPUT / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def files(self) -> dict[str, bytes]:
        """Return what is in the folder of outputs."""
        folder = self.work / OUTPUT
        paths = (path for path in folder.rglob("*") if path.is_file())
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}

    def left(self, known: Iterable[str], process: int) -> tuple[str, ...]:
        """Return what is there that no user asked for; `known` are names of outputs."""
        more = sorted(self.files().keys() - set(known))
        temporary = [path.name for path in self.temporary.iterdir()]
        shared = SHARED_MEMORY.glob(f".mizzen-{process}-*") if SHARED_MEMORY.is_dir() else ()
        return (*more, *temporary, *(path.name for path in shared))


class Command:
    """A command in a session of its own."""

    def __init__(self, words: Sequence[str], place: Place, *, is_forked: bool = False) -> None:
        line = [*words, "--quiet"]
        self.pid = _forked(line, place) if is_forked else _started(line, place)
        self.status: int | None = None

    def wait(self, seconds: float) -> int | None:
        """Return the exit status if there is one within some seconds."""
        end = time.monotonic() + seconds
        while self.status is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > end:
                break
            else:
                time.sleep(0.0005)
        return self.status


def _started(words: Sequence[str], place: Place) -> int:
    with place.said.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "mizzen", *words],
            cwd=place.work,
            env=os.environ
            | {"PYTHONPATH": str(REPOSITORY / "src"), "TMPDIR": str(place.temporary)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        )
    process.returncode = 0  # `Command` waits for it; the object must not warn that it still runs
    return process.pid


def _forked(words: Sequence[str], place: Place) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = SHELLS_BASE + signal.SIGINT
    try:
        os.setsid()
        os.chdir(place.work)
        os.environ["TMPDIR"] = str(place.temporary)
        tempfile.tempdir = None
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(os.open(place.said, os.O_WRONLY | os.O_CREAT), 2)
        sys.argv = ["mizzen", *words]
        status = _mizzen()
    finally:
        os._exit(status)


def _mizzen(words: Sequence[str] | None = None) -> int:
    from mizzen.cli.main import main

    return main(words)


def warm(names: Sequence[str], root: Path, store: Path) -> None:
    """Run commands in this process, so that those that are forked find all that is imported."""
    place = Place(root, store)
    before = Path.cwd()
    os.chdir(place.work)
    for name in names:
        _mizzen([*COMMANDS[name], "--json"])
    os.chdir(before)


def reference(words: Sequence[str], root: Path, store: Path, *, is_forked: bool) -> Reference:
    """Run a command undisturbed, twice: what it writes may differ."""
    contents: dict[str, set[bytes]] = {}
    seconds = 0.0
    for index in range(2):
        place = Place(root / str(index), store)
        start = time.monotonic()
        status = Command(words, place, is_forked=is_forked).wait(UNDISTURBED_SECONDS)
        seconds = max(seconds, time.monotonic() - start)
        if status not in (0, 1):
            raise SystemExit(f"{' '.join(words)}: {status} {place.said.read_text()}")
        for name, data in place.files().items():
            contents.setdefault(name, set()).add(data)
    return Reference(seconds, {name: frozenset(data) for name, data in contents.items()})


def interrupted(
    name: str, known: Reference, how: str, fraction: float, place: Place, *, is_forked: bool
) -> Trial:
    """Send a command a signal once, at a fraction of its time."""
    place.write(known.older)
    process = Command(COMMANDS[name], place, is_forked=is_forked)
    wanted = {0, 1}
    if process.wait(fraction * known.seconds) is None:
        number = getattr(signal, how)
        os.kill(process.pid, number)
        wanted |= {SHELLS_BASE + number, -number}
    status = process.wait(END_SECONDS)
    alive = _session(process.pid)
    if how == "SIGKILL" and place.left(known.files, process.pid):
        Command(("--version",), place).wait(END_SECONDS)
    return _judged(name, how, place, known, process.pid, status, alive, wrong=status not in wanted)


def on_full_disk(name: str, known: Reference, size: int, place: Place, *, is_forked: bool) -> Trial:
    """Let a command write to a disk that has `size` bytes."""
    with mounted(place.work / OUTPUT, size):
        place.write(known.older)
        process = Command(COMMANDS[name], place, is_forked=is_forked)
        status = process.wait(UNDISTURBED_SECONDS)
        alive = _session(process.pid)
        said = place.said.read_text()
        is_new = all(place.files().get(key) in data for key, data in known.files.items())
        fits = status in (0, 1) and is_new
        return _judged(name, FULL, place, known, process.pid, status, alive,
                       wrong=not fits and not (status == 2 and NO_ROOM in said))  # fmt: skip


def _judged(
    name: str,
    how: str,
    place: Place,
    known: Reference,
    process: int,
    status: int | None,
    alive: int,
    *,
    wrong: bool,
) -> Trial:
    files = place.files()
    kinds = Counter(
        "older" if files.get(key) == OLD else "new" if files.get(key) in data else "damaged"
        for key, data in known.files.items()
    )
    mixed = bool(kinds["older"] and kinds["new"])
    left = place.left(known.files, process)
    return Trial(name, how, status, kinds["damaged"], mixed, left, alive, wrong)


def _session(leader: int) -> int:
    """Count the processes of a session that stay; then end them."""
    end = time.monotonic() + GONE_SECONDS
    while (found := _members(leader)) and time.monotonic() < end:
        time.sleep(0.02)
    for member in found:
        os.kill(member, signal.SIGKILL)
    return len(found)


def _members(leader: int) -> list[int]:
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = path.read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if int(session) == leader and state != "Z":
            found.append(int(path.parent.name))
    return found


@contextmanager
def mounted(folder: Path, size: int) -> Generator[None]:
    """Mount a small disk on a folder for as long as the block runs."""
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    subprocess.run(words, check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True, capture_output=True)


def can_mount() -> bool:
    """Whether this user may mount a disk."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with mounted(Path(folder), PAGE_BYTES):
                return True
        except (subprocess.CalledProcessError, FileNotFoundError):
            return False


def sizes(known: Reference, count: int) -> list[int]:
    """Return sizes of a disk, from one that has room for older files only to one that has for all.

    Folders and files take a page each besides their contents.
    """
    pages = [-(-max(map(len, data)) // PAGE_BYTES) for data in known.files.values()]
    least, most = len(pages) + 1, 2 * (len(pages) + sum(pages)) + 2
    steps = {least + (most - least) * index // max(1, count - 1) for index in range(count)}
    return [PAGE_BYTES * step for step in sorted(steps)]


def measured(
    names: Sequence[str],
    signals: Sequence[str],
    count: int,
    disks: int,
    seed: int,
    *,
    is_forked: bool = False,
) -> Iterator[Trial]:
    """Make all trials."""
    drawn = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="interruptions-") as folder:
        store = Path(folder, "store")
        _fill(store)
        if is_forked:
            warm(names, Path(folder, "warm"), store)
        known = {
            name: reference(COMMANDS[name], Path(folder, "r", name), store, is_forked=is_forked)
            for name in names
        }
        tasks = [
            (name, how, drawn.uniform(0.0, 1.1))
            for _ in range(count)
            for name in names
            for how in signals
        ]
        if disks and can_mount():
            writing = [name for name in names if known[name].files]
            tasks += [(name, FULL, size) for name in writing for size in sizes(known[name], disks)]
        for index, (name, how, value) in enumerate(tasks):
            place = Place(Path(folder, "t", str(index)), store)
            if how == FULL:
                yield on_full_disk(name, known[name], int(value), place, is_forked=is_forked)
            else:
                yield interrupted(name, known[name], how, value, place, is_forked=is_forked)
            shutil.rmtree(place.work.parent, ignore_errors=True)


def _fill(store: Path) -> None:
    """Make the folder that every trial begins with."""
    store.mkdir()
    for path in DIGITS.glob("*.[nt]*"):
        shutil.copy(path, store)
    for words in FIRST:
        subprocess.run(
            [sys.executable, "-m", "mizzen", *words],
            cwd=store,
            env=os.environ | {"PYTHONPATH": str(REPOSITORY / "src")},
            check=True,
            capture_output=True,
        )


def figures(trials: Sequence[Trial]) -> dict[str, int]:
    """Return the figures of some trials."""
    return {
        "trials": len(trials),
        "damaged": sum(row.damaged for row in trials),
        "mixed": sum(row.mixed for row in trials),
        "files_left": sum(len(row.files_left) for row in trials),
        "processes_left": sum(row.processes_left for row in trials),
        "hung": sum(row.status is None for row in trials),
        "status_wrong": sum(row.status_wrong for row in trials),
    }


def table(trials: Sequence[Trial]) -> str:
    """The figures by command and by what disturbed it."""
    keys = sorted({(row.command, row.how) for row in trials})
    heads = list(figures(trials))
    lines = [f"{'command':14}{'how':9}" + "".join(f"{head:>16}" for head in heads)]
    for command, how in keys:
        found = figures([row for row in trials if (row.command, row.how) == (command, how)])
        lines.append(f"{command:14}{how:9}" + "".join(f"{found[head]:16,}" for head in heads))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("--signals", nargs="*", choices=SIGNALS, default=list(SIGNALS))
    parser.add_argument("--count", type=int, default=200, help="instants of each signal")
    parser.add_argument("--disks", type=int, default=50, help="sizes of a full disk; 0 for none")
    parser.add_argument("--forked", action="store_true", help="fork commands, which is faster")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    for name in SIGNALS[:-1]:  # those that `nohup` and shells have ignored behind commands
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    trials: list[Trial] = []
    for trial in measured(
        args.commands, args.signals, args.count, args.disks, args.seed, is_forked=args.forked
    ):
        trials.append(trial)
        if not args.json:
            print(trial, file=sys.stderr, flush=True)
    found = figures(trials)
    if args.json:
        print(json.dumps({"figures": found}))
        return
    print(table(trials))
    print("  ".join(f"{name} {value:,}" for name, value in found.items()))


if __name__ == "__main__":
    main()
