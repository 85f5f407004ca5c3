"""Holds a command stream to what its generator says that it does.

A generator hands over a `Witness`, as plain data: each operation with its maps, constants and
scales. `mismatches` compares it with what the simulator read of the stream. What a generator says
may itself be wrong: that is for those to find who know the network.

It must not know a generator: where a witness is made is no matter here.
"""

from mizzen.targets.ethos_u.judge.witness.agreement import mismatches
from mizzen.targets.ethos_u.judge.witness.witness import (
    Mismatch,
    SaidActivation,
    SaidChannels,
    SaidConvolution,
    SaidElementwise,
    SaidKernel,
    SaidLines,
    SaidMap,
    SaidMatrixProduct,
    SaidNumber,
    SaidOperandScale,
    SaidOperation,
    SaidOrder,
    SaidPlace,
    SaidPooling,
    SaidResize,
    SaidRounding,
    SaidScale,
    SaidStep,
    SaidSteps,
    SaidTensor,
    SaidTransfer,
    Shape,
    Witness,
)

__all__ = [
    "Mismatch",
    "SaidActivation",
    "SaidChannels",
    "SaidConvolution",
    "SaidElementwise",
    "SaidKernel",
    "SaidLines",
    "SaidMap",
    "SaidMatrixProduct",
    "SaidNumber",
    "SaidOperandScale",
    "SaidOperation",
    "SaidOrder",
    "SaidPlace",
    "SaidPooling",
    "SaidResize",
    "SaidRounding",
    "SaidScale",
    "SaidStep",
    "SaidSteps",
    "SaidTensor",
    "SaidTransfer",
    "Shape",
    "Witness",
    "mismatches",
]
