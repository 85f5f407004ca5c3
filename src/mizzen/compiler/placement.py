"""Place a graph's groups so that the code generator takes every region.

Where it will not take a region, the groups that it stops at go to the CPU, and the graph is placed
again: there is a placement whatever the graph is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mizzen.compiler.codegen import RegionCode, RegionCompiler, RegionRefusal
from mizzen.compiler.proof.options import ProofOptions
from mizzen.compiler.proof.regions import RegionProver
from mizzen.compiler.refusals import Refused, settle
from mizzen.diagnostics import ProgressCallback, Reason
from mizzen.graph import Graph
from mizzen.partition import Device, Partition, Region, extract, partition
from mizzen.partition.placement import Edge, Legal
from mizzen.report.proof import NOT_PROVED, Proof, joined

MOST_TRIES = 64
"""Times that a graph is placed anew before every group that is left goes to the CPU."""


@dataclass(frozen=True, eq=False)
class Placement:
    """A graph's regions, the code of those on the NPU by their groups, and what was proved."""

    partition: Partition
    code: dict[tuple[int, ...], RegionCode]
    proof: Proof = NOT_PROVED


@dataclass(eq=False)
class _Search:
    """What is known after some tries."""

    graph: Graph
    compiler: RegionCompiler
    options: ProofOptions
    on_progress: ProgressCallback | None
    code: dict[tuple[int, ...], RegionCode] = field(
        default_factory=dict[tuple[int, ...], RegionCode]
    )
    proofs: dict[tuple[int, ...], Proof] = field(default_factory=dict[tuple[int, ...], Proof])

    def compile(self, region: Region) -> RegionRefusal | None:
        """Compile a region unless that was done; return why it cannot be."""
        if region.groups in self.code:
            return None
        part = extract(self.graph, region.groups, self.graph.name)
        result = self.compiler.compile(part, self.on_progress)
        if isinstance(result, RegionRefusal):
            return result
        if self.options.inputs:
            prover = RegionProver(self.graph, self.compiler, self.options, self.on_progress)
            proved = prover.prove(result, region.groups)
            if isinstance(proved, RegionRefusal):
                return proved
            result, self.proofs[region.groups] = proved.code, proved.proof
        self.code[region.groups] = result
        return None

    def proof_of(self, found: Partition) -> Proof:
        """Return what was proved of the regions for the NPU."""
        groups = [region.groups for region in found.regions if region.device is Device.NPU]
        return joined([self.proofs[row] for row in groups if row in self.proofs])

    def refusal(self, found: Partition) -> RegionRefusal | None:
        """Compile the regions for the NPU up to the first that is refused."""
        for region in found.regions:
            if region.device is Device.NPU:
                refused = self.compile(region)
                if refused is not None:
                    return refused
        return None


def place(
    graph: Graph,
    legal: Legal,
    edge: Edge,
    compiler: RegionCompiler,
    proof: ProofOptions,
    on_progress: ProgressCallback | None,
) -> Placement:
    """Place the groups of a graph, and prove the code of every region.

    legal  what keeps an operation from the NPU, the compiler's own rules among it
    edge   as for `partition`
    """
    search = _Search(graph, compiler, proof, on_progress)
    general: Reason | None = None

    def attempt(refused: dict[int, Reason]) -> Placement | Refused:
        nonlocal general
        found = partition(graph, legal, edge=edge, refused=refused)
        unprofitable = compiler.unprofitable(found)
        if unprofitable:
            general = next(iter(unprofitable.values()))
            return Refused(unprofitable)
        why = search.refusal(found)
        if why is None:
            return Placement(found, search.code, search.proof_of(found))
        general = why.general
        return Refused(why.reasons)

    placed = settle(attempt, {}, MOST_TRIES)
    if placed is not None:
        return placed
    assert general is not None, "every try but the last has a reason"
    everything = dict.fromkeys(_groups(graph), general)
    return Placement(partition(graph, legal, edge=edge, refused=everything), {})


def _groups(graph: Graph) -> Iterable[int]:
    return {row.group for row in graph if row.group is not None}
