"""What the proof of a compilation finds, and what it costs.

Run ``python benchmarks/proof.py`` for a table, with ``--json`` for the figures:

`planted_found`        of mistakes planted in streams that change an output, the part that is found
`planted_changing`     how many of those there were
`planted_refused`      mistakes besides, with which the stream cannot be executed at all
`waits_found`          of waits that were removed, the part whose absence the proof notices
`proof_over_compile`   processor time of the proof over that of the compilation, all networks
`proof_over_waiting`   time until the proof is there over that of the compilation: the reference is
                       computed while the compiler is at work

With ``--artifacts N`` single bits of compiled files are flipped instead, N in each of some networks
for each family, in streams and in constants alike:

`compare_found_FAMILY`     of those that change an output of `--inputs` random inputs, the part that
                           `mizzen compare --artifact` finds
`compare_changing_FAMILY`  how many of those there were
`check_tried`              those, and `--checked N` besides in each
`check_refused`            how many of them cannot be loaded, or are not sound for `mizzen check`
`check_accepts_what_run_refuses`

Our own code is proved, or with ``--generator vela`` Vela's. Mistakes are those of `proof_mistakes`.
Whether one changes an output is asked of `--inputs` random inputs, whatever the proof says; with
`--log FILE` the answers are kept there, and a second run only proves. Networks are those of the
folder that MIZZEN_MODELS names.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

import mizzen
from mizzen.artifact.steps import NpuStep
from mizzen.diagnostics import MizzenError
from proof_artifacts import artifacts
from proof_effects import first_differing
from proof_mistakes import CASES, Case, Mistake, mistakes

REPOSITORY = Path(__file__).resolve().parents[1]
MODELS = Path(os.environ.get("MIZZEN_MODELS", REPOSITORY.parent / "shared" / "models"))
PLANTED_IN = (
    "ad01_int8", "hello_world_int8", "kws_micronet_m", "kws_ref_model", "micro_speech_quantized",
    "person_detect", "pretrainedResnet_quant",
)  # fmt: skip
"""Networks that are on the NPU as a whole, in one operator."""

DIGITS = REPOSITORY / "examples" / "digits" / "digits.tflite"
DIGITS_AND = ("digits", "hello_world_int8", "micro_speech_quantized", "ad01_int8")
"""Networks whose artifacts are spoilt."""

FAMILIES = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256", "ethos-n78-4tops-4ple")
ACCELERATORS = {
    "own": ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256"),
    "vela": ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256"),
}
"""By whose code is proved."""
MOST_INPUTS = 10_000


class Log:
    """What is known of effects, one line of JSON for the mistakes of a case."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        rows = [json.loads(line) for line in lines]
        self._known: dict[str, list[int | None]] = {row["key"]: row["effects"] for row in rows}

    def effects(self, case: Case, planted: Sequence[NpuStep], inputs: int) -> list[int | None]:
        """Return the first input for which each program gives another output."""
        digest = sha256()
        for row in (case.step, *planted):
            digest.update(row.program.words.tobytes())
            for data in row.program.constants.values():
                digest.update(data.tobytes())
        key = f"{case.model.name} {inputs} {digest.hexdigest()}"
        if key not in self._known:
            simulators = [row.simulator for row in planted]
            self._known[key] = first_differing(case.step.simulator, simulators, inputs)
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write(json.dumps({"key": key, "effects": self._known[key]}) + "\n")
        return self._known[key]


@dataclass(frozen=True)
class Verdict:
    """What became of a mistake.

    refused  the stream cannot be executed at all
    proved   the proof finds nothing
    effect   the first input for which an output changes; None if none does
    """

    mistake: Mistake
    refused: bool = False
    proved: bool = False
    effect: int | None = None

    def __str__(self) -> str:
        if self.refused:
            return "refused"
        if self.mistake.kind == "wait":
            return "wait not needed" if self.proved else "wait found"
        if self.effect is None:
            return "changes nothing" if self.proved else "found, changes nothing"
        return "missed" if self.proved else "found"


def judge(case: Case, planted: Sequence[Mistake], log: Log, inputs: int) -> Iterator[Verdict]:
    """Say what becomes of mistakes."""
    executable: list[tuple[Mistake, NpuStep, bool]] = []
    for mistake in planted:
        step = case.planted(mistake)
        try:
            _ = step.simulator
        except MizzenError:
            yield Verdict(mistake, refused=True)
            continue
        proved = case.holds(mistake, step)
        executable.append((mistake, step, proved))
    effects = log.effects(case, [step for _, step, _ in executable], inputs)
    for (mistake, _, proved), effect in zip(executable, effects, strict=True):
        yield Verdict(mistake, proved=proved, effect=effect)


def processor_seconds() -> float:
    """Seconds of the processor, those of processes that have ended and of workers included."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + sum(_of_workers())


def _of_workers() -> Iterator[float]:
    """Return the seconds of child processes that go on, where the system says them (Linux)."""
    ticks = os.sysconf("SC_CLK_TCK")
    for task in Path("/proc/self/task").glob("*/children"):
        for child in task.read_text().split():
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            yield (int(fields[USER_TICKS]) + int(fields[SYSTEM_TICKS])) / ticks


USER_TICKS, SYSTEM_TICKS = 11, 12
"""Places in `/proc/PID/stat` behind the process's name. Ref: proc_pid_stat(5)."""


@dataclass(frozen=True)
class Spent:
    """Seconds that something takes, of the processor and of who waits for it."""

    processor: float
    waiting: float


