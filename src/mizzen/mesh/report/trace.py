"""What elements did, as a trace that Perfetto and Chrome show.

Ref: Trace Event Format, complete events.
"""

from __future__ import annotations

from mizzen.mesh.program.program import MeshProgram
from mizzen.mesh.simulation import Simulated

MICRO = 1e6


def trace(program: MeshProgram, simulated: Simulated) -> dict[str, object]:
    """Return the document: a process a chip, a thread an element, an event an instruction.

    Times are in microseconds. The simulation must have kept its activities.
    """
    machine = program.machine
    events: list[dict[str, object]] = []
    for element in program.elements:
        chip = int(machine.element_chip[element.element])
        name = machine.element_name(element.element)
        events.append(_named("thread_name", chip, element.element, name))
    chips = sorted({int(machine.element_chip[row.element]) for row in program.elements})
    events += [_named("process_name", chip, 0, f"chip {chip}") for chip in chips]
    for activity in simulated.activities:
        layer = activity.layer
        events.append(
            {
                "name": "copy" if layer is None else program.network.layers[layer].name,
                "cat": "compute",
                "ph": "X",
                "ts": activity.start_s * MICRO,
                "dur": (activity.stop_s - activity.start_s) * MICRO,
                "pid": int(machine.element_chip[activity.element]),
                "tid": activity.element,
                "args": {"image": activity.image},
            }
        )
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _named(kind: str, process: int, thread: int, name: str) -> dict[str, object]:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
