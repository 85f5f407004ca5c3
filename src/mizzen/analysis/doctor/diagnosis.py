"""What stops an artifact on a board: checks and a log, put together and ranked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from mizzen.analysis.doctor.causes import TEXTS, Cause
from mizzen.analysis.doctor.checks import (
    ETHOS_U,
    NOTHING_FOR_NPU,
    TFLITE,
    Check,
    Situation,
    checks,
    mode_on,
    operators_of,
)
from mizzen.analysis.doctor.firmware import Firmware, stream_of
from mizzen.analysis.doctor.log import LogReading, Sighting, read_log
from mizzen.analysis.doctor.status import CONSTANTS, StatusReading, read_status
from mizzen.analysis.doctor.stream import StreamPlace, npu_steps, places
from mizzen.boards import MemoryKind, Role
from mizzen.diagnostics import Diagnostic, fail
from mizzen.targets.ethos_u.machine.config import ACCELERATORS

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact
    from mizzen.boards import Board
    from mizzen.targets.ethos_u.machine.commands import Arch


UNKNOWN_LOG = fail(
    "E475",
    "a log must have a text that is known here, and this one has none",
    help="give the firmware's whole log as text; the driver writes more with "
    "-DETHOSU_LOG_SEVERITY=info",
).diagnostic


class Certainty(Enum):
    """How a cause is known; the first ones are told first."""

    CONFIRMED = "the log says so, and the artifact agrees"
    NAMED = "the log says so"
    SHOWN = "the STATUS register says so"
    CHECKED = "the artifact does not fit"
    CODED = "the error code says so"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A cause of the failure.

    evidence  what says so: lines of the log, checks, the register
    """

    cause: Cause
    certainty: Certainty
    evidence: tuple[str, ...]
    advice: str

    @property
    def title(self) -> str:
        """What is wrong."""
        return TEXTS[self.cause].title

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        return {
            "cause": self.cause.value,
            "title": self.title,
            "certainty": self.certainty.name.lower(),
            "evidence": list(self.evidence),
            "advice": self.advice,
        }

    def as_diagnostic(self) -> Diagnostic:
        """Return it as an error: E474."""
        said = "; ".join(self.evidence)
        return fail(
            "E474",
            f"the network must start on the board, and {self.title}: {said}",
            rule=self.certainty.value,
            help=self.advice,
        ).diagnostic


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was checked, what a log says, and what is wrong.

    status    the NPU's register, where a log or a person gives it
    places    where in the stream the NPU stopped, with the user's layer
    verdicts  causes, the most certain first
    remarks   what else there is to know
    unrecognised  whether a log came in which nothing is known
    """

    checks: tuple[Check, ...]
    log: LogReading
    status: StatusReading | None
    places: tuple[StreamPlace, ...]
    verdicts: tuple[Verdict, ...]
    remarks: tuple[str, ...]
    unrecognised: bool = False

    @property
    def failures(self) -> Sequence[Diagnostic]:
        """The verdicts as errors; E475 for a log without a cause, or without a known text."""
        if self.verdicts:
            return [verdict.as_diagnostic() for verdict in self.verdicts]
        if not self.log.failed and self.status is None:
            return [UNKNOWN_LOG] if self.unrecognised else []
        return [
            fail(
                "E475",
                "a log must say why it fails, and this one says only that it does",
                help="build the driver with -DETHOSU_LOG_SEVERITY=info and the runtime with its "
                "log, or give what was not checked",
            ).diagnostic
        ]

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        return {
            "checks": [check.as_dict() for check in self.checks],
            "log": [sighting.as_dict() for sighting in self.log.sightings],
            "status": None if self.status is None else self.status.as_dict(),
            "places": [place.as_dict() for place in self.places],
            "verdicts": [verdict.as_dict() for verdict in self.verdicts],
            "remarks": list(self.remarks),
        }


def doctor(
    artifact: Artifact | None = None,
    board: Board | None = None,
    firmware: Firmware | None = None,
    log: str = "",
    status: int | None = None,
    qread_bytes: int | None = None,
) -> Diagnosis:
    """Say why an artifact fails on a board, or that what could be checked holds.

    artifact     None where only a log is at hand
    log          what the firmware wrote
    status       the NPU's STATUS register, and QREAD with it; else those of the log

    E415 for a memory mode of the firmware that the board has not, E5xx and E61x for an artifact
    whose memory cannot be counted.
    """
    read = read_log(log)
    read = replace(
        read,
        status=read.status if status is None else status,
        qread_bytes=read.qread_bytes if qread_bytes is None else qread_bytes,
    )
    own = None if artifact is None else artifact.accelerator
    told = (firmware or Firmware()).with_log(read, own)
    situation = None if artifact is None else Situation(artifact, board, told)
    looked = () if situation is None else checks(situation)
    register = None if read.status is None else read_status(read.status, _arch(artifact, told))
    stopped: Sequence[StreamPlace] = ()
    if artifact is not None and read.qread_bytes is not None:
        stopped = places(artifact, read.qread_bytes, read.node)
    verdicts = tuple(_verdicts(situation, looked, read, register, stopped))
    remarks = tuple(_remarks(situation, read, stopped, verdicts))
    unrecognised = bool(log.strip()) and not (read.sightings or read.facts or read.failed)
    return Diagnosis(tuple(looked), read, register, tuple(stopped), verdicts, remarks, unrecognised)


def _arch(artifact: Artifact | None, firmware: Firmware) -> Arch | None:
    named = firmware.accelerator or (None if artifact is None else artifact.accelerator)
    return ACCELERATORS[named].arch if named in ACCELERATORS else None


def _verdicts(
    situation: Situation | None,
    looked: Sequence[Check],
    log: LogReading,
    register: StatusReading | None,
    stopped: Sequence[StreamPlace],
) -> Iterator[Verdict]:
    """Return each cause once, the most certain first."""
    failed = [check for check in looked if check.holds is False]
    by_code = [each for each in log.sightings if each.message.cause is None and each.cause]
    named = [each for each in log.sightings if each.message.cause is not None]
    specific = [each for each in named if each.cause is not Cause.EARLIER] or named
    causes: dict[Cause, Verdict] = {}
    if situation is not None:
        for verdict in _of_another_file(situation.artifact, log):
            _add(causes, verdict)
    for sighting in specific:
        _add(causes, _named(sighting, looked))
    for check in failed:
        _add(causes, _checked(check))
    if register is not None:
        for cause in register.causes:
            _add(causes, _shown(cause, register, stopped))
    if not causes:
        for sighting in by_code:
            _add(causes, _named(sighting, looked, Certainty.CODED))
    order = list(Certainty)
    yield from sorted(causes.values(), key=lambda verdict: order.index(verdict.certainty))


def _of_another_file(artifact: Artifact, log: LogReading) -> Iterator[Verdict]:
    """Return a verdict where an operator failed that the artifact does not have."""
    if artifact.data[4:8] != TFLITE:
        return
    has = operators_of(artifact)
    for sighting in log.sightings:
        operator = sighting.groups.get("operator")
        if "node" not in sighting.groups or operator is None or operator in has:
            continue
        lacks = NOTHING_FOR_NPU if operator == ETHOS_U else f"the artifact has no {operator}"
        line = f"line {sighting.line}: {sighting.meaning}"
        advice = TEXTS[Cause.OTHER_FILE].advice
        yield Verdict(Cause.OTHER_FILE, Certainty.NAMED, (line, lacks), advice)


def _add(causes: dict[Cause, Verdict], verdict: Verdict) -> None:
    known = causes.get(verdict.cause)
    if known is None:
        causes[verdict.cause] = verdict
        return
    more = tuple(text for text in verdict.evidence if text not in known.evidence)
    causes[verdict.cause] = replace(known, evidence=known.evidence + more)


_SAME = {
    Cause.POOL_TOO_SMALL: (Cause.ARENA_TOO_SMALL, Cause.MEMORY_TOO_SMALL),
    Cause.ARENA_TOO_SMALL: (Cause.MEMORY_TOO_SMALL,),
    Cause.RESOLVER_FULL: (Cause.OPERATOR_MISSING,),
    Cause.OTHER_SIZE: (Cause.OTHER_PRODUCT,),
}
"""Causes of checks that a cause of a log agrees with."""


def _named(
    sighting: Sighting, looked: Sequence[Check], certainty: Certainty = Certainty.NAMED
) -> Verdict:
    assert sighting.cause is not None
    agreeing = (sighting.cause, *_SAME.get(sighting.cause, ()))
    related = [check for check in looked if check.cause in agreeing and not check.holds]
    agreed = [check for check in related if check.holds is False]
    line = f"line {sighting.line}: {sighting.meaning}"
    advice = next((check.help for check in agreed or related if check.help), None)
    return Verdict(
        sighting.cause,
        Certainty.CONFIRMED if agreed else certainty,
        (line, *(check.said for check in agreed)),
        advice or TEXTS[sighting.cause].advice,
    )


def _checked(check: Check) -> Verdict:
    assert check.cause is not None
    advice = check.help or TEXTS[check.cause].advice
    return Verdict(check.cause, Certainty.CHECKED, (check.said,), advice)


def _shown(cause: Cause, register: StatusReading, stopped: Sequence[StreamPlace]) -> Verdict:
    evidence = [f"STATUS {register.word:#010x}: {register}"]
    evidence += [f"at {place}" for place in stopped]
    advice = TEXTS[cause].advice
    if cause is Cause.UNREACHED and register.channel is not None:
        whose = "the model" if register.channel in CONSTANTS else "the arena or the fast memory"
        advice = f"it is about {whose}: {advice}"
    return Verdict(cause, Certainty.SHOWN, tuple(evidence), advice)


def _may_be_unmapped(
    situation: Situation, board: Board, log: LogReading, verdicts: Sequence[Verdict]
) -> bool:
    """Whether the NPU may have failed because the flash with the model is not mapped."""
    causes = {verdict.cause for verdict in verdicts}
    unread = {Cause.UNREACHED, Cause.STREAM_UNREADABLE, Cause.PAYLOAD_FORM, Cause.FILE_FORMAT}
    apart = board.sdk is not None and board.sdk.model_address is not None
    in_flash = board.memory(Role.MODEL, board.mode(mode_on(situation, board))).kind
    failed = (log.failed and not causes) or causes & unread
    return bool(failed) and apart and in_flash is MemoryKind.FLASH


def _remarks(
    situation: Situation | None,
    log: LogReading,
    stopped: Sequence[StreamPlace],
    verdicts: Sequence[Verdict],
) -> Iterator[str]:
    if situation is None:
        return
    artifact, board = situation.artifact, situation.board
    if board is not None and _may_be_unmapped(situation, board, log, verdicts):
        yield (
            f"the model of {board.name} lies in flash: map it (XIP) before the inference; "
            f"how-to/boards/{board.name} says how"
        )
    own, told = artifact.accelerator, stream_of(log)
    if told is not None and own is not None and told != own:
        yield f"the log is of a stream for {told}, and this artifact is for {own}: another file?"
    needed = operators_of(artifact)
    for sighting in log.sightings:
        operator = sighting.groups.get("operator")
        if sighting.cause is Cause.OPERATOR_MISSING and operator not in (None, "CUSTOM", *needed):
            yield f"the log lacks {operator}, which this artifact does not have: another file?"
    if log.qread_bytes and not stopped and npu_steps(artifact):
        yield f"QREAD {log.qread_bytes} is beyond every stream of this artifact: another file?"
