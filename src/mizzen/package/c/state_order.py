"""The order in which states take over at the end of an inference."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.diagnostics import MizzenError, fail
from mizzen.package.device import DeviceProgram, State


def in_order(program: DeviceProgram) -> Sequence[State]:
    """Return the states so that each is read before it is written: a shift register moves once.

    E462 for a circle, which would need memory of its own, and for an output that is a state as it
    was before the inference, because that is overwritten when the caller looks.
    """
    moving = [state for state in program.states if state.read != state.write]
    given_out = {state.read for state in moving} & set(program.outputs)
    if given_out:
        raise _refused(program, given_out.pop(), "be given out before it changes, for a caller")
    ordered = [state for state in program.states if state.read == state.write]
    while moving:
        needed = {state.write for state in moving}
        free = [state for state in moving if state.read not in needed]
        if not free:
            raise _refused(program, moving[0].read, "take over from others in a circle")
        ordered += free
        moving = [state for state in moving if state not in free]
    return ordered


def _refused(program: DeviceProgram, index: int, what: str) -> MizzenError:
    return fail(
        "E462",
        f"states of a device take over one after the other, and "
        f"{program.tensors[index].name!r} would {what}",
        help="copy the state in the network first",
    )
