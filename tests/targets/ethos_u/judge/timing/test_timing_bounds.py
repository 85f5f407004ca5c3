"""Streams worked out by hand, one for each thing that an operation can be waited for.

On U55-128 a microblock is 1 x 2 x 8. The array steps through it in 4 cycles for 32 input channels
or 4 kernel elements; the decoder gives 8 weights a cycle; most results take half a cycle each.
"""

from __future__ import annotations

import pytest

from mizzen.targets.ethos_u.judge.timing import Cause, Held

from .timed_kernels import FAST, Kernels, causes, ideal, system, timed

U55 = "ethos-u55-128"


def test_mac() -> None:
    """8 x 16 x 16 outputs of 128 channels: 64 x 2 microblocks, 4 slabs of 32 channels, 4 cycles."""
    maker = Kernels(U55)
    maker.convolution((8, 16, 16), 128)
    (row,) = timed(maker, ideal(U55))
    assert row.stages is not None
    assert row.stages.main_cycles == 64 * 2 * 4 * 4 == 8 * 16 * 16 * 128 / 128
    assert causes([row])[Cause.MAC] == 2048
    assert Cause.ROUNDING not in causes([row])


def test_rounding() -> None:
    """A depthwise 3 x 3: 9 elements take 3 steps of 4, one input channel for each output."""
    maker = Kernels(U55)
    maker.convolution((8, 16, 16), 16, kernel=(3, 3), depthwise=True)
    (row,) = timed(maker, ideal(U55))
    assert row.stages is not None
    assert row.stages.main_cycles == 64 * 2 * 4 * 3
    assert causes([row])[Cause.MAC] == 8 * 16 * 16 * 9 / 128
    assert causes([row])[Cause.ROUNDING] == 1536 - 144


def test_weights() -> None:
    """1 x 2 outputs of 512 channels: 16 slabs of 8 x 32 weights for each of 8 depths, 8 a cycle."""
    maker = Kernels(U55)
    maker.convolution((1, 2, 64), 512)
    (row,) = timed(maker, ideal(U55))
    assert row.stages is not None
    assert row.stages.main_cycles == 16 * 8 * 8 * 32 / 8
    assert causes([row])[Cause.WEIGHTS] == 4096


def test_output() -> None:
    """8 x 16 x 16 outputs of 32 channels are computed in 512 cycles, and given away in 1,024."""
    maker = Kernels(U55)
    maker.convolution((8, 16, 16), 32)
    (row,) = timed(maker, ideal(U55))
    assert causes([row])[Cause.OUTPUT] == 8 * 16 * 16 / 2


@pytest.mark.parametrize(("scale_mode", "cycles"), [(0, 1.0), (1, 1.5)])
def test_additions_take_longer_where_an_operand_is_scaled_in_32_bits(
    scale_mode: int, cycles: float
) -> None:
    maker = Kernels(U55)
    maker.sum((8, 16, 16), scale_mode=scale_mode)
    (row,) = timed(maker, ideal(U55))
    assert causes([row])[Cause.OUTPUT] == cycles * 8 * 16 * 16


def test_memory_of_feature_maps() -> None:
    """A copy of 2,048 bytes and back, one byte a cycle; the array would need 2,048 cycles."""
    maker = Kernels(U55)
    maker.copy(0, 0x800, (8, 16, 16))
    slow = {**FAST, "clock_scale": 1 / 8}
    (row,) = timed(maker, system(U55, slow, FAST))
    assert row.stages is not None
    assert row.stages.main_cycles == 4096
    assert causes([row])[Cause.MEMORY] == 4096


def test_memory_of_constants() -> None:
    """512 bytes of weights and 16 of scales for each of 4 blocks of rows, half a byte a cycle."""
    maker = Kernels(U55)
    maker.convolution((8, 16, 16), 128, block=(2, 16, 16), weights=512)
    slow = {**FAST, "clock_scale": 1 / 16}
    (row,) = timed(maker, system(U55, FAST, slow))
    assert row.stages is not None
    assert row.stages.main_cycles == 4 * (512 + 16) / 0.5


def test_waiting() -> None:
    """With BLOCKDEP 0 an input is asked for when the results before it are written."""

    def second(blockdep: int) -> dict[Cause, int]:
        maker = Kernels(U55)
        maker.convolution((8, 16, 16), 128)
        maker.convolution((8, 16, 16), 128, blockdep=blockdep)
        far = {**FAST, "read_latency_cycles": 100, "write_latency_cycles": 70}
        return causes(timed(maker, system(U55, far, FAST))[1:])

    assert Cause.WAITING not in second(3)
    assert second(0)[Cause.WAITING] == pytest.approx(100 + 70 + 1024, abs=8)
    assert second(0)[Cause.MAC] == second(3)[Cause.MAC] == 2048


