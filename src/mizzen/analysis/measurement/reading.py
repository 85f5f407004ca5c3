"""Read a log: what was measured, one entry for each inference or part of one.

A log is not trusted: numbers are of up to 20 digits, measurements are counted, and a text that no
row knows says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from mizzen.analysis.log_text import lines_of
from mizzen.analysis.measurement.formats import (
    ACTIVE_EVENT,
    IDLE_EVENT,
    NPU_OPERATORS,
    ROWS,
    SHORT_EVENTS,
    TOTAL_EVENT,
    Format,
    Row,
    What,
)

MOST_MEASUREMENTS = 10_000
"""Of a log; what comes after is not read."""
MOST_OPERATORS = 100_000
"""Of a profile."""
_UNDER_A_HEAD = frozenset({Format.TFLM_CSV, Format.TFLM_TAGS})
"""Lines so plain that they are read in a table alone."""
_HEAD = re.compile(
    r"inference (?P<inference>\d{1,9}),(?: part (?P<part>\d{1,5}) of (?P<parts>\d{1,5}),)?"
    r" cycles (?P<cycles>\d{1,20})(?!\d)(?P<events>(?:, [A-Z][A-Z0-9_]* \d{1,20}(?!\d))*)"
)
_EVENT = re.compile(r", (?P<name>[A-Z][A-Z0-9_]*) (?P<n>\d{1,20})")


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """What an operator took.

    ticks    of the timer that the profile has: the processor's cycles, mostly
    on_npu   whether it is the NPU's operator
    is_npus  whether the ticks are cycles of the NPU's own counter
    """

    name: str
    ticks: float
    on_npu: bool
    is_npus: bool = False


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a log says of an inference, or of a part.

    line        where it begins, from 1; of an ETDump, the number of the run
    part        which of how many parts, from 1; None of a whole inference
    cycles      of the NPU, of one inference; None where no text has them
    cpu_cycles  of the processor, of one whole inference
    events      counts by the driver's names, of one inference
    operators   of a profile, in its order
    inferences  that the figures are the mean of
    """

    format: Format
    line: int
    part: tuple[int, int] | None = None
    cycles: float | None = None
    cpu_cycles: float | None = None
    events: Mapping[str, float] = field(default_factory=dict[str, float])
    operators: tuple[OperatorTime, ...] = ()
    inferences: int = 1

    @property
    def where(self) -> str:
        """Where it is in its file, as people say it."""
        return f"{'run' if self.format is Format.ETDUMP else 'line'} {self.line}"

    @property
    def npu_cycles(self) -> float | None:
        """Cycles that the NPU is at work: without those that it is idle, where they are known."""
        active = self.events.get(ACTIVE_EVENT)
        if active is not None:
            return active
        if self.cycles is None:
            return None
        idle = self.events.get(IDLE_EVENT, 0.0)
        return self.cycles - idle if idle < self.cycles else self.cycles


@dataclass(slots=True)
class _Draft:
    """A measurement whose texts are still being read."""

    format: Format
    line: int
    part: tuple[int, int] | None = None
    inferences: int = 1
    cycles: float | None = None
    whole: float | None = None
    events: dict[str, float] = field(default_factory=dict[str, float])
    counters: dict[int, float] = field(default_factory=dict[int, float])
    names: tuple[str, ...] = ()
    operators: list[OperatorTime] = field(default_factory=list[OperatorTime])

    @property
    def says(self) -> bool:
        """Whether it has any figure."""
        return bool(
            self.cycles is not None
            or self.whole is not None
            or self.events
            or self.counters
            or self.operators
        )

    def made(self) -> Measurement:
        """Return the measurement."""
        events = dict(self.events)
        for index, count in self.counters.items():
            if index < len(self.names):
                events[self.names[index]] = count
        cycles = events.pop(TOTAL_EVENT, self.cycles)
        return Measurement(
            self.format, self.line, self.part, cycles, self.whole, events, tuple(self.operators),
            self.inferences,
        )  # fmt: skip


def read_measurements(text: str) -> tuple[Measurement, ...]:
    """Return what a log says was measured, in its order; nothing of one that says nothing."""
    reader = _Reader()
    for number, line in lines_of(text):
        for row in ROWS:
            match = row.pattern.search(line)
            if match is not None:
                reader.take(number, row, match)
                break
        if len(reader.made) >= MOST_MEASUREMENTS:
            break
    reader.end()
    return tuple(reader.made[:MOST_MEASUREMENTS])


