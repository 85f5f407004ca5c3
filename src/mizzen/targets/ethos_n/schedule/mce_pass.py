"""Forming a pass of the compute engines from a chain of nodes, as long a one as possible.

With every node the plan is made anew, and what it allows of the layout decides whether the next one
fits. A pass that cannot be formed although there is work for the engines leaves a wish at the node
that stands in its way.

Ref: Ethos-N driver stack 23.02, the Support Library's `McePlePass`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.targets.ethos_n.commands_values import (
    Algorithm,
    Format,
    Location,
    MceOperation,
    Strategy,
)
from mizzen.targets.ethos_n.config import CompilationOptions
from mizzen.targets.ethos_n.lower.graph import Layout, Node, nearest
from mizzen.targets.ethos_n.lower.work import Extract, Mce
from mizzen.targets.ethos_n.schedule.attempt import Attempt, McePass
from mizzen.targets.ethos_n.schedule.fcaf import CELLS, consists_of_cells
from mizzen.targets.ethos_n.schedule.mce_chain import MAX_3X3, Chain
from mizzen.targets.ethos_n.schedule.mce_choice import algorithm_of, find_plan
from mizzen.targets.ethos_n.schedule.plan import McePlan
from mizzen.targets.ethos_n.tensors import Shape


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A pass that could be: the engine's node, the plan of all nodes, what follows from it.

    required  the layout that must be written, None if any may be
    """

    nodes: tuple[Node, ...]
    mce: Node
    ple: Node | None
    plan: McePlan
    location: Location
    required: Layout | None


def form_mce_pass(first: Node, attempt: Attempt, options: CompilationOptions) -> McePass | None:
    """Form the pass that begins at a node, and commit it; None if there is none."""
    chain, candidate = _longest(first, attempt, options)
    if chain.mce is None:
        return None
    algorithm = algorithm_of(chain.mce, options)
    if candidate is not None and candidate.required not in (None, candidate.nodes[-1].layout):
        candidate.nodes[-1].wishes.output_layout = candidate.required
        return None
    if candidate is None or len(candidate.nodes) < len(chain.nodes):
        _wish_room(chain, chain.mce, attempt, algorithm)
        return None
    if _wish_readable_input(candidate, attempt):
        return None
    made = McePass(candidate.nodes, candidate.mce, candidate.ple, candidate.plan, algorithm)
    output = candidate.plan.output
    attempt.commit(
        made,
        candidate.location,
        output.offset_bytes,
        output.bytes // attempt.capabilities.srams,
        _compression(candidate, options),
    )
    return made


def _longest(
    first: Node, attempt: Attempt, options: CompilationOptions
) -> tuple[Chain, _Candidate | None]:
    """Return the longest chain, and the longest part of it that there is a plan for."""
    chain = Chain()
    required: Layout | None = None
    candidate: _Candidate | None = None
    node: Node | None = first
    while node is not None and chain.take(node, required):
        required = None
        if chain.mce is not None:
            plan = find_plan(chain, chain.mce, attempt, options)
            if plan is not None:
                candidate = _candidate(chain, chain.mce, plan)
                required = candidate.required
        node = attempt.follower(node)
    return chain, candidate


def _candidate(chain: Chain, mce: Node, plan: McePlan) -> _Candidate:
    last = chain.nodes[-1]
    required: Layout | None = None
    stripe = plan.output.stripe
    if mce.doing(Mce).operation is MceOperation.FULLY_CONNECTED:
        # What the firmware writes of a matrix product is NHWC.
        required = Layout.NHWC
    elif stripe[3] < last.shape[3] or stripe[2] < last.shape[2]:
        # The firmware writes no NHWC of stripes that are not contiguous in it.
        required = Layout.NHWCB
    location = Location.DRAM
    whole = plan.strategy is Strategy.STRATEGY_3
    if whole and last.layout is Layout.NHWCB and not last.demands.dram:
        location, required = Location.SRAM, Layout.NHWCB
    return _Candidate(tuple(chain.nodes), mce, chain.ple, plan, location, required)


def _wish_room(chain: Chain, mce: Node, attempt: Attempt, algorithm: Algorithm) -> None:
    """Wish what may help where no strategy has room."""
    ple = chain.ple
    depthwise = mce.doing(Mce).operation is MceOperation.DEPTHWISE_CONVOLUTION
    if algorithm is Algorithm.WINOGRAD:
        mce.wishes.direct = True
    elif ple is not None and chain.kernel.kernel in MAX_3X3 and ple.source is mce and not depthwise:
        # The maximum cannot follow a strategy that cuts along W: it gets a stage of its own.
        ple.wishes.identity_before = True
    else:
        kept = nearest(mce, attempt.in_sram)
        if kept is not None:
            kept.wishes.dram = True


def _wish_readable_input(candidate: _Candidate, attempt: Attempt) -> bool:
    """Wish the input changed if its stripes cannot be read as it lies; say whether it is so."""
    source, stripe = candidate.nodes[0].source, candidate.plan.input.stripe
    if source.layout is Layout.NHWC and not _reads_nhwc(source.shape, stripe):
        source.wishes.output_layout = Layout.NHWCB
        return True
    offset = next(
        (node.work.offset for node in candidate.nodes if isinstance(node.work, Extract)), None
    )
    if offset is not None and attempt.in_sram(source):
        # A part is taken out of a map by the DMA, which the library does not see to.
        made = nearest(source, lambda node: attempt.of(node).made_by is not None)
        assert made is not None, "what is in SRAM was left there by a pass"
        made.wishes.dram = True
        return True
    compression = attempt.of(source).compression
    if compression is None:
        return False
    cut_at = (stripe[1:],) if offset is None else (stripe[1:], offset[1:])
    if not all(consists_of_cells(compression, extents) for extents in cut_at):
        source.wishes.uncompressed = True
        return True
    return False


def _reads_nhwc(shape: Shape, stripe: Shape) -> bool:
    """Say whether the firmware can read such stripes of NHWC: all channels, not cut both ways."""
    cut_both_ways = stripe[1] < shape[1] and stripe[2] < shape[2]
    return stripe[3] >= shape[3] and not cut_both_ways


def _compression(candidate: _Candidate, options: CompilationOptions) -> Format | None:
    """Return the compressed format that the output can have in DRAM, if it may be compressed."""
    last = candidate.nodes[-1]
    allowed = options.intermediate_compression and not last.demands.uncompressed
    if not allowed or last.layout is not Layout.NHWCB or candidate.location is Location.SRAM:
        return None
    extents = candidate.plan.output.stripe[1:]
    return next((format for format in CELLS if consists_of_cells(format, extents)), None)
