"""Streams worked out by hand, one for each thing that an operation can be waited for.

On U55-128 a microblock is 1 x 2 x 8. The array steps through it in 4 cycles for 32 input channels
or 4 kernel elements; the decoder gives 8 weights a cycle; most results take half a cycle each.
"""

from __future__ import annotations

import pytest

from mizzen.targets.ethos_u.judge.timing import Cause

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


def test_u85_steps_through_whole_slabs() -> None:
    """Depth first, 16 channels take as long as 64 do: the stream is padded to 64."""
    found: list[float] = []
    for channels in (16, 64, 65):
        maker = Kernels("ethos-u85-256")
        maker.convolution((16, 16, 8), channels, kernel=(3, 3), microblock=3)
        (row,) = timed(maker, ideal("ethos-u85-256"))
        assert row.stages is not None
        found.append(row.stages.mac_cycles)
    assert found == [64 * 9 * 8, 64 * 9 * 8, 64 * 9 * 16]


def test_a_dense_layer_of_u85_waits_for_its_decoder() -> None:
    """784 inputs are 13 slabs of 64; weights without zeros are decoded 8 a cycle."""
    maker = Kernels("ethos-u85-128")
    maker.convolution((1, 1, 512), 784, weights=784 * 512, microblock=1)
    (row,) = timed(maker, ideal("ethos-u85-128"))
    assert causes([row])[Cause.WEIGHTS] == pytest.approx(13 * 64 * 512 / 8)
