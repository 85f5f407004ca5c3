"""The operations of an inference in order, and every access of each to memory.

An operation is one of the NPU's (a kernel or a transfer of its stream, a pass of an Ethos-N), or
one operator on the CPU: those that the cost report has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mizzen.analysis.memory.layout import READ_ONLY, Call, ConstantRead, Held, Layout
from mizzen.analysis.memory.lifetimes import Event
from mizzen.report.memory import Use
from mizzen.targets.ethos_u.judge.hazards.footprint import run
from mizzen.targets.ethos_u.judge.hazards.intervals import Intervals
from mizzen.targets.ethos_u.judge.hazards.maps import BRICK, Kind
from mizzen.targets.ethos_u.judge.hazards.operations import Access, Operation, Transfer
from mizzen.targets.ethos_u.judge.hazards.stream import Wait, steps
from mizzen.targets.ethos_u.machine.program import Program, TensorAddress, accelerator_of

WHAT = {"weights": "weights", "scales": "scales"}
"""Constants that an operation reads, by what the stream calls them; the rest are tables."""


@dataclass(slots=True, eq=False)
class Trace:
    """What an inference does to memory.

    names   of the operations, in order
    events  in order
    spans   first and last operation of each tensor, as calls say
    reads   of the NPU's constants
    """

    names: list[str] = field(default_factory=list[str])
    events: list[Event] = field(default_factory=list[Event])
    spans: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    reads: list[ConstantRead] = field(default_factory=list[ConstantRead])

    def write(self, operation: int, held: Held, use: Use | None = None) -> None:
        """Note that an operation leaves a tensor where it lies."""
        if held.address is not None and held.size_bytes:
            bytes_ = run(held.address, held.size_bytes).intervals
            self.events.append(Event(operation, held.area, bytes_, held.name, use or held.use))

    def read(self, operation: int, held: Held) -> None:
        """Note that an operation needs a tensor."""
        if held.address is not None and held.size_bytes:
            bytes_ = run(held.address, held.size_bytes).intervals
            self.events.append(Event(operation, held.area, bytes_))


def trace_of(layout: Layout) -> Trace:
    """Put an inference's accesses in order. E5xx and E6xx for streams that cannot be read."""
    trace = Trace()
    for index in (*layout.inputs, *layout.states):
        trace.write(0, layout.tensors[index])
    for place, call in enumerate(layout.calls):
        _call(trace, place, call, layout.tensors)
    last = max(len(trace.names) - 1, 0)
    for index in (*layout.outputs, *layout.states):
        if index in layout.tensors:  # else a constant is an output
            trace.read(last, layout.tensors[index])
            trace.spans[index] = trace.spans.get(index, (0, 0))[0], last
    for index in layout.states:
        trace.spans[index] = 0, last
    for index in layout.inputs:
        trace.spans[index] = 0, trace.spans.get(index, (0, 0))[1]
    return trace


def _call(trace: Trace, place: int, call: Call, tensors: Mapping[int, Held]) -> None:
    first = len(trace.names)
    for held in call.scratch:
        trace.write(first, held)
    program = None if call.npu is None else call.npu.program
    if isinstance(program, Program):
        _stream(trace, place, call, program, tensors)
    else:
        trace.names += call.names
        for index in call.reads:
            trace.read(first, tensors[index])
        for index in call.writes:
            trace.write(first, tensors[index])
        for index in call.reads if len(call.names) > 1 else ():
            trace.read(len(trace.names) - 1, tensors[index])
    last = len(trace.names) - 1
    for held in call.scratch:
        trace.read(last, held)
    for index in (*call.reads, *call.writes):
        low, _ = trace.spans.get(index, (first, last))
        trace.spans[index] = low, last


def _stream(
    trace: Trace, place: int, call: Call, program: Program, tensors: Mapping[int, Held]
) -> None:
    """Follow the stream of an Ethos-U, and give what it leaves in its outputs their names.

    Where its memory is its own, tensors are copied into it before and out of it after.
    """
    start, began, read = len(trace.names), len(trace.events), len(trace.reads)
    taken, given = _inside(call, program.inputs, call.reads, tensors), _inside(
        call, program.outputs, call.writes, tensors
    )  # fmt: skip
    for index in call.reads if call.copies else ():
        trace.read(start, tensors[index])
    for held in taken if call.copies else ():
        trace.write(start, held)
    labels: dict[int, str] = {}
    for step in steps(program, accelerator_of(program.hardware)):
        if not isinstance(step, Wait):
            labels[len(trace.names)] = step.origin.name or _unknown(len(trace.names))
            _operation(trace, place, step, call)
    if len(trace.names) == start:
        trace.names += call.names
    last = len(trace.names) - 1
    events = _named_by_readers(trace.events[began:], labels)
    _name_transfers(trace, read, events)
    trace.events[began:] = _renamed(events, given)
    for held in given if call.copies else ():
        trace.read(last, held)
    for index in call.writes if call.copies else ():
        trace.write(last, tensors[index])