class _Reader:
    """Puts texts together to measurements: one ends where a text of it comes again."""

    def __init__(self) -> None:
        self.made: list[Measurement] = []
        self._draft: _Draft | None = None
        self._delegates: dict[int, _Draft] = {}

    def take(self, number: int, row: Row, match: re.Match[str]) -> None:
        """Take a text."""
        if row.what is What.LINE:
            self._add_line(number, match["name"])
        elif row.format is Format.DELEGATES:
            self._delegate(number, row, match)
        elif row.what is What.NAMES:
            self._name(match["name"])
        elif row.what is What.OPERATOR and row.format in _UNDER_A_HEAD and not self._under(row):
            return
        else:
            self._figure(self._draft_for(number, row, match), row, match)

    def _under(self, row: Row) -> bool:
        """Whether the head of a row's table has come."""
        return self._draft is not None and self._draft.format is row.format

    def end(self) -> None:
        """End the last measurement."""
        self._end_draft()
        self._end_delegates()

    def _draft_for(self, number: int, row: Row, match: re.Match[str]) -> _Draft:
        draft = self._draft
        if draft is None or (draft.says and _again(draft, row, match)):
            self._end_draft()
            draft = self._draft = _Draft(row.format, number)
        return draft

    def _figure(self, draft: _Draft, row: Row, match: re.Match[str]) -> None:
        match row.what:
            case What.INFERENCES:
                draft.format = row.format
                draft.inferences = max(1, int(match["n"]))
            case What.CYCLES:
                draft.cycles = _number(match, draft.inferences)
            case What.WHOLE:
                draft.whole = _number(match, draft.inferences)
            case What.COUNT:
                draft.format = row.format
                draft.events[_event(match["name"])] = _number(match, draft.inferences)
            case What.COUNTER:
                index, count = int(match["index"]), _number(match, draft.inferences)
                draft.counters[index] = draft.counters.get(index, 0.0) + count
            case What.COUNTERS:
                counts = match["name"].split()[:16]
                draft.counters = {i: float(count[:20]) for i, count in enumerate(counts)}
            case What.OPERATOR | What.NPU_TIME if len(draft.operators) < MOST_OPERATORS:
                draft.operators.append(_operator(draft, row, match))
            case _:
                pass

    def _add_line(self, number: int, text: str) -> None:
        head = _HEAD.match(text)
        if head is None:
            return
        self._end_draft()
        part = None if head["part"] is None else (int(head["part"]), int(head["parts"]))
        events = {each["name"]: float(each["n"]) for each in _EVENT.finditer(head["events"])}
        self.made.append(
            Measurement(Format.MIZZEN, number, part, float(head["cycles"]), None, events)
        )

    def _delegate(self, number: int, row: Row, match: re.Match[str]) -> None:
        index = int(match["index"])
        known = self._delegates.get(index)
        if known is None or (row.what is What.RUNS and known.says):
            if known is not None:
                self._end_delegates()
            known = self._delegates.setdefault(index, _Draft(row.format, number))
        match row.what:
            case What.RUNS:
                known.inferences = max(1, int(match["n"]))
            case What.DELEGATE:
                known.cycles = _number(match, known.inferences)
            case _:
                known.counters[int(match["counter"])] = _number(match, known.inferences)

    def _name(self, names: str) -> None:
        found = tuple(_event(name.strip()) for name in names.split(","))
        for draft in (self._draft, *self._delegates.values()):
            if draft is not None:
                draft.names = found
        self._end_delegates()

    def _end_draft(self) -> None:
        if self._draft is not None and self._draft.says:
            self.made.append(self._draft.made())
        self._draft = None

    def _end_delegates(self) -> None:
        drafts = sorted(self._delegates.items())
        if [index for index, _ in drafts] == list(range(len(drafts))):
            for index, draft in drafts:
                draft.part = index + 1, len(drafts)
                self.made.append(draft.made())
        self._delegates = {}


def _again(draft: _Draft, row: Row, match: re.Match[str]) -> bool:
    """Whether a text is of another measurement than the draft: it has such a text already."""
    match row.what:
        case What.BEGIN | What.INFERENCES:
            return True
        case What.CYCLES:
            return draft.cycles is not None
        case What.WHOLE:
            return draft.whole is not None
        case What.COUNT:
            return _event(match["name"]) in draft.events
        case What.COUNTER:
            # Core platform: counters stand before the operator that they are of, once for each.
            return int(match["index"]) in draft.counters and not draft.operators
        case What.COUNTERS:
            return bool(draft.counters)
        case What.OPERATOR if "index" in match.groupdict():
            return int(match["index"]) == 0 and bool(draft.operators)
        case _:
            return False


def _number(match: re.Match[str], inferences: int) -> float:
    """Return the number of a text for one inference."""
    per = match.groupdict().get("per")
    return float(per) if per else float(match["n"]) / inferences


def _operator(draft: _Draft, row: Row, match: re.Match[str]) -> OperatorTime:
    said = match.groupdict()
    name = said.get("name") or said.get("old") or ""
    ticks = said.get("n") or said.get("oldn") or "0"
    whole = draft.inferences
    number = float(said["per"]) if said.get("per") else float(ticks.replace(",", "")) / whole
    is_npus = row.what is What.NPU_TIME and draft.format is not Format.EXECUTORCH
    return OperatorTime(name, number, name in NPU_OPERATORS, is_npus)


def _event(name: str) -> str:
    """Return an event by the driver's name, whatever it is called."""
    name = name.removeprefix("ETHOSU_PMU_")
    return SHORT_EVENTS.get(name, name)
