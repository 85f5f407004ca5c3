"""A log that a person pasted, as what was recognised in it.

A log is not trusted: a line is read up to a length, and what it says is a hint, never a fact about
the artifact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mizzen.analysis.doctor.causes import Cause
from mizzen.analysis.doctor.messages import (
    CODES,
    FACTS,
    MESSAGES,
    QREAD,
    STATUS_LINE,
    STATUS_WORD,
    Message,
    Source,
    readable,
)
from mizzen.analysis.log_text import lines_of

KEPT_SIGHTINGS = 3
"""Of one text: firmware that tries again writes it each time."""
BEFORE_INVOKE = (
    Cause.ARENA_TOO_SMALL,
    Cause.OPERATOR_MISSING,
    Cause.RESOLVER_FULL,
    Cause.FILE_FORMAT,
    Cause.EARLIER,
)
"""What TensorFlow Lite Micro finds before it invokes the first operator."""
_CODE = "code"


@dataclass(frozen=True, slots=True)
class Sighting:
    """A text of the table in a line of the log.

    line     from 1
    meaning  what it says
    groups   what stands in the text, by the names of the pattern
    """

    line: int
    text: str
    message: Message
    meaning: str
    cause: Cause | None
    groups: Mapping[str, str]

    @property
    def source(self) -> Source:
        """Whose text it is."""
        return self.message.source

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        return {
            "line": self.line,
            "text": self.text,
            "source": self.source.value,
            "meaning": self.meaning,
            "cause": None if self.cause is None else self.cause.value,
        }


@dataclass(frozen=True, slots=True)
class LogReading:
    """What was recognised in a log.

    sightings  in the order of the log
    status     STATUS and QREAD, where a line has them; the last one counts
    facts      what the firmware said of itself, by name
    """

    sightings: tuple[Sighting, ...] = ()
    status: int | None = None
    qread_bytes: int | None = None
    facts: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def failed(self) -> bool:
        """Whether it says that something failed."""
        return self.status is not None or any(each.message.failure for each in self.sightings)

    @property
    def invoked(self) -> str | None:
        """The operator that failed to invoke: what comes before an invocation did not fail then.

        None for a log that has a failure of that too: it may be of several starts.
        """
        if any(each.cause in BEFORE_INVOKE for each in self.sightings):
            return None
        nodes = (each for each in self.sightings if each.groups.get("what") == "invoke")
        return next((each.groups["operator"] for each in nodes), None)

    @property
    def node(self) -> int | None:
        """The operator of the network that failed, by its number there."""
        numbers = (each.groups.get("node") for each in self.sightings)
        return next((int(number) for number in numbers if number), None)


def read_log(text: str) -> LogReading:
    """Read a log: each line is compared with the table of texts."""
    sightings: list[Sighting] = []
    facts: dict[str, str] = {}
    seen: Counter[Message] = Counter()
    status = qread = None
    for number, line in lines_of(text):
        facts.update(_facts(line))
        if STATUS_LINE.search(line) and (word := STATUS_WORD.search(line)):
            status = int(word["word"], 16)
            where = QREAD.search(line)
            qread = None if where is None else int(where["bytes"], 0)
        for sighting in _sightings(number, line):
            seen[sighting.message] += 1
            if seen[sighting.message] <= KEPT_SIGHTINGS:
                sightings.append(sighting)
    return LogReading(tuple(sightings), status, qread, facts)


def _sightings(number: int, line: str) -> Iterator[Sighting]:
    for message in MESSAGES:
        match = message.pattern.search(line)
        if match is not None:
            groups = {name: text for name, text in match.groupdict().items() if text}
            code = groups.get(_CODE, "")
            cause = message.cause
            if cause is None and code.startswith("0x"):
                cause = CODES.get(int(code, 16))
            yield Sighting(number, line.strip(), message, message.said(match), cause, groups)
            return


def _facts(line: str) -> dict[str, str]:
    facts: dict[str, str] = {}
    for fact in FACTS:
        match = fact.pattern.search(line)
        if match is not None:
            facts.update(
                {
                    name: readable(name, text)
                    for name, text in zip(fact.names, match.groups(), strict=True)
                }
            )
    return facts
