"""What would become of a program, without compiling it: where operators go, its TOSA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from mizzen.compiler.ethos_u.regions import STANDARD, TosaRegions
from mizzen.compiler.torch.placement import Checks, form_of, is_edge, legality
from mizzen.diagnostics import Origin, fail
from mizzen.frontends.torch.fp_lowering import lower_float, read_float
from mizzen.frontends.torch.int_lowering.int_lower import lower
from mizzen.frontends.torch.narrowing import read
from mizzen.frontends.torch.program import is_unquantized
from mizzen.graph import Graph, Operation
from mizzen.package import tosa
from mizzen.partition import Partition, extract, partition
from mizzen.passes import plain
from mizzen.torch.spec import EthosUCompileSpec

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
    return _integers(exported, name)


def _integers(exported: ExportedProgram, name: str) -> bytes:
    _require_quantized(exported, name)
    lowered = lower(read(exported, name), TosaRegions.window_limits)
    placed = partition(lowered.graph, form_of, edge=is_edge)
    for group, row in placed.groups.items():
        if row.reasons and not all(map(is_edge, _operations(lowered.graph, group))):
            raise fail(
                "E168",
                f"every operator must have a TOSA form, and {lowered.origins[group].kind} has "
                f"none: {row.reasons[0].message}",
                origin=lowered.origins[group],
                help=row.reasons[0].help or "quantise the operators around it",
            )
    inner = [group for group, row in placed.groups.items() if not row.reasons]
    part = extract(lowered.graph, inner, name)
    STANDARD.run(part.graph)
    return tosa.write(part.graph)


def _operations(graph: Graph, group: int) -> list[Operation]:
    return [row for row in graph if row.group == group]


def _require_quantized(exported: ExportedProgram, name: str) -> None:
    if is_unquantized(exported):
        raise fail(
            "E853",
            "a program for the integer profile must be quantised, and this one is not",
            origin=Origin(model=name),
            help="use profile FP, or quantise the model first: prepare_pt2e, calibrate, "
            "convert_pt2e",
        )


class EthosUPartitioner:
    """Places the operators of a converted program for an accelerator.

    additional_checks  the user's own: called with an FX node, each gives a reason to keep it on
                       the CPU, or None; or an object with `is_node_supported(submodules, node)`
    """

    def __init__(
        self,
        compile_spec: EthosUCompileSpec,
        additional_checks: Sequence[Callable[[Any], str | None] | Any] | None = None,
    ) -> None:
        self.compile_spec = compile_spec
        self.additional_checks: Checks = tuple(map(_check, additional_checks or ()))

    def partition(self, exported_program: ExportedProgram, name: str = "model") -> Partition:
        """Say where every group of operators goes, and why; nothing is compiled.

        The code generator may still refuse a region, which compiling then takes apart.
        """
        compiler = TosaRegions(self.compile_spec.configuration)
        lowered = lower(read(exported_program, name), compiler.window_limits)
        rules = compiler.legality(lowered.graph)
        legal = legality(lowered, rules, self.additional_checks)
        return partition(lowered.graph, legal, edge=is_edge)


def _check(given: Any) -> Callable[[Any], str | None]:
    if not hasattr(given, "is_node_supported"):
        return given

    def check(node: Any) -> str | None:
        supported = given.is_node_supported({}, node)
        return None if supported else f"{type(given).__name__} does not support it"

    return check