def _inside(
    call: Call, places: Sequence[TensorAddress], indices: Sequence[int], tensors: Mapping[int, Held]
) -> list[Held]:
    """Return tensors of a program where they lie in its regions, with the names of the network."""
    known = [tensors[index] for index in indices if index in tensors]
    if len(known) != len(places):
        known = [Held(each.name, Use.FEATURE_MAP, None, each.size_bytes) for each in places]
    inside: list[Held] = []
    for place, tensor in zip(places, known, strict=True):
        if place.region in call.regions:
            area, base = call.regions[place.region]
            use = Use.FEATURE_MAP if call.copies else tensor.use
            inside.append(Held(tensor.name, use, base + place.offset, place.size_bytes, area))
    return inside


def _operation(trace: Trace, place: int, step: Operation, call: Call) -> None:
    at, label = len(trace.names), step.origin.name
    trace.names.append(step.name if label is None else f"{step.name} {label}")
    for access in _in_regions(step.reads):
        if access.place.index in call.regions:
            trace.events.append(Event(at, *_where(access, call)))
        elif access.place.index == READ_ONLY:
            name = _of(WHAT.get(access.what, "constants"), label)
            trace.reads.append(ConstantRead(place, at, name, access.bytes.intervals))
    for access in _in_regions(step.writes):
        if access.place.index in call.regions:
            use, name = _left_by(step, label or _unknown(at))
            grain = _grain(step)
            trace.events.append(Event(at, *_where(access, call), name, use, grain))


def _unknown(operation: int) -> str:
    return f"operation {operation}"


def _grain(step: Operation) -> int:
    """Return how many bytes belong together: a brick of channels, whether all of it is used."""
    if (
        isinstance(step, Transfer)
        or step.blocks.result is None
        or not step.blocks.result.map.bricks
    ):
        return 1
    return BRICK * step.blocks.result.map.element_bytes


def _of(what: str, label: str | None) -> str:
    return what if label is None else f"{what} of {label}"


def _in_regions(accesses: Sequence[Access]) -> Iterator[Access]:
    return (access for access in accesses if access.place.kind is Kind.REGION and access.bytes)


def _where(access: Access, call: Call) -> tuple[str, Intervals]:
    area, base = call.regions[access.place.index]
    return area, access.bytes.intervals.moved(base)


def _left_by(step: Operation, label: str) -> tuple[Use, str]:
    """Say what an operation leaves: a transfer of constants fills a buffer."""
    if isinstance(step, Transfer) and step.reads[0].place.index == READ_ONLY:
        return Use.BUFFER, f"weights of {label}"
    return Use.FEATURE_MAP, label


def _named_by_readers(events: Sequence[Event], labels: Mapping[int, str]) -> list[Event]:
    """Name what no operator of the model is known to leave by the first operation that reads it."""
    named = list(events)
    for place, event in enumerate(named):
        unknown = event.name is not None and event.name == _unknown(event.operation)
        if event.use is not Use.BUFFER and not unknown:
            continue
        readers = (
            later.operation
            for later in named[place + 1 :]
            if later.name is None and later.area == event.area and later.bytes.touches(event.bytes)
        )
        reader = next(readers, None)
        if reader is not None:
            what = "weights of" if event.use is Use.BUFFER else "input of"
            named[place] = replace(event, name=f"{what} {labels.get(reader, _unknown(reader))}")
    return named


def _name_transfers(trace: Trace, start: int, events: Sequence[Event]) -> None:
    """Name constants that a transfer reads after what it fills with them."""
    filled = {
        event.operation: event.name for event in events if event.use is Use.BUFFER and event.name
    }
    trace.reads[start:] = [
        replace(each, name=filled.get(each.operation, each.name)) for each in trace.reads[start:]
    ]


def _renamed(events: Sequence[Event], tensors: Sequence[Held]) -> list[Event]:
    """Return events; the writes that make a tensor, the last ones of its bytes, have its name."""
    renamed = list(events)
    for held in tensors:
        assert held.address is not None, "tensors of a program have places"
        rest = run(held.address, held.size_bytes).intervals
        end = held.address + held.size_bytes
        for place in range(len(renamed) - 1, -1, -1):
            event = renamed[place]
            if not rest:
                break
            inside = held.address <= event.bytes.first and event.bytes.end <= end
            if event.name is None or event.area != held.area or not inside:
                continue
            if rest.touches(event.bytes):
                renamed[place] = replace(event, name=held.name, use=held.use)
                rest = rest - event.bytes
    return renamed
