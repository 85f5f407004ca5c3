"""Whether elements can wait for each other for ever.

A program is a marked graph. Its transitions are instructions; its places are the orders of
instructions on each element, messages on their way, and the slots that are free for them. Every
slot is free at first, and every element at its first instruction. Such a graph is live if and only
if no cycle is without a mark (Commoner, Holt, Even and Pnueli, "Marked directed graphs", 1971); the
places without one at first are the steps from an instruction to the next and from a `Send` to its
`Receive`. So it is enough that one image goes through: then every cycle has a mark, and every later
image goes through as well.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from mizzen.mesh.program.checker.findings import Finding, Rule
from mizzen.mesh.program.checker.view import View
from mizzen.mesh.program.program import Receive, Send

SHOWN = 8
"""Elements of a circle that are named."""


def waiting_findings(view: View) -> Iterator[Finding]:
    """Return the elements that wait for each other."""
    elements = view.program.elements
    steps = [0] * len(elements)
    sent: set[int] = set()
    waiting: dict[int, list[int]] = {}
    ready = deque(range(len(elements)))
    while ready:
        index = ready.popleft()
        instructions = elements[index].instructions
        while steps[index] < len(instructions):
            instruction = instructions[steps[index]]
            if isinstance(instruction, Receive) and instruction.message not in sent:
                waiting.setdefault(instruction.message, []).append(index)
                break
            if isinstance(instruction, Send):
                sent.add(instruction.message)
                ready.extend(waiting.pop(instruction.message, ()))
            steps[index] += 1
    stuck = {index: message for message, indices in waiting.items() for index in indices}
    if stuck:
        yield _circle(view, stuck)


def _circle(view: View, stuck: dict[int, int]) -> Finding:
    """Return who waits for whom, from the first element that waits."""
    index_of = {element.element: index for index, element in enumerate(view.program.elements)}
    path: list[str] = []
    seen: set[int] = set()
    index: int | None = min(stuck)
    while index is not None and index in stuck and index not in seen and len(path) < SHOWN:
        seen.add(index)
        message = stuck[index]
        path.append(f"{view.place(view.program.elements[index])} for message {message}")
        index = index_of.get(view.program.routes[message].source)
    must = "every element must come to its last instruction"
    came = f"{len(stuck)} wait for ever: " + "; ".join(path)
    return Finding(Rule.WAITING, "program", must, came)
