"""What the compiler gives: the compiled network, and what it says about each operator."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from mizzen.diagnostics import Diagnostic

ON_CPU = "Passthrough"
"""What Vela's performance table calls an operator that it leaves to the CPU."""


@dataclass(frozen=True, slots=True)
class OperatorRefusal:
    """Why Vela leaves an operator to the CPU, in its own words.

    `kind` is the operator's type, `output` the name of its first output, `reason` what was found,
    `constraint` the rule that it breaks (empty where Vela gives none).
    """

    kind: str
    output: str
    reason: str
    constraint: str


@dataclass(frozen=True, slots=True)
class Work:
    """What the compiled network does for one operator of the model, in estimated cycles.

    `operator` is the index in the model's file; None for what Vela put in itself.
    """

    operator: int | None
    on_cpu: bool
    cycles: int
    macs: int


@dataclass(frozen=True, slots=True)
class StreamCommand:
    """An operation command: the NPU operator it is in (from 0), its byte offset in that stream."""

    stream: int
    offset_bytes: int
    operator: int | None


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """What Vela estimates for one kind of memory.

    accesses  bytes read and bytes written, by what they hold (``Weights``, ``FeatureMap``)
    """

    name: str
    peak_bytes: int
    access_cycles: int
    accesses: dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Vela's estimates for the whole network.

    cycles      NPU and memory accesses together
    npu_cycles  the NPU alone
    figures     every number of Vela's performance report, by Vela's name
    """

    cycles: int
    npu_cycles: int
    memories: tuple[MemoryEstimate, ...]
    figures: dict[str, int]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled network: the bytes of a TFLite file, and what was said about it."""

    network: bytes
    version: str
    work: tuple[Work, ...]
    commands: tuple[StreamCommand, ...]
    estimate: Estimate
    refusals: tuple[OperatorRefusal, ...]
    log: str


class Cause(Enum):
    """Why the compiler gave no network; the value is the diagnostic's code."""

    REFUSED = "E301"
    CRASHED = "E302"
    TIME_LIMIT = "E303"
    MEMORY_LIMIT = "E304"
    CANNOT_FALL_BACK = "E305"


@dataclass(frozen=True, slots=True)
class Stopped:
    """The compiler gave no network: why, in words and its own, and what it printed until then."""

    cause: Cause
    message: str
    said: str
    refusals: tuple[OperatorRefusal, ...]
    log: str

    @property
    def diagnostic(self) -> Diagnostic:
        """The error that this is, if nothing else can be done."""
        return Diagnostic(self.cause.value, self.message, help=HELP[self.cause])


HELP: dict[Cause, str | None] = {
    Cause.REFUSED: "the network is not one that Vela can read; check how it was converted",
    Cause.CRASHED: "keep operators on the CPU one type at a time with `--ignore-ops` to find "
    "which one it is",
    Cause.TIME_LIMIT: "keep operators on the CPU one type at a time with `--ignore-ops`",
    Cause.MEMORY_LIMIT: "keep the largest operators on the CPU with `--ignore-ops`",
    Cause.CANNOT_FALL_BACK: "keep the operator on the CPU with `--ignore-ops`",
}

_WARNING = re.compile(
    r"^Warning \(supported operators\) operator: (\w+), ofm: '(.*?)'\nReason: (.*?)"
    r"(?=^Warning \(supported operators\)|^\w+: |^Tensor '|^$|\Z)",
    re.DOTALL | re.MULTILINE,
)


def refusals(log: str) -> tuple[OperatorRefusal, ...]:
    """Find in what Vela printed the reasons for leaving operators to the CPU."""
    found: list[OperatorRefusal] = []
    for kind, output, text in _WARNING.findall(log):
        reason, _, constraint = text.strip().partition("\n")
        found.append(OperatorRefusal(kind, output, reason.strip(), constraint.strip()))
    return tuple(found)


def from_answer(answer: dict[str, Any], network: bytes, log: str) -> Compiled:
    """Take the worker's answer apart; `answer` has the tables of Vela's debug database."""
    tables: dict[str, list[list[str]]] = answer["tables"]
    figures: dict[str, int] = answer["figures"]
    operators = {source: int(key) for source, key, _ in tables["source"]}
    return Compiled(
        network=network,
        version=answer["version"],
        work=_work(tables["perf"], operators),
        commands=_commands(tables, operators),
        estimate=Estimate(
            cycles=figures["totalCycles"],
            npu_cycles=figures["npuCycles"],
            memories=tuple(_memory(name, use) for name, use in sorted(answer["memories"].items())),
            figures=figures,
        ),
        refusals=refusals(log),
        log=log,
    )


def _memory(name: str, use: dict[str, Any]) -> MemoryEstimate:
    accesses = {what: (read, written) for what, (read, written) in use["accesses"].items()}
    return MemoryEstimate(name, use["peak"], use["cycles"], accesses)


def _work(rows: Sequence[Sequence[str]], operators: dict[str, int]) -> tuple[Work, ...]:
    return tuple(
        Work(operators.get(source), kind == ON_CPU, int(cycles), int(macs))
        for source, kind, _, cycles, macs in rows
    )


def _commands(
    tables: dict[str, list[list[str]]], operators: dict[str, int]
) -> tuple[StreamCommand, ...]:
    sources = dict(tables["optimised"])
    streams = sorted({int(stream) for stream, _, _ in tables["queue"]})
    return tuple(
        StreamCommand(
            streams.index(int(stream)), int(offset), operators.get(sources.get(optimised, ""))
        )
        for stream, offset, optimised in tables["queue"]
    )
