"""Place a graph's groups so that the code generator takes every region, and gets it right.

Where it will not take a region, the groups that it stops at go to the CPU, and the graph is placed
again: there is a placement whatever the graph is. Where no way gives right code, shorter beginnings
of the region show which group is the first that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from mizzen.compiler.codegen import RegionCode, RegionCompiler, RegionRefusal
from mizzen.compiler.proof.difference import PROOF, RULE
from mizzen.compiler.proof.findings import RegionFindings, Wrong
from mizzen.compiler.proof.options import ProofOptions
from mizzen.compiler.proof.regions import prove_region
from mizzen.compiler.refusals import RefusalSearch, Refused, settle
from mizzen.compiler.ways import Failed, Made, first_right
from mizzen.diagnostics import MizzenError, ProgressCallback, Reason
from mizzen.graph import Graph
from mizzen.partition import Device, Extracted, Partition, Region, extract, in_order, partition
from mizzen.partition.placement import WORK_PER_BYTE, Edge, Legal
from mizzen.report.code import Tried
from mizzen.report.proof import NOT_PROVED, Proof, joined

MOST_TRIES = 64
"""Times that a graph is placed anew before every group that is left goes to the CPU."""

ProveRegion = Callable[[RegionCode, Extracted, ProofOptions], RegionFindings]
"""Executes a region's code beside what the region computes; it is given as it was at first."""


@dataclass(frozen=True, eq=False)
class Placement:
    """A graph's regions, the code of those on the NPU by their groups, and what was proved.

    tried  ways that gave no right code of a region, by its groups
    """

    partition: Partition
    code: dict[tuple[int, ...], RegionCode]
    proof: Proof = NOT_PROVED
    tried: dict[tuple[int, ...], tuple[Tried, ...]] = field(
        default_factory=dict[tuple[int, ...], tuple[Tried, ...]]
    )


@dataclass(frozen=True, eq=False)
class RegionMaker:
    """Makes the code of regions of a graph, and proves it."""

    graph: Graph
    compiler: RegionCompiler
    options: ProofOptions
    on_progress: ProgressCallback | None
    prove: ProveRegion = prove_region

    def made(self, groups: Sequence[int]) -> Made | RegionRefusal:
        """Return a region's code; where none is right, the group that is wrong is refused."""
        outcome = first_right(
            lambda: self._part(groups),
            self.compiler.ways,
            lambda code: self._findings(code, groups),
            self.on_progress,
        )
        return outcome if isinstance(outcome, Made) else self._refusal(outcome, groups)

    def _refusal(self, failed: Failed, groups: Sequence[int]) -> Made | RegionRefusal:
        if failed.findings is None or failed.code is None or failed.findings.wrong is None:
            assert failed.refusal is not None, "there is at least one way"
            return failed.refusal
        if self.options.allow_inexact:
            proof = replace(failed.findings.proof, differing=(f"region of group {groups[0]}",))
            return Made(failed.code, proof, failed.tried)
        wrong = failed.findings.wrong
        known = failed.findings.group
        if known is not None and known in groups:
            group, why = known, wrong
        else:
            group, why = self._first_wrong(groups, wrong) or (groups[-1], wrong)
        reason = _reason(why)
        return RegionRefusal({group: reason}, reason)

    def _part(self, groups: Sequence[int]) -> Extracted:
        return extract(self.graph, groups, self.graph.name)

    def _findings(self, code: RegionCode, groups: Sequence[int]) -> RegionFindings:
        if not self.options.inputs:
            return RegionFindings(NOT_PROVED)
        return self.prove(code, self._part(groups), self.options)

    def _first_wrong(self, groups: Sequence[int], wrong: Wrong) -> tuple[int, Wrong] | None:
        def attempt(units: Sequence[int]) -> Wrong | None:
            code = self.compiler.compile(self._part(units), self.on_progress)
            if isinstance(code, RegionRefusal):
                return None
            return self._findings(code, units).wrong

        order = in_order(self.graph, groups)
        search = RefusalSearch(order, attempt)
        return search.first(wrong)


def _reason(wrong: Wrong) -> Reason:
    if not isinstance(wrong, MizzenError):
        return wrong.reason("operator", PROOF)
    return Reason(
        RULE,
        f"the compiler's code for this operator cannot be executed: {wrong.diagnostic.message}",
        help="nothing needs doing if the CPU has time for it",
        source=PROOF,
    )


@dataclass(eq=False)
class _Search:
    """What is known after some tries."""

    maker: RegionMaker
    made: dict[tuple[int, ...], Made] = field(default_factory=dict[tuple[int, ...], Made])

    def compile(self, region: Region) -> RegionRefusal | None:
        """Compile a region unless that was done; return why it cannot be."""
        if region.groups in self.made:
            return None
        outcome = self.maker.made(region.groups)
        if isinstance(outcome, RegionRefusal):
            return outcome
        self.made[region.groups] = outcome
        return None

    def placement(self, placed: Partition) -> Placement:
        """Return what became of a partition whose regions were all compiled."""
        groups = [region.groups for region in placed.regions if region.device is Device.NPU]
        made = {each: self.made[each] for each in groups}
        return Placement(
            placed,
            {each: row.code for each, row in made.items()},
            joined([row.proof for row in made.values()]) if made else NOT_PROVED,
            {each: row.tried for each, row in made.items()},
        )

    def refusal(self, placed: Partition) -> RegionRefusal | None:
        """Compile the regions for the NPU up to the first that is refused."""
        for region in placed.regions:
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
    *,
    prove: ProveRegion = prove_region,
    work_per_byte: int = WORK_PER_BYTE,
) -> Placement:
    """Place the groups of a graph, and prove the code of every region.

    legal  what keeps an operation from the NPU, the compiler's own rules among it
    edge, work_per_byte  as for `partition`
    """
    search = _Search(RegionMaker(graph, compiler, proof, on_progress, prove))
    general: Reason | None = None

    def attempt(refused: dict[int, Reason]) -> Placement | Refused:
        nonlocal general
        placed = partition(graph, legal, edge=edge, refused=refused, work_per_byte=work_per_byte)
        unprofitable = compiler.unprofitable(placed)
        if unprofitable:
            general = next(iter(unprofitable.values()))
            return Refused(unprofitable)
        why = search.refusal(placed)
        if why is None:
            return search.placement(placed)
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
