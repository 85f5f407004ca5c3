"""Numbers that no manual gives: what the generator tries, and what it takes for worth the cost.

Each stands here with its unit in brackets, its meaning, and the figures of
`benchmarks/generator.py` by which a change of it is judged. Facts about machines are not here: they
are in `machine`, or at the code that needs them, with their source.
"""

from __future__ import annotations

from dataclasses import dataclass

# Arranging

LEAST_GAIN = 0.002
"""[share of the cycles of a sequence] What a rewrite must save: less is within what estimates leave
out. One by which an operation goes away may save anything, since what estimates leave out goes with
it. Judged by `u55_128_cycles_ratio`, `u55_256_cycles_ratio`."""
ARRANGING_ROUNDS = 2
"""[rounds] How often exchanges of height and width, and other rewrites, are decided in turn: each
decides what the other saves. Judged by `u55_128_cycles_ratio`, `seconds_mobilenet_v2`."""
MOST_COLUMN_OPERATIONS = 12
"""[operations] Of a convolution whose columns are read as channels: what each costs besides its
multiplications outweighs more of them. Judged by `u55_256_cycles_ratio`."""
MOST_GATHERING_WEIGHTS = 1 << 13
"""[weights] Of a convolution that gathers windows: nearly all are zeros, which take a fraction of a
bit each. Judged by `kws_u55_128`, `sram_ratio`."""
POOL_COLUMNS = (2, 4, 8)
"""[columns] Into which the channels of a pool are divided. Judged by `u55_128_cycles_ratio`."""
VIEW_WIDTHS = (16, 32, 64)
"""[columns] Of 1x1 convolutions and elementwise operations, besides one row. Judged by
`u55_256_cycles_ratio`, `u65_512_cycles_ratio`."""

# What blocks and encodings cost

EXPOSED_FILLING = 0.5
"""[share of cycles] Of the time in which an operation fills and drains, what its neighbours do not
hide. Judged by `steady_gap`."""
FAST_GAIN = 0.01
"""[share of the cycles of an operation] What U85 must save by weights that it decodes fast: less is
within what estimates leave out. Judged by `flash_ratio`."""
FAST_BYTES_PER_CYCLE = 16
"""[bytes] By which constants may grow for each cycle that decoding them fast saves: at 8, dense
layers of 512 MACs stay slow; at 32, those of 256 grow for nearly nothing. Judged by
`flash_ratio`."""
SIMULATED_BLOCKS = 48
"""[blocks] Best by Vela's formula, of which the order of events is computed too. Judged by
`u55_128_cycles_ratio`, `seconds_mobilenet_v2`."""
HIDDEN_TRAFFIC_WEIGHT = 1e-3
"""[cycles a cycle] What a cycle of a bus counts that computation hides: of equal blocks the one
that moves less is taken. Judged by `u65_512_cycles_ratio`."""
ENCODED_WEIGHT_BYTES = 0.8
"""[bytes a weight] In a stream, about: to encode each variant of an operation would take long.
Judged by `u55_128_cycles_ratio`."""

# Layouts, and tensors where memory is short

LAYOUT_PASSES = 2
"""[passes] Over all tensors, in which layouts may change. Judged by `u55_128_cycles_ratio`."""
TENSOR_BYTE_CYCLES = (0.0, 0.1, 1.0, 100.0)
"""[cycles a byte] Price of a tensor's bytes, tried in turn until all tensors fit. Judged by
`sram_ratio`."""
TENSOR_PLACEMENT_STATES = 600
"""[states] Of the exact search for places of tensors alone, which is done often. Judged by
`placement_gap`, `seconds_mobilenet_v2`."""
NEGLIGIBLE_SLOWDOWN = 1.002
"""[ratio of cycles] Within a limit of memory over without, up to which nothing is done for it.
Judged by `u55_128_cycles_ratio`."""

# Constants that are fetched

