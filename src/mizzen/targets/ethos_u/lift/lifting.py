"""From a program to its operations over tensors."""

from __future__ import annotations

from mizzen.targets.ethos_u.generator.operations import Sequence
from mizzen.targets.ethos_u.lift.rolling import unrolled
from mizzen.targets.ethos_u.lift.slices import Slices
from mizzen.targets.ethos_u.lift.stream import walk
from mizzen.targets.ethos_u.lift.stripes import whole
from mizzen.targets.ethos_u.lift.tensors import Tensors
from mizzen.targets.ethos_u.lift.values import Held
from mizzen.targets.ethos_u.machine.program import Program


def lift(program: Program, held: Held | None = None) -> Sequence:
    """Return what a program computes, over tensors that lie nowhere.

    Inputs and outputs are those of the program, in its order; of a tensor that is larger than what
    the interface names of it, there is a copy. What a program leaves in its memory beside its
    outputs is not kept, though another NPU operator of the network may read it: that one is
    refused, E273.

    held  bytes of its inputs that hold something at first; without it all do. No other bytes are
          read, for what copies do too

    Raises E270 for a machine other than U55 and U65, E271 for what no operation stands for, E272
    for registers that were not set, E273 for reads of what nobody wrote, E274 for weights and
    tables that do not come from constants, E283 for weights that are not of the order that the
    registers say.
    """
    found = walk(program, held)
    values = found.values
    slices = Slices(values)
    steps = slices.merged(found.steps)
    kept = {values.of(piece) for piece in (*found.results, *found.states.values())}
    steps = whole(unrolled(steps, values, kept), values)
    return Tensors(found, slices.merged(steps)).sequence()
