"""Give mutated files of every format to what reads them: each ends in an answer or a diagnostic.

``python benchmarks/mutations.py --count 1000000 --seed 1 --jobs 2`` makes files by field and by
byte (`mutations_formats`), and uses each as a user would: verbs of the command line, or the
function that a verb reads such a file with. Allowed are the exit statuses 0, 1 and 2, in 20 seconds
and 2 GiB. A file has a number, and is made again by it: ``--number N`` uses it in this process, and
prints what it says. The corpus lies in ``--folder``, with findings and what was done: the same
command goes on where it was stopped. With ``--json`` the figures:

`mutated_inputs`        files that were used
`exit_3`                of them, that ended as a bug of Mizzen
`exceptions`            that ended in an exception past the command line, or in another status
`hangs`                 that took over 20 s of the processor
`deaths`                that ended the process
`executed`              whose text was executed
`peak_bytes`            of memory of a process, and `over_memory` files that took over 2 GiB
`slowest_seconds`       and `seconds` in all, `formats` one by one

Exits with 1 where there is a finding.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from mutations_corpus import make, missing
from mutations_formats import Corpus, Input, corpus_in, input_of
from mutations_workers import Outcome, Worker, outcomes, put_away, start, use

KINDS = {
    "bug": "exit_3", "exception": "exceptions", "exit": "exceptions", "hang": "hangs",
    "died": "deaths", "executed": "executed", "memory": "over_memory",
}  # fmt: skip
CHUNK = 500
"""Files whose results are noted together."""

SAYS_SECONDS = 20

Row = dict[str, Any]


def warm_up(corpus: Corpus) -> None:
    """Use a sound file of each format in every way, so that what is forked has all in memory."""
    folder = Path(tempfile.mkdtemp(prefix="mutations-"))
    for row in corpus.formats:
        for way in row.uses:
            path, data = corpus.bases[row][0]
            use(Input(0, row, path, data, way), corpus, folder)
    folder.rmdir()


@dataclass
class Job:
    """A chunk that is being done: what is known of it, and by which worker the rest is done."""

    chunk: int
    numbers: Sequence[int]
    worker: Worker
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def left(self) -> Sequence[int]:
        """The numbers of files of which nothing is known yet."""
        return self.numbers[len(self.outcomes) :]


class Campaign:
    """What was done of a range of files, and by whom the rest is being done."""

    def __init__(
        self, corpus: Corpus, folder: Path, seed: int, chunks: Sequence[Sequence[int]]
    ) -> None:
        """Take up what the folder has of them."""
        self.corpus = corpus
        self.seed = seed
        self.log = folder / f"seed-{seed}.jsonl"
        self.findings = folder / "findings"
        self.findings.mkdir(parents=True, exist_ok=True)
        self.chunks = {chunk[0] // CHUNK: chunk for chunk in chunks}
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        rows = {row["chunk"]: row for row in map(json.loads, lines)}
        self.rows: dict[int, Row] = {
            index: rows[index]
            for index, chunk in self.chunks.items()
            if index in rows and rows[index]["count"] == len(chunk)
        }

    def run(self, jobs: int) -> None:
        """Use all files that are left."""
        left = deque(index for index in self.chunks if index not in self.rows)
        doing: list[Job] = []
        began = said = time.monotonic()
        try:
            while left or doing:
                while left and len(doing) < jobs:
                    chunk = left.popleft()
                    numbers = self.chunks[chunk]
                    doing.append(Job(chunk, numbers, start(self.corpus, self.seed, numbers)))
                doing = [job for job in doing if self._goes_on(job, 0.2 / jobs)]
                if time.monotonic() - said > SAYS_SECONDS:
                    said = time.monotonic()
                    self._say(said - began)
        finally:
            for job in doing:
                put_away(job.worker)

    def _goes_on(self, job: Job, wait: float) -> bool:
        """Take what the worker of a job has told; whether there is more to come."""
        for told in outcomes(job.worker, wait):
            outcome = self._named(told)
            job.outcomes.append(outcome)
            self._note(outcome)
        if not job.left:
            put_away(job.worker)
            self._close(job)
        elif not job.worker.pid:
            put_away(job.worker)
            job.worker = start(self.corpus, self.seed, job.left)
        return bool(job.left)

    def _named(self, outcome: Outcome) -> Outcome:
        """Say of which format and use a file was whose worker could not."""
        if outcome.format:
            return outcome
        given = input_of(self.corpus, self.seed, outcome.number)
        return replace(outcome, format=given.format.name, use=given.use.name, base=given.base.name)

    def _note(self, outcome: Outcome) -> None:
        """Keep a finding: its file, and how it was used."""
        if outcome.kind == "right":
            return
        given = input_of(self.corpus, self.seed, outcome.number)
        name = f"{self.seed}-{outcome.number}"
        (self.findings / f"{name}{given.base.suffix}").write_bytes(given.data)
        text = json.dumps(asdict(outcome), indent=1) + "\n" + outcome.text
        (self.findings / f"{name}.txt").write_text(text)
        print(f"{outcome.kind} {outcome.number} {outcome.format}: {outcome.use}: "
              f"{outcome.signature}", file=sys.stderr, flush=True)  # fmt: skip

    def _close(self, job: Job) -> None:
        row = summary(job.chunk, job.outcomes)
        self.rows[job.chunk] = row
        with self.log.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def _say(self, seconds: float) -> None:
        found = figures(self.rows.values())
        counts = {key: found[key] for key in dict.fromkeys(KINDS.values()) if found[key]}
        total = sum(map(len, self.chunks.values()))
        print(f"{found['mutated_inputs']:,} of {total:,} files, {seconds:.0f} s, {counts}",
              file=sys.stderr, flush=True)  # fmt: skip


def summary(index: int, rows: Sequence[Outcome]) -> Row:
    """Sum up some files."""
    slowest = max(rows, key=lambda row: row.seconds)
    hungriest = max(rows, key=lambda row: row.peak_bytes)
    return {
        "chunk": index,
        "count": len(rows),
        "seconds": sum(row.seconds for row in rows),
        "slowest": [slowest.seconds, slowest.number, slowest.use],
        "peak": [hungriest.peak_bytes, hungriest.number, hungriest.use],
        "kinds": Counter(row.kind for row in rows),
        "formats": {name: [sum(1 for row in rows if row.format == name),
                           sum(row.seconds for row in rows if row.format == name),
                           sum(1 for row in rows if row.format == name and row.kind != "right")]
                    for name in sorted({row.format for row in rows})},
        "codes": Counter(f"{row.format} {row.exit} {row.code}" for row in rows),
        "findings": [[row.number, row.kind, row.format, row.signature]
                     for row in rows if row.kind != "right"],
    }  # fmt: skip


def figures(rows: Iterable[Row]) -> Row:
    """Return the figures of some chunks; see the module."""
    every = list(rows)
    kinds = Counter[str]()
    formats: dict[str, list[float]] = {}
    for row in every:
        for kind in row["kinds"]:
            kinds[KINDS.get(kind, "right")] += row["kinds"][kind]
        for name, parts in row["formats"].items():
            formats[name] = [
                a + b for a, b in zip(formats.get(name, [0, 0.0, 0]), parts, strict=True)
            ]
    return {
        "mutated_inputs": sum(row["count"] for row in every),
        **{name: kinds[name] for name in dict.fromkeys(KINDS.values())},
        "peak_bytes": max((row["peak"][0] for row in every), default=0),
        "slowest_seconds": max((row["slowest"] for row in every), default=[0.0]),
        "seconds": sum(row["seconds"] for row in every),
        "formats": formats,
    }


def numbered(first: int, count: int) -> list[Sequence[int]]:
    """Return the numbers of files in chunks, which are the same wherever one begins."""
    numbers = range(first, first + count)
    starts = range(first - first % CHUNK, first + count, CHUNK)
    return [range(max(at, numbers.start), min(at + CHUNK, numbers.stop)) for at in starts]


def show(given: Input, corpus: Corpus) -> Outcome:
    """Use one file in this process; it lies in the folder that is printed."""
    os.environ["MIZZEN_DEBUG"] = "1"
    folder = Path(tempfile.mkdtemp(prefix="mutation-"))
    kept = folder.with_suffix(given.base.suffix)
    kept.write_bytes(given.data)
    print(f"{kept}: {given.format.name} of {given.base.name}, used by: {given.use.name}")
    outcome = use(given, corpus, folder)
    folder.rmdir()
    print(json.dumps(asdict(outcome), indent=1))
    print(outcome.text)
    return outcome


def main() -> int:
    """Use files, and print what was found."""
    parser = argparse.ArgumentParser(description="Use mutated files, as users would.")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument(
        "--folder", type=Path, default=Path("mutations"), help="corpus, log, findings"
    )
    parser.add_argument(
        "--number", type=int, help="use the file of this number only, in this process"
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    corpus = corpus_in(make(arguments.folder.resolve() / "corpus"))
    if arguments.number is not None:
        return show(input_of(corpus, arguments.seed, arguments.number), corpus).kind != "right"
    if missing():
        print(f"not installed, and left out: {', '.join(missing())}", file=sys.stderr)
    warm_up(corpus)
    campaign = Campaign(
        corpus,
        arguments.folder.resolve(),
        arguments.seed,
        numbered(arguments.first, arguments.count),
    )
    campaign.run(arguments.jobs)
    found = figures(campaign.rows.values())
    print(json.dumps({"figures": found}) if arguments.json else json.dumps(found, indent=1))
    return int(any(found[name] for name in KINDS.values()))


if __name__ == "__main__":
    sys.exit(main())
