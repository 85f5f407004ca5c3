"""Our own rules from the tensor graph to a sequence of operations of Ethos-U.

There is one entry for TFLite, TOSA and PyTorch: the graph of TOSA's operations on integers. For
PyTorch and TOSA it is what the result is compared with; for TFLite the front-end gives one whose
integers are those of TFLite Micro's kernels, bit for bit, with TFLite's double rounding, shifts and
multipliers written out. So a rule never knows a framework: it sees which RESCALEs and CLAMPs are
round an operation and takes those that the machine does in the same pass and with the same
rounding. What the front-end has no exact form of comes as a CUSTOM operation of domain `tflite`;
some of these have a rule too, by name.

A rule holds for every Ethos-U, or for U85 alone (`rule_u85`, in modules whose names end so): those
are asked first there, and where they have no form the shared one is, so that U85 takes whatever U55
does. They are for what U55 has no operation for, such as products of two maps, and for what it does
in several: two scaled operands, tables of 32 bits, results that are stored transposed.

It must not know front-ends, costs, blocks, layouts that are chosen, command words; nor the
simulator and the checkers, which judge what comes.
"""

from __future__ import annotations

from mizzen.targets.ethos_u.generator.lower.first_values import State
from mizzen.targets.ethos_u.generator.lower.lowering import (
    InRuns,
    Lowered,
    Refusal,
    Run,
    kinds_of,
    lower,
    lower_in_runs,
)

__all__ = ["InRuns", "Lowered", "Refusal", "Run", "State", "kinds_of", "lower", "lower_in_runs"]
