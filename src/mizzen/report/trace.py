"""Events of a trace that Perfetto and Chrome show.

Times are in microseconds. Ref: Trace Event Format: complete, counter and metadata events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Event = dict[str, object]

_NO_FACTS: Mapping[str, object] = {}


def process(number: int, name: str) -> Event:
    """Name a process."""
    return _named("process_name", number, 0, name)


def thread(process: int, number: int, name: str) -> Event:
    """Name a thread of a process."""
    return _named("thread_name", process, number, name)


def span(
    name: str,
    kind: str,
    place: tuple[int, int],
    start_us: float,
    duration_us: float,
    facts: Mapping[str, object] = _NO_FACTS,
) -> Event:
    """Return something that takes time; `place` is its process and thread."""
    return {
        "name": name,
        "cat": kind,
        "ph": "X",
        "ts": start_us,
        "dur": duration_us,
        "pid": place[0],
        "tid": place[1],
        "args": dict(facts),
    }


def counter(name: str, process: int, at_us: float, values: Mapping[str, int]) -> Event:
    """Return the event that tells quantities from a time on."""
    return {"name": name, "ph": "C", "ts": at_us, "pid": process, "args": dict(values)}


def trace_document(events: Iterable[Event]) -> dict[str, object]:
    """Return the document of a file."""
    return {"traceEvents": list(events), "displayTimeUnit": "ns"}


def _named(kind: str, process: int, thread: int, name: str) -> Event:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
