"""What elements did, as a trace: a process a chip, a thread an element, an event an instruction."""

from __future__ import annotations

from mizzen.mesh.program.program import MeshProgram
from mizzen.mesh.simulation import Simulated
from mizzen.report.trace import Event, process, span, thread, trace_document

MICRO = 1e6


def trace(program: MeshProgram, simulated: Simulated) -> dict[str, object]:
    """Return the document. The simulation must have kept its activities."""
    machine = program.machine
    events: list[Event] = []
    for element in program.elements:
        chip = int(machine.element_chip[element.element])
        events.append(thread(chip, element.element, machine.element_name(element.element)))
    chips = sorted({int(machine.element_chip[each.element]) for each in program.elements})
    events += [process(chip, f"chip {chip}") for chip in chips]
    for activity in simulated.activities:
        layer = activity.layer
        events.append(
            span(
                "copy" if layer is None else program.network.layers[layer].name,
                "compute",
                (int(machine.element_chip[activity.element]), activity.element),
                activity.start_s * MICRO,
                (activity.stop_s - activity.start_s) * MICRO,
                {"image": activity.image},
            )
        )
    return trace_document(events)
