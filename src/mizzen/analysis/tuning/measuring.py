"""Compile candidates, several at once, and measure what comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from hashlib import sha256

from mizzen.analysis.checking.budget import sram_of
from mizzen.analysis.memory import memory_report
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.sealing import unsealed
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.compile import compile_file
from mizzen.compiler.options import CompileOptions
from mizzen.compiler.source import Source
from mizzen.diagnostics import MizzenError
from mizzen.report import CompileReport
from mizzen.report.proof import NOT_PROVED, Proof
from mizzen.report.tuning import Candidate, Choice, Refused

Told = Callable[[int, int], None]
"""Called with the compilations that are done, and how many there may be at most."""

CONSTANTS = "constants"

KNOWN_WRONG = "W306"
"""The warning of an operator that is on the NPU though it is known to be wrong there."""


@dataclass
class Bench:
    """A network, and everything that is known of ways to compile it.

    options      what the user asked for, which a choice changes
    ends         when all of it must be done, by the monotonic clock
    planned      compilations that there may be at most, `done` those that are
    candidates   by choice, in the order in which they were asked for
    """

    source: Source
    options: CompileOptions
    jobs: int
    ends: float | None = None
    planned: int = 0
    on_progress: Told | None = None
    candidates: dict[Choice, Candidate] = field(default_factory=dict[Choice, Candidate])
    refused: dict[Choice, Refused] = field(default_factory=dict[Choice, Refused])
    done: int = 0
    _longest_try: float = 0.0
    _longest_proof: float = 0.0
    _measured: dict[bytes, Candidate] = field(default_factory=dict[bytes, Candidate])

    @property
    def distinct(self) -> int:
        """Artifacts that differ."""
        return len(self._measured)

    @property
    def late(self) -> bool:
        """Whether no other candidate may be begun: it might be chosen, and must be proved then."""
        return self._ends_within(self._longest_try + self._longest_proof)

    @property
    def too_late_to_prove(self) -> bool:
        """Whether a proof would not be done in time."""
        return self._ends_within(self._longest_proof)

    def _ends_within(self, seconds: float) -> bool:
        return self.ends is not None and time.monotonic() + seconds >= self.ends

    def start(self) -> Artifact:
        """Compile the network as it was asked for, and prove it. Raises as `mizzen.compile`."""
        ((candidate, artifact),) = self.prove([Choice()])
        self._tell(candidate)
        return artifact

    def ask(self, choices: Sequence[Choice]) -> list[Candidate]:
        """Compile those that are not known yet, and return those that compiled, in their order."""
        new = [each for each in dict.fromkeys(choices) if not self._knows(each)]
        self.planned = max(self.planned, self.done + len(new))
        with ThreadPoolExecutor(self.jobs) as pool:
            for choice, outcome in zip(new, pool.map(self._try, new), strict=True):
                self._tell(outcome)
                match outcome:
                    case Candidate():
                        self.candidates[choice] = outcome
                    case Refused():
                        self.refused[choice] = outcome
                    case None:
                        pass
        return [self.candidates[each] for each in choices if each in self.candidates]

    def prove(self, choices: Sequence[Choice]) -> list[tuple[Candidate, Artifact]]:
        """Compile in these ways with the proof that the user asked for, and keep what stands.

        What differs goes to the CPU in a compilation, or stays where the user allows it.
        """
        with ThreadPoolExecutor(self.jobs) as pool:
            outcomes = list(pool.map(self._proved, choices))
        proved: list[tuple[Candidate, Artifact]] = []
        for outcome in outcomes:
            if isinstance(outcome, Refused):
                self.candidates.pop(outcome.choice, None)
                self.refused[outcome.choice] = outcome
            else:
                self.candidates[outcome[0].choice] = outcome[0]
                proved.append(outcome)
        return proved

    def compiled(self, choice: Choice, prove: str) -> Artifact:
        """Compile the network in one way. Raises as `mizzen.compile`."""
        return compile_file(self.source, resolve_target(self._chosen(choice, prove)))

    def _chosen(self, choice: Choice, prove: str) -> CompileOptions:
        options = replace(self.options, prove=prove)
        options = replace(
            options,
            target_options={**(options.target_options or {}), **choice.target_options},
        )
        if choice.optimise is not None:
            options = replace(options, optimise=choice.optimise)
        if choice.arena_cache_bytes is not None:
            options = replace(options, arena_cache_size=choice.arena_cache_bytes)
        return options

    def _knows(self, choice: Choice) -> bool:
        return choice in self.candidates or choice in self.refused

    def _try(self, choice: Choice) -> Candidate | Refused | None:
        """Compile and measure; None if it is too late to begin."""
        if self.late:
            return None
        begun = time.monotonic()
        try:
            artifact = self.compiled(choice, "off")
        except MizzenError as error:
            return Refused(choice, error.diagnostic.code, error.diagnostic.message)
        candidate = self._measure(choice, artifact)
        self._longest_try = max(self._longest_try, time.monotonic() - begun)
        return candidate

    def _tell(self, outcome: Candidate | Refused | None) -> None:
        self.done += outcome is not None
        if self.on_progress is not None:
            self.on_progress(self.done, self.planned)

    def _measure(self, choice: Choice, artifact: Artifact) -> Candidate:
        """Measure an artifact, once for all that are equal but for what they say of themselves."""
        key = sha256(unsealed(artifact.data, artifact.name)).digest()
        known = self._measured.get(key)
        if known is None:
            known = self._measured.setdefault(key, measured(choice, artifact))
        return replace(known, choice=choice, proof=NOT_PROVED)

    def _proved(self, choice: Choice) -> tuple[Candidate, Artifact] | Refused:
        begun = time.monotonic()
        try:
            artifact = self.compiled(choice, self.options.prove)
        except MizzenError as error:
            if choice == Choice():  # as the user asked for it: a search has nothing to start from
                raise
            return Refused(choice, error.diagnostic.code, error.diagnostic.message)
        report = artifact.report
        assert report is not None, "a compilation always reports"
        candidate = self._measure(choice, artifact).proved(proof_of(report))
        self._longest_proof = max(self._longest_proof, time.monotonic() - begun)
        return candidate, artifact


def proof_of(report: CompileReport) -> Proof:
    """Return the proof of a report; operators that are known to be wrong differ, seen or not."""
    known = [
        diagnostic.origin for diagnostic in report.diagnostics if diagnostic.code == KNOWN_WRONG
    ]
    names = (f"{origin.kind} {origin.operator}" for origin in known if origin is not None)
    return replace(report.proof, differing=tuple(dict.fromkeys((*report.proof.differing, *names))))


def measured(choice: Choice, artifact: Artifact) -> Candidate:
    """Return the cycles and bytes that an artifact needs."""
    report = artifact.report
    assert report is not None, "a compilation always reports"
    written = [area for area in report.areas if area.name != CONSTANTS]
    return Candidate(
        choice=choice,
        cycles=report.cycles,
        sram_bytes=sum(area.used_bytes for area in written if area.is_sram),
        other_bytes=sum(area.used_bytes for area in written if not area.is_sram),
        constants_bytes=sum(area.used_bytes for area in report.areas if area.name == CONSTANTS),
        sram_total_bytes=sram_of(report, memory_report(artifact)),
        file_bytes=report.flash_bytes,
        on_cpu=len(report.on_cpu),
        inferences_per_second=report.time.inferences_per_second if report.time else 0.0,
    )
