"""Partition a program on its own: what would go where, before anything is compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mizzen.compiler.ethos_u.regions import TosaRegions
from mizzen.compiler.torch.placement import Checks, is_edge, legality
from mizzen.frontends.torch.int_lowering.int_lower import lower
from mizzen.frontends.torch.program import read
from mizzen.partition import Partition, partition
from mizzen.torch.spec import EthosUCompileSpec

if TYPE_CHECKING:
    from torch.export import ExportedProgram


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
