"""What each step has to wait for: as few waits as are right, each as weak as is right.

The front end starts steps in order. Two kernel operations or chains may be outstanding, and
one transfer on U55, two on U65, four on U85; one more makes the front end wait for the oldest.
Between the queues nothing is ordered but by KERNEL_WAIT and DMA_WAIT, within the kernel queue
BLOCKDEP decides.

Ref: Ethos-U55, U65 and U85 technical reference manuals (KERNEL_WAIT, DMA_WAIT, BLOCKDEP); Vela
5.2.0, architecture_features.py (outstanding operations).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mizzen.targets.ethos_u.generator.emit.overlap import GREATEST, greatest_overlap
from mizzen.targets.ethos_u.generator.emit.steps import Access, QueuedStep, Step, TransferStep
from mizzen.targets.ethos_u.machine.commands_values import Arch

OUTSTANDING_KERNELS = 2
OUTSTANDING_TRANSFERS = {Arch.U55: 1, Arch.U65: 2, Arch.U85: 4}


@dataclass(frozen=True, slots=True)
class Ordered:
    """A step, and what makes it wait.

    kernel_wait  kernel operations that may be outstanding when it starts; None for any
    dma_wait     transfers likewise
    blockdep     of a kernel operation
    """

    step: Step
    kernel_wait: int | None = None
    dma_wait: int | None = None
    blockdep: int = 0


def ordered(steps: Iterable[Step], arch: Arch) -> Iterator[Ordered]:
    """Return the steps with their waits."""
    kernels: list[QueuedStep] = []
    transfers: list[TransferStep] = []
    most, overlap = OUTSTANDING_TRANSFERS[arch], GREATEST[arch]
    is_first = True
    for step in steps:
        if isinstance(step, TransferStep):
            _finish(transfers, most - 1)
            kernel_wait, dma_wait = wait_for(kernels, step), wait_for(transfers, step)
            transfers.append(step)
            yield Ordered(step, kernel_wait, dma_wait)
            continue
        _finish(kernels, OUTSTANDING_KERNELS - 1)
        kernel_wait = _wait_for_streams(kernels, step)
        dma_wait = wait_for(transfers, step)
        blockdep = greatest_overlap(kernels[-1], step, overlap) if kernels else overlap
        kernels.append(step)
        yield Ordered(
            step=step,
            kernel_wait=kernel_wait,
            dma_wait=dma_wait,
            blockdep=0 if is_first else blockdep,
        )
        is_first = False


def wait_for(queue: list[QueuedStep] | list[TransferStep], step: Step) -> int | None:
    """Return how many may still be outstanding of a queue before a step; None for all of them."""
    for later, other in enumerate(reversed(queue)):
        if conflict(other, step):
            _finish(queue, later)
            return later
    return None


def _wait_for_streams(kernels: list[QueuedStep], step: QueuedStep) -> int | None:
    """Return 0 if an operation that may be outstanding writes streams that a step reads.

    BLOCKDEP orders feature maps; that it holds the reading of weights back too is nowhere said.
    """
    if not any(_share(other.writes, step.streams) for other in kernels):
        return None
    kernels.clear()
    return 0


def _finish(queue: list[QueuedStep] | list[TransferStep], outstanding: int) -> None:
    del queue[: max(0, len(queue) - outstanding)]


def conflict(first: Step, second: Step) -> bool:
    """Whether two steps must not be under way at the same time."""
    return (
        _share(first.writes, second.reads)
        or _share(first.reads, second.writes)
        or _share(first.writes, second.writes)
    )


def _share(ones: Sequence[Access], others: Sequence[Access]) -> bool:
    return any(
        region == place and bytes_.touches(touched)
        for region, bytes_ in ones
        for place, touched in others
    )