def test_fill() -> None:
    """One operation alone: its input's latency, then after the array its output and its writing."""
    maker = Kernels(U55)
    maker.convolution((8, 16, 16), 128)
    far = {**FAST, "read_latency_cycles": 500, "write_latency_cycles": 250}
    (row,) = timed(maker, system(U55, far, FAST))
    assert causes([row])[Cause.MAC] == 2048
    front = row.work.command_bytes / 4
    assert causes([row])[Cause.FILL] == pytest.approx(front + 500 + 1024 + 250, abs=8)


def test_a_transfer() -> None:
    """1,024 bytes out of flash, one a cycle after 64 of latency, are waited for."""
    maker = Kernels(U55)
    maker.dma(0, 0x100, 1024, source_region=0)
    maker.add("OP_DMA_WAIT", k=0)
    flash = {"clock_scale": 1 / 8, "read_latency_cycles": 64}
    (row,) = timed(maker, system(U55, FAST, flash))
    assert row.end - row.start == 64 + 1024
    assert row.start == 64 + row.work.command_bytes, "which come from there too"
    assert causes([row]) == {Cause.MEMORY: round(row.end)}


def test_a_transfer_hides_behind_a_kernel() -> None:
    """The kernel needs the bus for about half of its time, so that both have room."""
    maker = Kernels(U55)
    maker.dma(0, 0x100, 12000)
    maker.convolution((8, 16, 16), 128, region=1)
    maker.add("OP_DMA_WAIT", k=0)
    transfer, kernel = timed(maker, system(U55, {**FAST, "clock_scale": 2.3}, FAST))
    assert transfer.end - transfer.start == pytest.approx(2 * 12000 / (2.3 * 8))
    assert transfer.end < kernel.end
    assert transfer.cycles == 0


@pytest.mark.parametrize("waits", [False, True])
def test_a_transfer_lengthens_a_kernel_whose_bus_it_needs(*, waits: bool) -> None:
    """A copy that the bus decides on gets longer by what a transfer beside it moves."""
    maker = Kernels(U55)
    maker.dma(0, 0x100, 1000)
    if waits:
        maker.add("OP_DMA_WAIT", k=0)
    maker.copy(0, 0x800, (8, 16, 16))
    _, kernel = timed(maker, system(U55, {**FAST, "clock_scale": 1 / 8}, FAST))
    assert kernel.stages is not None
    assert kernel.stages.main_cycles == 4096 + (0 if waits else 2000)


def test_commands_come_over_the_port_of_the_constants() -> None:
    """Between two operations that read weights, what the second's commands take is left out."""
    maker = Kernels(U55)
    for _ in range(2):
        maker.convolution((8, 16, 16), 128, block=(2, 16, 16), weights=512, blockdep=3)
    slow = {**FAST, "clock_scale": 1 / 16}
    first, second = timed(maker, system(U55, FAST, slow))
    assert second.end - first.end == (4 * (512 + 16) + second.work.command_bytes) / 0.5


def test_small_kernels_wait_for_their_pipeline() -> None:
    """A microblock alone waits 2 cycles for each product, 3 with accumulators of 40 bits."""
    for wide, pause in ((False, 2), (True, 3)):
        maker = Kernels(U55)
        maker.convolution((1, 2, 8), 32, kernel=(8, 8), wide=wide)
        (row,) = timed(maker, ideal(U55))
        assert row.stages is not None
        assert row.stages.main_cycles == max(64 * 32, 64 * (4 + pause))


def test_two_cores_divide_channels() -> None:
    """U65-512 has two cores of 256 MACs, and each takes every other channel."""
    cycles: list[float] = []
    for name in ("ethos-u65-256", "ethos-u65-512"):
        maker = Kernels(name)
        maker.convolution((8, 16, 32), 256, block=(8, 16, 32))
        (row,) = timed(maker, ideal(name))
        assert row.stages is not None
        cycles.append(row.stages.main_cycles)
    assert cycles == [4096, 2048]


@pytest.mark.parametrize(
    ("kernel", "cycles"), [((3, 3), 9), ((1, 1), 2), ((1, 6), 7), ((5, 5), 25), ((2, 4), 8)]
)
def test_u85_steps_through_rounds_of_5(kernel: tuple[int, int], cycles: int) -> None:
    """16 channels are 2 groups of 8; a microblock of U85-256 is 2 x 2 x 8."""
    maker = Kernels("ethos-u85-256")
    maker.convolution((16, 16, 8), 16, kernel=kernel, part=True, microblock=3)
    (row,) = timed(maker, ideal("ethos-u85-256"))
    assert row.stages is not None
    assert row.stages.mac_cycles == 64 * 2 * cycles


