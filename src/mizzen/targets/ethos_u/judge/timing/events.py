"""What the NPU's counters would count of a stream, as far as an estimate knows it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from mizzen.targets.ethos_u.judge.timing.timeline import Timed
from mizzen.targets.ethos_u.machine.config import Port
from mizzen.targets.ethos_u.machine.counters import (
    CYCLE,
    DECODER_ACTIVE,
    FIRST_READ,
    FIRST_WRITTEN,
    MAC_ACTIVE,
    NPU_ACTIVE,
    OUTPUT_ACTIVE,
    SECOND_READ,
    SECOND_WRITTEN,
)

BEATS = {Port.AXI0: (FIRST_READ, FIRST_WRITTEN), Port.AXI1: (SECOND_READ, SECOND_WRITTEN)}
"""The events that count a port's beats, read and written."""


def events_of(timed: Sequence[Timed], beat_bytes: int) -> dict[int, int]:
    """Return what each event counts of a stream's operations, by the event's number.

    beat_bytes  width of a port; an event that an estimate knows nothing of is left out
    """
    total = round(sum(operation.cycles for operation in timed))
    stages = [operation.stages for operation in timed if operation.stages is not None]
    return {
        CYCLE: total,
        NPU_ACTIVE: total,
        MAC_ACTIVE: math.ceil(sum(each.mac_cycles for each in stages)),
        DECODER_ACTIVE: math.ceil(sum(each.decode_cycles for each in stages)),
        OUTPUT_ACTIVE: math.ceil(sum(each.output_cycles for each in stages)),
        **_beats(timed, beat_bytes),
    }


def _beats(timed: Sequence[Timed], beat_bytes: int) -> dict[int, int]:
    """Return the beats on each port, each reader and writer of an operation by itself."""
    beats: defaultdict[int, int] = defaultdict(int)
    for operation in timed:
        for use in operation.uses:
            read, written = BEATS[use.bus.port]
            beats[read] += math.ceil(use.read_bytes / beat_bytes)
            beats[written] += math.ceil(use.written_bytes / beat_bytes)
    return beats
