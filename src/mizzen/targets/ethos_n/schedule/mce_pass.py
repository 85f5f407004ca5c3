"""Forming a pass of the compute engines from a chain of nodes, as long a one as possible.

A chain is, in order: changes of layout and at most one extraction; the work of the compute engines;
clamps; at most one kernel of the programmable layer engine; requantisations, changes of layout and
copies. With every node the plan (algorithm, strategy, block, places) is made anew, and what it
allows of the layout decides whether the next one fits. A pass that cannot be formed although there
is work for the engines leaves a wish at the node that stands in its way.

Ref: Ethos-N driver stack 23.02, the Support Library's `McePlePass`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from mizzen.targets.ethos_n.commands_values import (
    Algorithm,
    Format,
    Location,
    MceOperation,
    PleOperation,
    Strategy,
    Upsample,
)
from mizzen.targets.ethos_n.config import BLOCK_CONFIGS, Capabilities, CompilationOptions
from mizzen.targets.ethos_n.lower.work_graph import (
    Clamp,
    Copy,
    Extract,
    FusedPle,
    Layout,
    Mce,
    Node,
    Relayout,
    Requantization,
    nearest,
)
from mizzen.targets.ethos_n.schedule.attempt import (
    CELLS,
    Attempt,
    Holes,
    McePass,
    McePlan,
    consists_of_cells,
    divide_up,
    round_up,
)
from mizzen.targets.ethos_n.schedule.strategies import choose_strategy, stream_channels
from mizzen.targets.ethos_n.schedule.stripes import Stage, usable_blocks
from mizzen.targets.ethos_n.tensors import Shape

MAX_3X3 = frozenset({PleOperation.MAXPOOL_3X3_2_2_EVEN, PleOperation.MAXPOOL_3X3_2_2_ODD})
KEEPS_NUMBERS = frozenset(
    {
        PleOperation.DOWNSAMPLE_2X2,
        PleOperation.INTERLEAVE_2X2_2_2,
        PleOperation.MAXPOOL_2X2_2_2,
        PleOperation.MEAN_XY_7X7,
        PleOperation.MEAN_XY_8X8,
        PleOperation.PASSTHROUGH,
        *MAX_3X3,
    }
)
"""Kernels that a requantisation may go before: they know nothing of the quantisation."""
PASSTHROUGH = FusedPle(PleOperation.PASSTHROUGH)


@dataclass(slots=True)
class Chain:
    """The nodes so far; `mce` and `ple` are those of the two engines, None before they come."""

    nodes: list[Node] = field(default_factory=list[Node])
    mce: Node | None = None
    ple: Node | None = None
    extracts: bool = False
    relayouts: bool = False
    requantizes: bool = False

    @property
    def kernel(self) -> FusedPle:
        """What the programmable layer engine does."""
        return PASSTHROUGH if self.ple is None else self.ple.doing(FusedPle)

    def take(self, node: Node, required: Layout | None) -> bool:
        """Add a node if it fits; `required` is the layout that the pass must write."""
        if not (self._take_before(node) if self.mce is None else self._take_behind(node, required)):
            return False
        self.nodes.append(node)
        return True

    def _take_before(self, node: Node) -> bool:
        match node.work:
            case Relayout():
                return True
            case Extract():
                fits, self.extracts = not self.extracts, True
                return fits
            case Mce():
                self.mce = node
                return True
            case _:
                return False

    def _take_behind(self, node: Node, required: Layout | None) -> bool:
        open_for_ple = self.ple is None and not self.relayouts
        match node.work:
            case Clamp():
                return open_for_ple and not self.requantizes
            case FusedPle():
                if open_for_ple:
                    self.ple = node
                return open_for_ple
            case Requantization():
                fits = self.kernel.kernel in KEEPS_NUMBERS
                self.requantizes |= fits
                return fits
            case Relayout():
                fits = required is None or node.layout is required
                self.relayouts |= fits
                return fits
            case Copy():
                return True
            case _:
                return False


WIDE_KERNEL = 3
"""Extent of the parts that wide kernels, and all of Winograd's, are divided into."""
LARGEST_KERNEL = 7
"""A kernel that exceeds this along an axis is wide."""
MULTIPLICATIONS = 16
"""Of Winograd's for an output block: 2 x 2, or 2 x 4 with a kernel of one row or column."""


