"""Placing a graph ends whatever its compiler says."""

from __future__ import annotations

from collections.abc import Mapping

from mizzen.compiler.codegen import RegionCode, RegionRefusal, Way
from mizzen.compiler.ethos_u.regions import WINDOW_LIMITS
from mizzen.compiler.placement import MOST_TRIES, place
from mizzen.compiler.proof.options import DEFAULT
from mizzen.diagnostics import Reason
from mizzen.graph import DType, Graph, TensorType
from mizzen.ops import Builder
from mizzen.partition import Device, Extracted, Partition
from mizzen.partition.placement import Legal

NEVER = Reason("never", "it is never worth it")


class NeverSatisfied:
    """Finds one more group unworthy each time, and compiles nothing."""

    window_limits = WINDOW_LIMITS

    def legality(self, graph: Graph) -> Legal:
        return lambda operation: ()

    def unprofitable(self, partition: Partition) -> Mapping[int, Reason]:
        on_npu = [row.groups for row in partition.regions if row.device is Device.NPU]
        return {on_npu[0][0]: NEVER} if on_npu else {}

    def compile(self, part: Extracted, on_progress: object) -> RegionCode | RegionRefusal:
        raise AssertionError("every region is unworthy")

    @property
    def ways(self) -> tuple[Way, ...]:
        raise AssertionError("nothing is compiled")


def test_what_is_unworthy_for_longer_than_the_search_goes_to_the_cpu() -> None:
    graph = Graph()
    value = graph.add_input(TensorType((1, 4), DType.INT8), "x")
    for group in range(MOST_TRIES + 10):
        value = Builder(graph, group=group)("CLAMP", value, min_val=-9, max_val=9)
    graph.set_outputs([value])
    compiler = NeverSatisfied()
    found = place(graph, compiler.legality(graph), lambda operation: True, compiler, DEFAULT, None)
    assert not found.code
    assert {row.device for row in found.partition.groups.values()} == {Device.CPU}
    assert found.partition.groups[MOST_TRIES + 5].reasons[-1] == NEVER
