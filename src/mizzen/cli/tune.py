"""Search for fewer cycles or less memory. The network's results stay the same."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from mizzen.cli.compile import write, written_text
from mizzen.cli.configuration import (
    Keywords,
    add_configuration_options,
    add_output_option,
    keywords,
    output_folder,
    positive_number,
    show_configuration,
    size_in_bytes,
)
from mizzen.cli.console import Answer, Console
from mizzen.cli.layout import count, fields, per_second, size, table
from mizzen.diagnostics import Diagnostic
from mizzen.escaping import one_line

if TYPE_CHECKING:
    from mizzen.report.tuning import Candidate, Choice, TuningReport

SUMMARY = "search for fewer cycles or less memory, with the same results"

OBJECTIVES = {"cycles": "cycles", "sram": "SRAM", "flash": "flash"}
"""What there may be least of, in the words of the option and of the table."""

DOES_NOT_FIT = "E267"
"""The refusal of a rewrite that does not fit a network as others left it: a search meets that."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "model", metavar="MODEL", help="a quantised .tflite, .onnx or .pt2 file, or a .tosa file"
    )
    group = parser.add_argument_group("search")
    group.add_argument(
        "--objective",
        choices=tuple(OBJECTIVES),
        default="cycles",
        help="what to minimise: cycles, with no more memory than before the search; or SRAM or "
        "flash, with at most 1 %% more cycles (default: %(default)s)",
    )
    group.add_argument(
        "--sram-budget",
        metavar="BYTES",
        type=size_in_bytes,
        help="most SRAM of the result, with the runtime's part, as 384K for KiB; exit status 1 if "
        "nothing fits",
    )
    group.add_argument(
        "--jobs",
        metavar="N",
        type=positive_number,
        help="parallel compilations (default: the number of processors)",
    )
    group.add_argument(
        "--budget-seconds",
        metavar="N",
        type=positive_number,
        help="time limit, proofs included; the first compilation and its proof always happen",
    )
    add_configuration_options(parser)
    add_output_option(parser, "the chosen artifact, its report and, for Ethos-U, Vela's summary")


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Search, write the chosen artifact and its report, and tell what was found."""
    from mizzen.analysis.tuning import tune

    asked = keywords(options)
    chosen = show_configuration(asked, options.model, console)
    with console.progress(f"tuning {options.model}") as change:
        tuned = tune(
            options.model,
            objective=options.objective,
            sram_budget=options.sram_budget,
            jobs=options.jobs,
            budget_seconds=options.budget_seconds,
            on_progress=_teller(options.model, change),
            **asked,
        )
    report = tuned.report
    document: dict[str, object] = {**report.as_dict()}
    parts = [head_text(report, console), front_text(report, console)]
    diagnostics: tuple[Diagnostic, ...] = ()
    if tuned.artifact is not None and report.chosen is not None:
        files, replaced = write(tuned.artifact, chosen, output_folder(options))
        command = _command(options.model, asked, report.chosen.choice)
        document |= {what: str(file) for what, file in files.items()} | {"command": command}
        parts += [
            f"Repeats the chosen one\n  {command}",
            written_text(files.values(), width=console.width),
        ]
        compilation = tuned.artifact.report
        diagnostics = (*(compilation.diagnostics if compilation else ()), *replaced)
    failures = tuple(_failures(report))
    return Answer(document, "\n\n".join(parts), failures=failures, diagnostics=diagnostics)


def _teller(model: str, change: Callable[[str], None]) -> Callable[[int, int], None]:
    """Return a function that shows how many compilations are done, and how long the rest takes."""
    start = time.monotonic()

    def tell(done: int, planned: int) -> None:
        left = (time.monotonic() - start) / max(done, 1) * max(planned - done, 0)
        change(f"tuning {model}: {done} of at most {planned} compilations, {left:.0f} s left")

    return tell


def head_text(report: TuningReport, console: Console) -> str:
    """Return what was tried, and what came of it."""
    tried = f"{count(report.tried, 'compilation')}; artifacts that differ: {report.distinct}"
    facts = [("tried", tried)]
    refused = [refusal for refusal in report.refused if refusal.code != DOES_NOT_FIT]
    if refused:
        facts.append(("refused", f"{len(refused)}: {refused[0].message}"))
    facts.append(("as asked for", _measures(report.base)))
    if report.chosen is not None:
        facts.append(("chosen", f"{_measures(report.chosen)}, for least {_objective(report)}"))
        facts += grown_flash(report.chosen, report.base)
    return f"{one_line(report.model)}\n{fields(facts, width=console.width)}"


def _objective(report: TuningReport) -> str:
    return OBJECTIVES[report.objective.value]


def _measures(candidate: Candidate) -> str:
    rate = candidate.inferences_per_second
    speed = f"{per_second(rate)} inferences per second, " if rate else ""
    return (
        f"{count(candidate.cycles, 'cycle')}, {speed}{size(candidate.sram_bytes)} SRAM, "
        f"{size(candidate.constants_bytes)} flash"
    )


def grown_flash(chosen: Candidate, base: Candidate) -> Iterator[tuple[str, str]]:
    """Say by how much the chosen one takes more flash, if it does."""
    more = chosen.constants_bytes - base.constants_bytes
    if more > 0:
        change = _change(chosen.constants_bytes, base.constants_bytes)
        yield "flash grows", f"by {more:,} bytes, {change}"


def front_text(report: TuningReport, console: Console) -> str:
    """Return the table of what nothing else is better than."""
    base = report.base
    others = any(candidate.other_bytes for candidate in report.front)
    headings = ["", "cycles", "", "SRAM", "", *(["other RAM"] if others else []), "flash", ""]
    lines = [
        [
            ">" if candidate == report.chosen else "",
            f"{candidate.cycles:,}",
            _change(candidate.cycles, base.cycles),
            f"{candidate.sram_bytes:,}",
            _change(candidate.sram_bytes, base.sram_bytes),
            *([f"{candidate.other_bytes:,}"] if others else []),
            f"{candidate.constants_bytes:,}",
            _change(candidate.constants_bytes, base.constants_bytes),
            _proof(candidate),
            str(candidate.choice),
        ]
        for candidate in report.front
    ]
    headings += ["proof", "options"]
    numbers = range(1, len(headings) - 2)
    text = table(lines, width=console.width, headings=headings, right=tuple(numbers))
    return (
        f"Pareto front: nothing else is better in all of these (> chosen; memory in bytes)\n{text}"
    )


def _change(now: int, before: int) -> str:
    """Write a change in percent: nothing where there is none."""
    return "" if now == before or not before else f"{100 * now / before - 100:+.1f} %"


def _proof(candidate: Candidate) -> str:
    if candidate.proof.differing:
        return "differs"
    return f"exact, {candidate.proof.inputs}" if candidate.is_exact else "none"


def _command(model: str, asked: Keywords, choice: Choice) -> str:
    """Return the command line that compiles the network like this again."""
    return shlex.join(["mizzen", "compile", model, *_asked(asked, choice), *choice.words])


def _asked(asked: Keywords, choice: Choice) -> Iterator[str]:
    """Return the words of what the user asked for, but what a choice says anew."""
    words: Sequence[tuple[str, str | None]] = (
        ("--board", asked["board"]),
        ("--accelerator-config", asked["accelerator"]),
        *(("--config", name) for name in asked["config"] or ()),
        ("--system-config", asked["system_config"]),
        ("--memory-mode", asked["memory_mode"]),
        ("--ignore-ops", ",".join(asked["ignore_ops"]) or None),
    )
    for name, value in words:
        if value is not None:
            yield from (name, value)
    if choice.optimise is None and asked["optimise"] != "Performance":
        yield from ("--optimise", asked["optimise"])
    if choice.arena_cache_bytes is None and asked["arena_cache_size"] is not None:
        yield from ("--arena-cache-size", str(asked["arena_cache_size"]))
    for name, value in asked["target_options"].items():
        if name not in choice.target_options:
            yield from ("--target-option", f"{name}={value}")
    if asked["allow_inexact"]:
        yield "--allow-inexact"


def _failures(report: TuningReport) -> Iterator[Diagnostic]:
    """Tell that nothing fits."""
    if report.chosen is None:
        least = min(candidate.sram_total_bytes for candidate in (report.base, *report.front))
        yield Diagnostic(
            "E266",
            f"some way to compile the network must fit {report.sram_budget_bytes} bytes of SRAM, "
            f"and the least that was found is {least}",
            rule="--sram-budget",
            help="search with --objective sram for the least there is; below that only a smaller "
            "input or network helps",
        )
