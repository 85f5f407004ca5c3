"""What of a program goes on as it is, where a part of its machine works no more."""

from __future__ import annotations

from dataclasses import replace

from mizzen.diagnostics import fail
from mizzen.mesh.machine import Machine
from mizzen.mesh.program.program import (
    ElementProgram,
    Instruction,
    MeshProgram,
    Receive,
    Route,
    Send,
)


def surviving(program: MeshProgram, machine: Machine) -> MeshProgram:
    """Return the replicas that lie on working elements and links of a machine, and nothing else.

    machine  the program's, with more of it dead

    They are numbered anew and take all images among them: the fastest way on after a loss, since
    nothing is mapped. E544 where no replica is whole; then the network has to be mapped again.
    """
    lost = _lost(program, machine)
    kept = [replica for replica in range(program.replicas) if replica not in lost]
    if not kept:
        raise fail(
            "E544",
            f"a replica of {program.network.name} must lie on working elements and links, and "
            f"none of {program.replicas} does",
            help="map the network again, on the machine as it is",
        )
    number = {replica: index for index, replica in enumerate(kept)}
    remaining = [element for element in program.elements if element.replica in number]
    messages = sorted(
        {
            instruction.message
            for element in remaining
            for instruction in element.instructions
            if isinstance(instruction, Send)
        }
    )
    places = {message: index for index, message in enumerate(messages)}
    elements = tuple(_numbered(element, number[element.replica], places) for element in remaining)
    routes = tuple(program.routes[message] for message in messages)
    return MeshProgram(machine, program.network, len(kept), elements, routes)


def _lost(program: MeshProgram, machine: Machine) -> set[int]:
    """Return the replicas with something on a dead element, or with messages over a dead link."""
    gone = machine.element_dead | machine.element_reserved
    dead = machine.link_dead
    replica_of = {element.element: element.replica for element in program.elements}
    lost = {element.replica for element in program.elements if gone[element.element]}

    def is_cut(route: Route) -> bool:
        return bool(dead[list(route.links)].any())

    return lost | {replica_of[route.source] for route in program.routes if is_cut(route)}


def _numbered(element: ElementProgram, replica: int, places: dict[int, int]) -> ElementProgram:
    def renamed(instruction: Instruction) -> Instruction:
        if isinstance(instruction, Send | Receive):
            return replace(instruction, message=places[instruction.message])
        return instruction

    instructions = tuple(map(renamed, element.instructions))
    return replace(element, replica=replica, instructions=instructions)
