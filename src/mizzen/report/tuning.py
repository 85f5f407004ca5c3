"""What a search over ways to compile a network found: the candidates that none beats in all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import Any

from mizzen.report.proof import NOT_PROVED, Proof


class Objective(Enum):
    """What a search wants the least of; the value is the command line's word."""

    CYCLES = "cycles"
    SRAM = "sram"
    FLASH = "flash"


@dataclass(frozen=True, slots=True)
class Choice:
    """A way to compile a network; what is empty or None is as the user asked for it.

    optimise           what the compiler tries for
    arena_cache_bytes  SRAM that it may plan with
    disabled           features that it must leave
    rewrites           exact rewrites of the network before it is compiled, in order
    """

    optimise: str | None = None
    arena_cache_bytes: int | None = None
    disabled: tuple[str, ...] = ()
    rewrites: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The options of `mizzen compile` that repeat it, besides those that the user gave."""
        words: list[str] = []
        if self.optimise is not None:
            words += ["--optimise", self.optimise]
        if self.arena_cache_bytes is not None:
            words += ["--arena-cache-size", str(self.arena_cache_bytes)]
        for name, value in self.target_options.items():
            words += ["--target-option", f"{name}={value}"]
        return tuple(words)

    @property
    def target_options(self) -> dict[str, str]:
        """Its options that only one family has."""
        chosen = {"disable": self.disabled, "rewrite": self.rewrites}
        return {name: "+".join(values) for name, values in chosen.items() if values}

    def __str__(self) -> str:
        return " ".join(self.words) or "as asked for"


@dataclass(frozen=True, slots=True)
class Candidate:
    """What compiling a network in one way gives.

    cycles            of an inference, by Mizzen's model of the command stream and of CPU operators
    sram_bytes        written and read in SRAM: feature maps, buffers
    other_bytes       written and read in other memory
    constants_bytes   read only: weights, scales, tables, command streams
    sram_total_bytes  everything that must be in SRAM: what the runtime keeps as well, and constants
                      where the memory mode has them there
    file_bytes        of the artifact
    on_cpu            operators on the CPU
    proof             of what was compiled; not tried where it is not on the front
    inferences_per_second  one after the other; 0 where no clock is known
    """

    choice: Choice
    cycles: int
    sram_bytes: int
    other_bytes: int
    constants_bytes: int
    sram_total_bytes: int
    file_bytes: int
    on_cpu: int
    proof: Proof = NOT_PROVED
    inferences_per_second: float = 0.0

    @property
    def measures(self) -> tuple[int, ...]:
        """What one wants little of: cycles, and each kind of memory."""
        return self.cycles, self.sram_bytes, self.other_bytes, self.constants_bytes

    @property
    def memories(self) -> tuple[int, ...]:
        """Bytes of each kind of memory."""
        return self.measures[1:]

    @property
    def is_exact(self) -> bool:
        """Whether it was executed, and gave what the network gives."""
        return bool(self.proof.inputs) and not self.proof.differing

    def of(self, objective: Objective) -> int:
        """Return the number that an objective wants to be small."""
        match objective:
            case Objective.CYCLES:
                return self.cycles
            case Objective.SRAM:
                return self.sram_bytes
            case Objective.FLASH:
                return self.constants_bytes

    def needs_no_more_than(self, other: Candidate) -> bool:
        """Whether no measure is above the other's."""
        pairs = zip(self.measures, other.measures, strict=True)
        return all(ours <= theirs for ours, theirs in pairs)

    def proved(self, proof: Proof) -> Candidate:
        """Return it with the proof of what was compiled."""
        return replace(self, proof=proof)


@dataclass(frozen=True, slots=True)
class Refused:
    """A candidate that is none: it does not compile, or does not give what the network gives."""

    choice: Choice
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class TuningReport:
    """What a search found.

    configuration  in force, JSON-ready
    base           the network compiled as the user asked for it
    front          candidates that no other beats in cycles and all memories, fewest cycles first
    chosen         the one for the objective; None where none fits the budget
    tried          compilations, `distinct` those with an artifact of their own
    refused        what did not compile, or was not exact
    """

    model: str
    configuration: dict[str, Any]
    objective: Objective
    sram_budget_bytes: int | None
    base: Candidate
    front: tuple[Candidate, ...]
    chosen: Candidate | None
    tried: int
    distinct: int
    refused: tuple[Refused, ...] = ()
    seconds: float = field(default=0.0, compare=False)

    def __str__(self) -> str:
        """Return what the command line prints of it."""
        from mizzen.notebook import text_of

        return text_of(self)

    def _repr_html_(self) -> str | None:
        """Return the HTML that a notebook shows; None for its text."""
        from mizzen.notebook import html_of

        return html_of(self)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready data."""
        return {
            "model": self.model,
            "configuration": self.configuration,
            "objective": self.objective.value,
            "sram_budget_bytes": self.sram_budget_bytes,
            "base": candidate_data(self.base),
            "front": [candidate_data(candidate) for candidate in self.front],
            "chosen": None if self.chosen is None else candidate_data(self.chosen),
            "tried": self.tried,
            "distinct": self.distinct,
            "refused": [
                {
                    "options": list(refusal.choice.words),
                    "code": refusal.code,
                    "message": refusal.message,
                }
                for refusal in self.refused
            ],
            "seconds": round(self.seconds, 3),
        }


def candidate_data(candidate: Candidate) -> dict[str, Any]:
    """Return a candidate as JSON-ready data, with the options that repeat it."""
    return {
        **asdict(candidate),
        "options": list(candidate.choice.words),
        "exact": candidate.is_exact,
    }


def front_of(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return those that no other beats in all measures, fewest cycles first; of equals the first.

    The order of equals is that of `candidates`.
    """
    front: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda each: each.measures):
        if not any(other.needs_no_more_than(candidate) for other in front):
            front.append(candidate)
    return front