def best_algorithm(height: int, width: int) -> Algorithm:
    """Return the algorithm of fewer multiplications for a kernel; the direct one if equal."""
    elements = 8 if min(height, width) == 1 else 4
    parts = divide_up(height, WIDE_KERNEL) * divide_up(width, WIDE_KERNEL)
    fewer = MULTIPLICATIONS * parts < elements * height * width
    return Algorithm.WINOGRAD if fewer else Algorithm.DIRECT


def covered_kernel(weights: Shape, algorithm: Algorithm) -> Shape:
    """Return weights' shape with the planes that engines compute: whole parts of wide kernels."""
    height, width, inputs, outputs = weights
    if algorithm is Algorithm.WINOGRAD or max(height, width) > LARGEST_KERNEL:
        height, width = (
            extent if extent == 1 else round_up(extent, WIDE_KERNEL) for extent in (height, width)
        )
    return height, width, inputs, outputs


CUT_ALONG_WIDTH = frozenset({Strategy.STRATEGY_4, Strategy.STRATEGY_6})
"""Strategies that 3x3 maxima cannot follow: they need the rows of a plane one after the other."""


def algorithm_of(mce: Node, options: CompilationOptions) -> Algorithm:
    """Return the algorithm that a node's convolution is to be computed with."""
    work = mce.doing(Mce)
    plain = work.stride.x == 1 and work.stride.y == 1 and work.upsample is Upsample.OFF
    allowed = options.winograd and not mce.demands.direct
    if allowed and plain and work.operation is MceOperation.CONVOLUTION:
        return best_algorithm(*work.weights.shape[:2])
    return Algorithm.DIRECT


def find_plan(
    chain: Chain, mce: Node, attempt: Attempt, options: CompilationOptions
) -> McePlan | None:
    """Return the plan of a chain whose work of the compute engines is in `mce`, if there is one."""
    work, source = mce.doing(Mce), chain.nodes[0].source
    algorithm = algorithm_of(mce, options)
    ple = chain.kernel.kernel
    stage = Stage(
        operation=work.operation,
        input=mce.source.shape,
        mce_output=mce.shape,
        output=chain.nodes[-1].shape,
        kernel=covered_kernel(work.weights.shape, algorithm),
        weight_format=work.weights.format,
        mce_ratio=work.ratio,
        ple_ratio=chain.kernel.ratio,
        upsample=work.upsample,
        pad_top=work.pad_top,
        pad_left=work.pad_left,
        input_offset_bytes=(
            attempt.of(source).sram_offset_bytes if attempt.in_sram(source) else None
        ),
        deepest_stripe=_deepest_stripe(ple, work.operation, attempt.capabilities),
    )
    kernel = work.weights.shape[:2]
    holes, capabilities = attempt.sram.holes, attempt.capabilities
    return _plan(stage, kernel, algorithm, ple, options, holes, capabilities)


def _deepest_stripe(
    ple: PleOperation, operation: MceOperation, capabilities: Capabilities
) -> int | None:
    """Return how many channels a 3x3 maximum can buffer the neighbouring stripes' rows of."""
    if ple not in MAX_3X3:
        return None
    depthwise = operation is MceOperation.DEPTHWISE_CONVOLUTION
    return capabilities.srams if depthwise else capabilities.ogs


@lru_cache(maxsize=1024)
def _plan(
    stage: Stage,
    kernel: tuple[int, int],
    algorithm: Algorithm,
    ple: PleOperation,
    options: CompilationOptions,
    holes: Holes,
    capabilities: Capabilities,
) -> McePlan | None:
    """Choose strategy, block and places; the same is asked whenever a chain grows by a node.

    kernel  height and width of the weights themselves
    """
    strategies = options.strategies - (CUT_ALONG_WIDTH if ple in MAX_3X3 else frozenset())
    allowed = [block for block in BLOCK_CONFIGS if block in options.block_configs]
    blocks = usable_blocks(allowed, stage.operation, kernel, algorithm, ple, capabilities)
    if stage.operation is MceOperation.FULLY_CONNECTED:
        return stream_channels(stage, blocks, holes, capabilities)
    plan = choose_strategy(stage, strategies, blocks, holes, capabilities)
    streams = stage.operation is MceOperation.CONVOLUTION and algorithm is Algorithm.DIRECT
    if plan is None and streams and Strategy.STRATEGY_7 in strategies:
        return stream_channels(stage, blocks, holes, capabilities)
    return plan


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
    """Form the pass that begins at a node, and commit it; None if there is not one."""
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