def test_u85_steps_through_the_channels_that_there_are() -> None:
    """Depth first, in groups of 8; weights are decoded for whole slabs of 64."""
    macs: list[float] = []
    decoded: list[float] = []
    for channels in (3, 16, 64, 65):
        maker = Kernels("ethos-u85-256")
        maker.convolution((16, 16, 8), channels, kernel=(3, 3), microblock=3, weights=9 * 8 * 128)
        (row,) = timed(maker, ideal("ethos-u85-256"))
        assert row.stages is not None
        macs.append(row.stages.mac_cycles)
        decoded.append(row.stages.decode_cycles)
    assert macs == [64 * 9 * groups for groups in (1, 2, 8, 9)]
    assert decoded == pytest.approx([64 * 9 * slabs for slabs in (1, 1, 1, 2)])


def test_u85_steps_kernel_first_through_pairs_of_groups() -> None:
    """Kernel first, one channel takes as long as 16."""
    found: list[float] = []
    for channels in (1, 16, 17):
        maker = Kernels("ethos-u85-256")
        maker.convolution((16, 16, 8), channels, kernel=(3, 3), part=True, microblock=3)
        (row,) = timed(maker, ideal("ethos-u85-256"))
        assert row.stages is not None
        found.append(row.stages.mac_cycles)
    assert found == [64 * 9 * 2, 64 * 9 * 2, 64 * 9 * 4]


def test_each_slab_waits_for_its_own_weights() -> None:
    """10 x 6 outputs of 140 channels: two slabs of 480 cycles, and one of 120 for 256 of decoding.

    So it takes Arm's model 14 thousand cycles, not 12.6, for 4 blocks and a half in depth.
    """
    maker = Kernels("ethos-u85-256")
    maker.convolution((10, 6, 32), 140, microblock=3, weights=3 * 64 * 32)
    (row,) = timed(maker, ideal("ethos-u85-256"))
    assert row.stages is not None
    assert row.stages.main_cycles == pytest.approx(480 + 480 + 256)


@pytest.mark.parametrize(("values_bits", "rate"), [(8, 32), (4, 64), (2, 64)])
def test_fast_weights_are_decoded_fast(values_bits: int, rate: int) -> None:
    """784 x 512 of them, padded to slabs of 64; how many values there are tells the length."""
    maker = Kernels("ethos-u85-128")
    weights = 13 * 64 * 512 * values_bits // 8 + 32
    maker.convolution((1, 1, 512), 784, weights=weights, microblock=1, fast=True)
    (row,) = timed(maker, ideal("ethos-u85-128"))
    assert row.stages is not None
    assert row.stages.decode_cycles == 13 * 64 * 512 / rate


def test_the_input_memory_of_u85_keeps_what_the_next_block_in_depth_needs() -> None:
    """Arm's Corstone-320 model reads 288 beats of 6 x 6 x 128 channels, for 3 blocks in depth.

    Two slabs of 64 channels fit into 16 KiB. Of 5 slabs of 8 x 16 positions two fit: the second
    block in depth reads the first three again, the third the last three.
    """
    small, large = Kernels("ethos-u85-256"), Kernels("ethos-u85-1024")
    small.convolution((6, 6, 128), 128, block=(6, 6, 48), microblock=3)
    large.convolution((8, 16, 276), 276, block=(8, 16, 96), microblock=3)
    beats: list[int] = []
    for maker, name in ((small, "ethos-u85-256"), (large, "ethos-u85-1024")):
        (row,) = timed(maker, ideal(name))
        beats.append(sum(use.read_bytes for use in row.uses if use.held is Held.FEATURE_MAP) // 16)
    assert beats == [288, 128 * (18 + 12 + 10)]


def test_pooling_on_u85_takes_a_cycle_for_each_element() -> None:
    """25 x 5 elements of 196 channels: 13 microblocks; Arm's model takes 2 thousand cycles."""
    maker = Kernels("ethos-u85-256")
    maker.pool((1, 1, 196), (25, 5), microblock=1)
    (row,) = timed(maker, ideal("ethos-u85-256"))
    assert row.stages is not None
    assert row.stages.mac_cycles == 13 * 125


def test_a_dense_layer_of_u85_waits_for_its_decoder() -> None:
    """784 inputs are 13 slabs of 64; weights without zeros are decoded 8 a cycle."""
    maker = Kernels("ethos-u85-128")
    maker.convolution((1, 1, 512), 784, weights=784 * 512, microblock=1)
    (row,) = timed(maker, ideal("ethos-u85-128"))
    assert causes([row])[Cause.WEIGHTS] == pytest.approx(13 * 64 * 512 / 8)