def costs(generator: str, only: Sequence[str], times: int) -> dict[str, tuple[Spent, Spent]]:
    """Return what compiling without a proof takes, and what the proof adds.

    only   networks by their names; all where there are none
    times  to compile each
    """
    found: dict[str, tuple[Spent, Spent]] = {}
    for path in sorted(MODELS.glob("*.tflite")):
        for accelerator in ACCELERATORS[generator] if not only or path.stem in only else ():
            off, quick = (
                _least(path, accelerator, generator, prove, times) for prove in ("off", "quick")
            )
            added = Spent(quick.processor - off.processor, quick.waiting - off.waiting)
            found[f"{path.stem} {accelerator}"] = off, added
    return found


def _least(path: Path, accelerator: str, generator: str, prove: str, times: int) -> Spent:
    """Return what some compilations take on average, as the system counts workers in hundredths.

    The time of who waits is the least one's.
    """
    start, waited = processor_seconds(), list[float]()
    for _ in range(times):
        began = time.perf_counter()
        mizzen.compile(path, accelerator, prove=prove, target_options={"generator": generator})
        waited.append(time.perf_counter() - began)
    return Spent((processor_seconds() - start) / times, min(waited))


TIMES = 5


def plants(
    generator: str,
    names: Sequence[str],
    accelerators: Sequence[str],
    count: int,
    inputs: int,
    seed: int,
    log: Path | None,
    said: Callable[[str], None],
) -> dict[str, float]:
    """Plant so many mistakes in networks for each accelerator, and return the figures.

    said  is told what became of them
    """
    known = Log(log)
    places = [(name, row) for name in names for row in accelerators or ACCELERATORS[generator]]
    kinds: Counter[tuple[str, str]] = Counter()
    for name, accelerator in places:
        case = CASES[generator](MODELS / f"{name}.tflite", accelerator)
        rng = np.random.default_rng([seed, *f"{name} {accelerator}".encode()])
        planted = list(mistakes(case, -(-count // len(places)), rng))
        verdicts = list(judge(case, planted, known, inputs))
        kinds.update((row.mistake.kind, str(row)) for row in verdicts)
        for row in verdicts:
            if str(row) == "missed":
                said(f"  missed for input {row.effect}: {row.mistake.kind}, {row.mistake.where}")
        said(f"{name:26} {accelerator:14} {dict(Counter(map(str, verdicts)))}")
    for (kind, verdict), times in sorted(kinds.items()):
        said(f"{kind:10} {verdict:24} {times}")
    for kind in sorted({kind for kind, _ in kinds}):
        said(f"{kind:10} {'found of those that change':24} {_part(kinds, kind):.4f}")
    counts: Counter[str] = Counter()
    for (_, verdict), times in kinds.items():
        counts[verdict] += times
    changing = counts["found"] + counts["missed"]
    waits = counts["wait found"] + counts["wait not needed"]
    return {
        "planted_found": counts["found"] / max(1, changing),
        "planted_changing": float(changing),
        "planted_refused": float(counts["refused"]),
        "waits_found": counts["wait found"] / max(1, waits),
    }


def _part(kinds: Counter[tuple[str, str]], kind: str) -> float:
    """Return the part of a kind that was found, of those that change an output; 1 of none."""
    found, missed = kinds[kind, "found"], kinds[kind, "missed"]
    return found / (found + missed) if found + missed else 1.0


def _ratio(rows: Iterable[tuple[Spent, Spent]], of: Callable[[Spent], float]) -> float:
    every = list(rows)
    return sum(of(added) for _, added in every) / sum(of(off) for off, _ in every)


def _printed(text: str) -> None:
    print(text, flush=True)


def _silent(text: str) -> None:
    del text


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--generator", choices=sorted(CASES), default="own", help="whose code")
    parser.add_argument("--times", type=int, default=TIMES, help="that a network is compiled")
    parser.add_argument("--of", nargs="*", default=(), help="networks whose costs are measured")
    parser.add_argument("--mistakes", type=int, default=2000)
    parser.add_argument("--inputs", type=int, default=MOST_INPUTS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--on", nargs="*", default=(), help="accelerators; all that have such code")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--only", nargs="*", default=PLANTED_IN)
    parser.add_argument("--plants-only", action="store_true", help="measure no costs")
    parser.add_argument("--artifacts", type=int, metavar="N", help="flip bits of artifacts instead")
    parser.add_argument("--checked", type=int, metavar="N", default=0)
    parser.add_argument("--families", nargs="*", default=FAMILIES)
    options = parser.parse_args()
    said = _silent if options.json else _printed
    if options.artifacts is not None:
        _tell(_of_artifacts(options, said), options.json)
        return
    generator = options.generator
    spent = {} if options.plants_only else costs(generator, options.of, options.times)
    figures = plants(
        generator,
        options.only,
        options.on,
        options.mistakes,
        options.inputs,
        options.seed,
        options.log,
        said,
    )
    if spent:
        figures["proof_over_compile"] = _ratio(spent.values(), lambda row: row.processor)
        figures["proof_over_waiting"] = _ratio(spent.values(), lambda row: row.waiting)
    for name, (off, added) in spent.items():
        said(
            f"{name:48} {off.processor:.3f} s + {added.processor:.3f} s of the processor, "
            f"{off.waiting:.3f} s + {added.waiting:.3f} s of waiting"
        )
    _tell(figures, options.json)


def _of_artifacts(options: argparse.Namespace, said: Callable[[str], None]) -> Mapping[str, float]:
    only = DIGITS_AND if options.only is PLANTED_IN else options.only
    paths = [DIGITS if name == DIGITS.stem else MODELS / f"{name}.tflite" for name in only]
    return artifacts(
        paths, options.families, options.artifacts, options.checked, options.inputs, said
    )


def _tell(figures: Mapping[str, float], as_json: bool) -> None:
    if as_json:
        print(json.dumps({"figures": figures}))
    else:
        print("\n".join(f"{name:20} {value:.4g}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
