"""What says where the operators of a program go, by itself or as a partitioner of ExecuTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mizzen.compiler.ethos_u.makers import region_compiler
from mizzen.compiler.torch.placement import Checks, is_edge, legality
from mizzen.diagnostics import fail
from mizzen.frontends.torch.int_lowering.int_lower import lower
from mizzen.frontends.torch.narrowing import read
from mizzen.frontends.torch.operators import OPERATORS, Missing, functional_name
from mizzen.partition import Partition, partition
from mizzen.torch.spec import EthosUCompileSpec

if TYPE_CHECKING:
    from torch.export import ExportedProgram

    from mizzen.torch.executorch.tagging import Placed


class EthosUPartitioner:
    """Places the operators of a converted program for an accelerator.

    Given to ExecuTorch's `to_edge_transform_and_lower`, it tags what the NPU takes, compiled and
    proved, for the backend `EthosUBackend`.

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
        self._tensors: dict[str, Any] = {}

    @property
    def spec(self) -> Mapping[str, object]:
        """Nothing: ExecuTorch keeps a backend's options here, and these are in `compile_spec`."""
        return MappingProxyType({})

    def placement(self, exported_program: ExportedProgram, name: str = "model") -> Partition:
        """Say where every group of operators goes, and why; nothing is compiled.

        The code generator may still refuse a region; compiling then splits it.
        """
        compiler = region_compiler(self.compile_spec.configuration)
        lowered = lower(read(exported_program, name), compiler.window_limits)
        rules = compiler.legality(lowered.graph)
        legal = legality(lowered, rules, self.additional_checks)
        return partition(lowered.graph, legal, edge=is_edge)

    def partition(self, exported_program: ExportedProgram) -> Any:
        """Tag the nodes of each region; returns ExecuTorch's `PartitionResult`.

        Every region that is tagged is compiled and proved. E885 without ExecuTorch.
        """
        from mizzen.torch.executorch.tagging import tagged

        return tagged(exported_program, self._placed(exported_program), self.compile_spec)

    __call__ = partition

    def ops_to_not_decompose(
        self, ep: ExportedProgram
    ) -> tuple[list[Any], Callable[[Any], bool] | None]:
        """Return the operators that ExecuTorch keeps whole: those of which all are on the NPU."""
        if ep.dialect == "EDGE":
            return [], None
        self._tensors = dict(ep.state_dict)
        on_npu = self._placed(ep).on_npu
        calls = [node for node in ep.graph.nodes if hasattr(node.target, "overloadpacket")]
        elsewhere = {node.target for node in calls if node not in on_npu}
        kept = dict.fromkeys(node.target for node in calls if node in on_npu)
        return [target for target in kept if target not in elsewhere], None

    def transform_for_pre_decomposition(self, exported_program: ExportedProgram) -> ExportedProgram:
        """Return the program as ExecuTorch can cut it; it computes the same."""
        from mizzen.torch.executorch.edge import prepared

        return prepared(exported_program)

    def register_custom_partition_op(self, op: Any) -> None:
        """Say that an operator may be on the NPU. E888 for one that has no form in integers."""
        operator = OPERATORS.get(functional_name(str(op)))
        if operator is None or isinstance(operator.integers, Missing):
            raise fail(
                "E888",
                f"an operator for the NPU must have a form in integers, and {op} has none",
                help="write it with PyTorch's own operators; `mizzen.torch` knows those",
            )

    def _placed(self, program: ExportedProgram) -> Placed:
        from mizzen.torch.executorch.tagging import Placed

        return Placed(program, self.compile_spec, self.additional_checks, self._tensors, "forward")


def _check(given: Any) -> Callable[[Any], str | None]:
    if not hasattr(given, "is_node_supported"):
        return given

    def check(node: Any) -> str | None:
        supported = given.is_node_supported({}, node)
        return None if supported else f"{type(given).__name__} does not support it"

    return check