RESIDENT_BYTE_CYCLES = 0.05
"""[cycles a byte and unit] Price of a byte of a blob that is in memory for one unit longer. Judged
by `u55_128_cycles_ratio`, `sram_ratio`."""
ROOM_SHARES = (1.0, 0.94, 0.87, 0.78, 0.6)
"""[share of the limit] Memory that plans may use, tried in turn until all that is staged has a
place; before them all of it, with bytes that cost nothing. Judged by `u55_128_cycles_ratio`."""
RETRIED_SHARES = (1.0, 0.97, 0.94)
"""[share of the room] What a plan that has no place may use once more. Judged by
`u55_128_cycles_ratio`."""
ESTIMATED_EXCESS = 1.03
"""[ratio of bytes] What all may take over the limit by estimated sizes of blobs, which are up to so
much shorter once they are encoded. Judged by `u55_128_cycles_ratio`, `seconds_mobilenet_v2`."""
CHANNEL_PARTS = (1, 2, 3, 4)
"""[parts] Into which the channels of an operation are divided. Judged by `u65_512_cycles_ratio`."""
SLICE_BYTES = (4096, 8192, 16384, 32768)
"""[bytes] Length from which blobs are divided to begin with, each in turn. Judged by
`u55_128_cycles_ratio`."""
LEAST_LOSS_CYCLES = 100.0
"""[cycles] What an operation must lose by its constants, by both models together, to be divided in
another way. Judged by `u55_128_cycles_ratio`, `seconds_kws`."""
LEAST_PIECE_BYTES = 256
"""[bytes] Of a piece of a blob: a shorter one is not worth its latency. Judged by
`u55_256_cycles_ratio`."""
FARTHEST = 1 << 16
"""[units] A reach beyond all of them. Judged by `u55_128_cycles_ratio`."""
REACHES = (1, 2, 3, 5, 9, FARTHEST)
"""[units] Before its own beside which the transfer of a blob may begin. Judged by
`u55_128_cycles_ratio`, `sram_ratio`."""
TABLE_LOOK_BACK_STEPS = 2
"""[steps] By which the load of a lookup table is moved to the front. The front end is that far
ahead anyway; further away, a load takes a bus from operations that need it, and what it gained on
some networks was lost on others. Judged by `kws_u55_128`, `u55_128_cycles_ratio`."""


@dataclass(frozen=True, slots=True)
class Work:
    """How much is tried to schedule a sequence.

    starts       plans that are refined, for each size of memory
    steps        units that all plans for one of them may have
    placements   plans for which all is placed together, the best first, for each size of memory
    states       of the exact search for places
    many_states  of it, where there are more than `MANY_BLOCKS`
    rooms        sizes of memory: share of the limit, and cycles that a byte costs
    shares       as `RETRIED_SHARES`
    """

    starts: int
    steps: int
    placements: int
    states: int = 200_000
    many_states: int = 15_000
    rooms: tuple[tuple[float, float], ...] = (
        (1.0, 0.0),
        *((share, RESIDENT_BYTE_CYCLES) for share in ROOM_SHARES),
    )
    shares: tuple[float, ...] = RETRIED_SHARES


MANY_BLOCKS = 150
"""[blocks] More than these, and the exact search for places sees fewer states, since each takes
longer. Judged by `placement_gap`, `seconds_mobilenet_v2`."""
QUICK = Work(
    starts=1,
    steps=8_000,
    placements=1,
    states=10_000,
    many_states=5_000,
    rooms=((1.0, RESIDENT_BYTE_CYCLES), (0.87, RESIDENT_BYTE_CYCLES)),
    shares=(1.0,),
)
"""[plans, units, states] Enough to tell how much memory a sequence takes. Judged by `sram_ratio`,
`seconds_mobilenet_v2`."""
FAST = Work(starts=2, steps=40_000, placements=1)
"""[plans, units, states] The usual. Judged by `u55_128_cycles_ratio`, `seconds_mobilenet_v2`."""
THOROUGH = Work(starts=5, steps=40_000, placements=2)
"""[plans, units, states] For the best sequences of a long search. Judged by
`u55_128_cycles_ratio`."""
