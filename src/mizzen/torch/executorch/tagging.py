"""Which nodes of a program ExecuTorch is to hand to the backend: those of the NPU's regions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from mizzen.compiler.ethos_u.makers import region_compiler
from mizzen.compiler.placement import Placement
from mizzen.compiler.proof.options import DEFAULT
from mizzen.compiler.torch.placement import Checks, place
from mizzen.diagnostics import Device, fail
from mizzen.frontends.torch.int_lowering.int_context import is_dequantize, signed_offset
from mizzen.frontends.torch.int_lowering.int_lower import Lowered, lower
from mizzen.torch.executorch.backend import backend_class
from mizzen.torch.executorch.edge import Edge, read_edge
from mizzen.torch.executorch.specification import rows_of
from mizzen.torch.spec import EthosUCompileSpec

if TYPE_CHECKING:
    from torch.export import ExportedProgram

BYTES = "ExecuTorch hands unsigned bytes over as they are, and the NPU's region takes signed ones"


class Placed:
    """A program of ExecuTorch's, placed: its regions for the NPU, as nodes of the program."""

    def __init__(
        self,
        exported: ExportedProgram,
        spec: EthosUCompileSpec,
        checks: Checks,
        tensors: Mapping[str, Any],
        name: str,
    ) -> None:
        compiler = region_compiler(spec.configuration)
        self.edge: Edge = read_edge(exported, name, tensors)
        self.lowered: Lowered = lower(self.edge.program, compiler.window_limits)
        own = (*(_of_node(check, self.edge.of) for check in checks), _signed_edges)
        self.placement: Placement = place(self.lowered, compiler, own, DEFAULT, None)

    @property
    def regions(self) -> list[list[Any]]:
        """The nodes of each region, in order, with what makes real numbers of its inputs."""
        regions = [
            region for region in self.placement.partition.regions if region.device is Device.NPU
        ]
        return [self._nodes(region.groups) for region in regions]

    @property
    def on_npu(self) -> set[Any]:
        """The nodes of all regions."""
        return {node for region in self.regions for node in region}

    def _nodes(self, groups: tuple[int, ...]) -> list[Any]:
        members = {node for group in groups for node in self.lowered.nodes[group]}
        members |= self._between(members)
        for node in reversed(self.edge.program.nodes):
            prepares = is_dequantize(node) or node in self.lowered.constants
            if node.op == "call_function" and prepares and _is_only_for(members, node):
                members.add(node)
        return [self.edge.of[node] for node in self.edge.program.nodes if node in members]

    def _between(self, members: set[Any]) -> set[Any]:
        """Return nodes on ways from members to members that are of no group: they change nothing.

        A view in the same scale is such a node; what executes the region needs it all the same.
        """
        nodes = [node for node in self.edge.program.nodes if node.op == "call_function"]
        behind = _reached(nodes, members, self._placed_elsewhere, lambda node: node.all_input_nodes)
        before = _reached(nodes[::-1], members, self._placed_elsewhere, lambda node: node.users)
        return behind & before

    @cached_property
    def _placed_elsewhere(self) -> set[Any]:
        groups = self.placement.partition.groups
        return {node for group in groups for node in self.lowered.nodes[group]}


def _reached(
    nodes: Sequence[Any],
    starts: set[Any],
    barred: set[Any],
    neighbours: Callable[[Any], Iterable[Any]],
) -> set[Any]:
    """Return the nodes next to `starts`, or to one of those found, without those barred."""
    reached: set[Any] = set()
    for node in nodes:
        if node not in barred and not (starts | reached).isdisjoint(neighbours(node)):
            reached.add(node)
    return reached


def _is_only_for(members: set[Any], node: Any) -> bool:
    return bool(node.users) and members.issuperset(node.users)


def _of_node(check: Callable[[Any], str | None], of: Mapping[Any, Any]) -> Any:
    def asked(node: Any) -> str | None:
        return check(of[node])

    return asked


def _signed_edges(node: Any) -> str | None:
    """Refuse what takes or gives unsigned bytes."""
    ends = [node, *node.all_input_nodes]
    return BYTES if any(signed_offset(end) for end in ends) else None


def tagged(exported: ExportedProgram, placed: Placed, spec: EthosUCompileSpec) -> Any:
    """Tag the nodes of each region, and constants that only one of them has.

    E885 without ExecuTorch.
    """
    require_executorch()
    from executorch.exir.backend.partitioner import DelegationSpec, PartitionResult
    from executorch.exir.backend.utils import tag_constant_data

    backend = backend_class()
    specs = rows_of(spec)
    tags: dict[str, Any] = {}
    for index, nodes in enumerate(placed.regions):
        tag = f"tag{index}"
        tags[tag] = DelegationSpec(backend.__name__, specs)
        for node in nodes:
            node.meta["delegation_tag"] = tag
    tag_constant_data(exported)
    return PartitionResult(tagged_exported_program=exported, partition_tags=tags)


def require_executorch() -> None:
    """Raise E885 without ExecuTorch."""
    if find_spec("executorch") is None:
        raise fail(
            "E885",
            "a partitioner of ExecuTorch's needs ExecuTorch, which is not installed",
            help="pip install '.[executorch]' in Mizzen's folder; Artifact.save needs none",
        )
