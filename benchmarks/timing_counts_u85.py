"""Cycles and beats of Ethos-U85 that Arm's Corstone-320 model counts, by network and size.

Networks are of Arm's ML Embedded Evaluation Kit, programs of Vela 5.0.0 with the kit's `vela.ini`
in `Dedicated_Sram`, `--optimise Performance`. The counts were made by others, with the kit at
26.03-8-gb2c0bb2, core driver 25.11 and Fast Models 11.27.25, twice each with equal outcome.

Ref: Kwon-GiHwan/mps4_prototyping_board at 5e719e16, docs/paper/raw_data_report:
remeasure/R1_MEMORY_COUNTERS.csv (counts), SERVER_VERIFICATION.md (adapters of the memories), and
docs/paper/analysis/board_rq3/canonical_board_cost.csv (medians of three on an MPS4 FPGA).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Count:
    """A row: beats are of 16 bytes.

    active    cycles that the NPU is at work; the model's totals come in steps of 1,000
    program   the first digits of the SHA-256 of what Vela 5.0.0 writes
    board     cycles in all on an FPGA with a U85-1024, of the same program; 0 for other sizes
    """

    network: str
    macs: int
    active: int
    sram_reads: int
    sram_writes: int
    external_reads: int
    external_writes: int
    program: str
    board: int = 0

    @property
    def reads(self) -> int:
        """Beats read of both memories."""
        return self.sram_reads + self.external_reads

    @property
    def writes(self) -> int:
        """Beats written of both."""
        return self.sram_writes + self.external_writes


_SIZES: dict[str, tuple[tuple[int | str, ...], ...]] = {
    # MACs, active, SRAM reads, writes, external reads, writes, program, board
    "rnnoise_INT8": (
        (128, 35_248, 143, 135, 7_650, 36, "a4129017"),
        (256, 35_206, 143, 135, 7_650, 36, "8f342f54"),
        (512, 54_330, 143, 135, 7_683, 36, "12087f72"),
        (1024, 48_560, 143, 135, 7_838, 36, "5bc1ee08", 55_149),
        (2048, 53_012, 143, 135, 8_213, 36, "0cb89bfa"),
    ),
    "kws_micronet_m": (
        (128, 368_696, 60_729, 23_431, 10_695, 1, "0cbdc135"),
        (256, 198_564, 41_813, 23_431, 10_025, 1, "7d1431a8"),
        (512, 113_986, 22_294, 17_505, 15_790, 1, "af461b1e"),
        (1024, 89_138, 22_664, 17_760, 15_815, 1, "f9575c36", 97_362),
        (2048, 66_777, 15_673, 15_673, 12_172, 1, "ad756be0"),
    ),
    "ad_medium_int8": (
        (128, 730_426, 185_706, 57_342, 34_736, 1, "ab971c1f"),
        (256, 376_021, 125_776, 56_614, 28_615, 1, "ceb93f00"),
        (512, 234_552, 121_842, 56_522, 29_063, 1, "9fa6d6e7"),
        (1024, 140_261, 70_538, 41_888, 44_084, 1, "b83f28f2", 151_918),
        (2048, 109_653, 46_066, 41_658, 44_312, 1, "5d6b0526"),
    ),
    "vww4_128_128_INT8": (
        (128, 510_010, 88_425, 60_555, 33_443, 1, "d18367b2"),
        (256, 286_067, 80_960, 63_695, 23_346, 1, "869a0c6b"),
        (512, 258_022, 70_222, 59_634, 24_344, 1, "e3c387fd"),
        (1024, 229_082, 69_326, 60_045, 23_761, 1, "637711c9", 239_394),
        (2048, 213_586, 63_743, 58_808, 24_283, 1, "c0b82d4d"),
    ),
    "yolo-fastest_192_face_v4": (
        (128, 1_526_850, 326_884, 190_230, 41_734, 517, "647d7e53"),
        (256, 811_264, 262_176, 190_232, 28_068, 517, "aec60a68"),
        (512, 586_275, 238_513, 187_371, 33_033, 517, "8b2f4e1e"),
        (1024, 438_859, 236_070, 188_708, 29_347, 517, "aa143485", 453_389),
        (2048, 354_800, 210_219, 184_324, 29_618, 517, "b612256a"),
    ),
    "mobilenet_v2_1.0_224_INT8": (
        (128, 5_078_222, 1_119_525, 411_979, 392_911, 47_887, "a414a3ea"),
        (256, 2_873_773, 949_044, 412_706, 289_041, 47_887, "0c703827"),
        (512, 1_913_404, 693_520, 404_766, 297_599, 47_887, "38823b6d"),
        (1024, 1_405_529, 672_948, 401_443, 301_217, 47_887, "031fade0", 1_453_996),
        (2048, 1_066_245, 499_795, 379_275, 305_342, 47_887, "5666f10f"),
    ),
}  # fmt: skip

COUNTS = tuple(
    Count(network, *size)  # pyright: ignore[reportArgumentType]
    for network, sizes in _SIZES.items()
    for size in sizes
)


@dataclass(frozen=True, slots=True)
class Kit:
    """A row: what the kit compiles for, and the timing adapters that its memories are behind.

    dram_scale, dram_ports, sram_ports, core_clock  of the system that Vela reckons with
    sram_latency     in cycles, of reads and writes
    external_read_latency, external_write_latency  in cycles; Vela reckons with 500 and 250
    words            of 16 bytes that the external memory lets through in 5,000 cycles
    outstanding      reads; writes are half of it
    """

    system: str
    core_clock: str
    sram_ports: int
    dram_scale: float
    dram_ports: int
    sram_latency: int
    external_read_latency: int
    external_write_latency: int
    words: int
    outstanding: int


_LOW = Kit("Ethos_U85_SYS_DRAM_Low", "500e6", 2, 0.46875, 1, 16, 250, 125, 2344, 24)

KITS: dict[int, Kit] = {
    128: _LOW,
    256: _LOW,
    512: Kit("Ethos_U85_SYS_DRAM_Mid_512", "1e9", 2, 0.75, 1, 32, 500, 250, 3750, 64),
    1024: Kit("Ethos_U85_SYS_DRAM_Mid_1024", "1e9", 2, 0.75, 2, 32, 500, 250, 3750, 64),
    2048: Kit("Ethos_U85_SYS_DRAM_High_2048", "1e9", 4, 0.75, 2, 32, 500, 250, 3750, 64),
}
"""By MACs."""
PULSE_CYCLES = 5000
WORD_BYTES = 16

MODE = """[Memory_Mode.Dedicated_Sram]
const_mem_area=Axi1
arena_mem_area=Axi1
cache_mem_area=Axi0
arena_cache_size=393216
"""


def vela_ini() -> str:
    """Return the kit's `vela.ini`, as far as it is of U85."""
    sections = {kit.system: _section(kit) for kit in KITS.values()}
    return "\n".join([*sections.values(), MODE])


def _section(kit: Kit) -> str:
    return f"""[System_Config.{kit.system}]
core_clock={kit.core_clock}
axi0_port=Sram
axi1_port=Dram
Sram_clock_scale=1.0
Sram_ports_used={kit.sram_ports}
Sram_burst_length=64
Sram_read_latency={kit.sram_latency}
Sram_write_latency={kit.sram_latency}
Sram_max_reads=8
Sram_max_writes=8
Dram_clock_scale={kit.dram_scale}
Dram_ports_used={kit.dram_ports}
Dram_burst_length=128
Dram_read_latency=500
Dram_write_latency=250
Dram_max_reads={kit.outstanding}
Dram_max_writes={kit.outstanding // 2}
"""
