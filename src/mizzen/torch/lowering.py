"""What would become of a program, without compiling it: where operators go, its TOSA."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from mizzen.compiler.ethos_u.regions import STANDARD, WINDOW_LIMITS
from mizzen.compiler.integers import integers_of
from mizzen.compiler.torch.host import TorchLowering
from mizzen.compiler.torch.placement import form_of
from mizzen.diagnostics import Origin, fail
from mizzen.frontends.torch.fp_lowering import lower_float, read_float
from mizzen.frontends.torch.int_lowering.int_lower import lower
from mizzen.frontends.torch.narrowing import read
from mizzen.frontends.torch.program import is_unquantized
from mizzen.graph import Graph
from mizzen.package import tosa
from mizzen.passes import plain

if TYPE_CHECKING:
    from torch.export import ExportedProgram


class Profile(Enum):
    """A profile of TOSA; the value is its name. Ref: TOSA 1.0, 1.6 Profiles."""

    INT = "INT"
    FP = "FP"


def to_tosa(
    exported: ExportedProgram, name: str = "model", profile: Profile | str = Profile.INT
) -> bytes:
    """Return a program as a TOSA 1.0 file.

    Profile INT takes a quantised program; its inputs and outputs are the integers between the
    program's first and last roundings. FP takes an unquantised one, whose inputs and outputs are
    the file's, then those of the buffers that it changes; integers of 64 bits become such of 32.

    E168, E850 or E851 where an operator has no form in the profile, E852 for a quantised program
    and profile FP, E853 for an unquantised one and INT.
    """
    if Profile(profile) is Profile.FP:
        graph = lower_float(read_float(exported, name))
        plain().run(graph)
        return tosa.write(graph)
    return tosa.write(integer_graph(exported, name))


def integer_graph(exported: ExportedProgram, name: str = "model") -> Graph:
    """Return a quantised program as a graph of TOSA's operations on integers, profile INT.

    Its inputs and outputs are the integers between the program's first and last roundings. E168,
    E850 or E851 where an operator has no form, E853 for an unquantised program.
    """
    _require_quantized(exported, name)
    lowered = lower(read(exported, name), WINDOW_LIMITS)
    graph = integers_of(TorchLowering(lowered), form_of, name)
    STANDARD.run(graph)
    return graph


def _require_quantized(exported: ExportedProgram, name: str) -> None:
    if is_unquantized(exported):
        raise fail(
            "E853",
            "a program for the integer profile must be quantised, and this one is not",
            origin=Origin(model=name),
            help="use profile FP, or quantise the model first: prepare_pt2e, calibrate, "
            "convert_pt2e",
        )
