"""Streams of U85 whose cycles and beats Arm's Corstone-320 model has counted, on five sizes.

Streams are what Vela 5.0.0 writes of two networks of Arm's ML Embedded Evaluation Kit, to
the word; timing needs no weights. `benchmarks/timing_u85.py` has four networks more, and where
the counts are from.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mizzen.targets.ethos_u.judge.timing import estimate
from mizzen.targets.ethos_u.machine.config import ACCELERATORS, EthosUConfiguration, Port
from mizzen.targets.ethos_u.machine.program import HardwareId, Program
from mizzen.targets.ethos_u.machine.system_config import resolve

STREAMS = Path(__file__).with_name("counted_streams.npz")
BEAT_BYTES = 16
SYSTEMS = {128: "Low", 256: "Low", 512: "Mid", 1024: "Mid", 2048: "High"}
COUNTED = {
    # cycles at work, beats read of SRAM, written to it, read of the external memory
    ("kws_micronet_m", 128): (368_696, 60_729, 23_431, 10_695),
    ("kws_micronet_m", 256): (198_564, 41_813, 23_431, 10_025),
    ("kws_micronet_m", 512): (113_986, 22_294, 17_505, 15_790),
    ("kws_micronet_m", 1024): (89_138, 22_664, 17_760, 15_815),
    ("kws_micronet_m", 2048): (66_777, 15_673, 15_673, 12_172),
    ("ad_medium_int8", 128): (730_426, 185_706, 57_342, 34_736),
    ("ad_medium_int8", 256): (376_021, 125_776, 56_614, 28_615),
    ("ad_medium_int8", 512): (234_552, 121_842, 56_522, 29_063),
    ("ad_medium_int8", 1024): (140_261, 70_538, 41_888, 44_084),
    ("ad_medium_int8", 2048): (109_653, 46_066, 41_658, 44_312),
}


def kit(macs: int) -> EthosUConfiguration:
    """Return the kit's memories: its timing adapter lets 7.5 or 12 bytes a cycle out of DRAM."""
    low = SYSTEMS[macs] == "Low"
    found = resolve(
        f"ethos-u85-{macs}",
        system_config=f"Ethos_U85_SYS_DRAM_{SYSTEMS[macs]}",
        memory_mode="Dedicated_Sram_384KB",
    )
    external = replace(
        found.system.axi1,
        ports=1,
        clock_scale=(2344 if low else 3750) / 5000,
        read_latency_cycles=250 if low else 500,
        write_latency_cycles=125 if low else 250,
    )
    return replace(found, system=replace(found.system, axi1=external))


def program(network: str, macs: int) -> Program:
    with np.load(STREAMS) as streams:
        words = streams[f"{network}.{macs}"]
    hardware = HardwareId(ACCELERATORS[f"ethos-u85-{macs}"].config_word, 0x1010_0000)
    return Program(words, hardware, {}, {}, (), ())


@pytest.mark.parametrize(("network", "macs"), COUNTED)
def test_cycles_and_beats_are_those_of_arms_model(network: str, macs: int) -> None:
    cycles, sram_reads, sram_writes, external_reads = COUNTED[network, macs]
    operations = estimate(program(network, macs), kit(macs))
    assert sum(row.cycles for row in operations) == pytest.approx(cycles, rel=0.06)
    uses = [use for row in operations for use in row.uses]
    sram = [use for use in uses if use.bus.port is Port.AXI0]
    external = [use for use in uses if use.bus.port is Port.AXI1]
    assert sum(use.written_bytes for use in sram) == sram_writes * BEAT_BYTES
    reads = sum(use.read_bytes for use in sram) / BEAT_BYTES
    assert reads == pytest.approx(sram_reads, rel=0 if network == "kws_micronet_m" else 0.006)
    # Rows of 10 bytes of the first map of kws_micronet_m lie across beats.
    reads = sum(use.read_bytes for use in external) / BEAT_BYTES
    assert reads == pytest.approx(
        external_reads, rel=0.05 if network == "kws_micronet_m" else 0.005
    )
