"""The documented exceptions: verdicts that are known, bounded, and explained in the documentation.

A row holds only within its bounds: a difference that grows, or turns up elsewhere, has no excuse.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from mizzen.conformance.compilers import Compiler
from mizzen.conformance.verdict import Row, Verdict
from mizzen.targets.ethos_u.machine.commands import ALL, U55_U65, U85, Arch

EVERY_TYPE = ("int8", "uint8", "int16", "int32", "bool")
REGOR, LEGACY = (Compiler.REGOR,), (Compiler.LEGACY,)
BOTH = (Compiler.REGOR, Compiler.LEGACY)
EVERYWHERE = tuple(Compiler)


@dataclass(frozen=True, slots=True)
class Excuse:
    """One exception; `title` is what the documentation's page calls it.

    steps     the largest difference that it explains, None for any
    share     the largest part of a network's outputs that may differ
    networks  text of which the network's name must have one; none for every network
    said      text that the compiler's or kernels' words must have
    """

    title: str
    verdict: Verdict
    compilers: tuple[Compiler, ...]
    archs: tuple[Arch, ...]
    operators: tuple[str, ...]
    dtypes: tuple[str, ...]
    steps: int | None = None
    share: float = 1.0
    networks: tuple[str, ...] = ()
    said: str = ""

    def explains(self, outcome: Row, compiler: Compiler, arch: Arch) -> bool:
        """Whether this is what the row shows, and no more than that."""
        return (
            outcome.verdict is self.verdict
            and compiler in self.compilers
            and arch in self.archs
            and outcome.operator in self.operators
            and outcome.dtype in self.dtypes
            and (not self.networks or any(part in outcome.case for part in self.networks))
            and self.said in outcome.detail
            and self._bounds(outcome)
        )

    def _bounds(self, outcome: Row) -> bool:
        difference = outcome.difference
        if difference is None:
            return True
        near = self.steps is None or difference.steps <= self.steps
        return near and difference.share <= self.share


BOOLEAN = (
    "CAST", "EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "LOGICAL_AND", "LOGICAL_NOT",
    "LOGICAL_OR", "NOT_EQUAL", "REDUCE_ALL", "REDUCE_ANY", "SELECT", "SELECT_V2",
)  # fmt: skip
"""Operators that take or give BOOL."""

OFF, REFUSED, CRASHED = Verdict.OFF, Verdict.REFUSED, Verdict.CRASHED
FAULTY, NOT_COMPARED = Verdict.FAULTY, Verdict.NOT_COMPARED

# fmt: off
EXCUSES: tuple[Excuse, ...] = (
    Excuse("SUM over two axes", OFF, REGOR, ALL, ("SUM",), ("int8", "int16"),
           networks=("axes12_", "axes123_")),
    Excuse("SUM with different input and output scales", OFF, REGOR, ALL, ("SUM",), ("int8",),
           steps=1, networks=("_rescaled",)),
    Excuse("MUL, int16", OFF, BOTH, ALL, ("MUL",), ("int16",),
           steps=1, share=1e-3, networks=("_scales",)),
    Excuse("MUL, int32", OFF, BOTH, ALL, ("MUL",), ("int32",)),
    Excuse("TRANSPOSE, uint8", OFF, REGOR, U55_U65, ("TRANSPOSE",), ("uint8",)),
    Excuse("SOFTMAX, int16", OFF, BOTH, ALL, ("SOFTMAX",), ("int16",), steps=1, share=1e-2),
    Excuse("GELU, int8 and uint8", OFF, BOTH, ALL, ("GELU",), ("int8", "uint8"),
           steps=1, share=0.02),
    Excuse("NEG, int8, of -128", OFF, BOTH, ALL, ("NEG",), ("int8",), share=0.02),
    Excuse("BOOL inputs or outputs", REFUSED, REGOR, U55_U65, BOOLEAN, EVERY_TYPE,
           said="Non-passthrough operation"),
    Excuse("CONV_2D, int16, with an INT32 bias, on Ethos-U85", OFF, REGOR, U85, ("CONV_2D",),
           ("int16",), networks=("_bias_int32",)),
    Excuse("RESIZE_NEAREST_NEIGHBOR by a fractional factor, on Ethos-U85", OFF, REGOR, U85,
           ("RESIZE_NEAREST_NEIGHBOR",), ("int8",), networks=("_odd_ratio",)),
    Excuse("DIV, int8, on Ethos-U85", OFF, REGOR, U85, ("DIV",), ("int8",)),
    Excuse("READ_VARIABLE and ASSIGN_VARIABLE, on Ethos-U85", FAULTY, REGOR, U85,
           ("READ_VARIABLE", "ASSIGN_VARIABLE"), ("int8",), said="computed before it is read"),
    Excuse("RELU and QUANTIZE, int32, on Ethos-U85", CRASHED, REGOR, U85,
           ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "QUANTIZE"), ("int32",),
           said="Could not find a valid OFM microblock"),
    Excuse("MIRROR_PAD, deprecated core", FAULTY, LEGACY, U55_U65, ("MIRROR_PAD",), EVERY_TYPE,
           said="SET_OFM_STRIDE_Y: bit 24 of word 0 is reserved"),
    Excuse("CONCATENATION of different scales, deprecated core", OFF, LEGACY, U55_U65,
           ("CONCATENATION",), ("uint8",), steps=1, share=0.02, networks=("_of_scales",)),
    Excuse("TRANSPOSE, int32, deprecated core", OFF, LEGACY, U55_U65, ("TRANSPOSE",), ("int32",),
           steps=1),
    Excuse("UNPACK along the last axis, deprecated core", CRASHED, LEGACY, U55_U65, ("UNPACK",),
           EVERY_TYPE, networks=("_last",), said="list index out of range"),
    Excuse("No kernel to compare with", NOT_COMPARED, EVERYWHERE, ALL,
           ("ABS", "BATCH_MATMUL", "EXP", "NEG", "SQUARED_DIFFERENCE"), ("uint8",)),
    Excuse("No kernel to compare with", NOT_COMPARED, EVERYWHERE, ALL,
           ("RELU_N1_TO_1", "RELU_0_TO_1", "SCATTER_ND"), ("int16",)),
    Excuse("No kernel to compare with", NOT_COMPARED, (Compiler.OWN, Compiler.MIZZEN), ALL,
           ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1"), ("int32",)),
)
# fmt: on


def excused(outcome: Row, compiler: Compiler, arch: Arch) -> Row:
    """Return the row with the exception that explains it, if there is one."""
    title = next(_titles(outcome, compiler, arch), None)
    return outcome if title is None else replace(outcome, exception=title)


def _titles(outcome: Row, compiler: Compiler, arch: Arch) -> Iterator[str]:
    return (excuse.title for excuse in EXCUSES if excuse.explains(outcome, compiler, arch))
