"""Convolutions, copies and elementwise operations by hand, and systems to time them in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mizzen.targets.ethos_u.judge.timing import Cause, Timed, estimate
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, MemoryTiming
from mizzen.targets.ethos_u.machine.program import Program
from mizzen.targets.ethos_u.machine.system_config import resolve

from ..hazards.maker import Maker, Shape  # noqa: TID252 tests are no package with a name

ADD, MUL = 1, 0
FAST = {"clock_scale": 64.0, "burst_bytes": 1, "read_latency_cycles": 0, "write_latency_cycles": 0}


class Kernels(Maker):
    """Adds operations with weights and with two inputs to what a `Maker` makes."""

    def convolution(self, shape: Shape, channels: int, **more: Any) -> int:
        """Add a convolution to an output of `shape` of as many input channels.

        block      of the output, else all of it
        kernel     height and width
        depthwise  whether each channel has its own
        part       whether weights come kernel part by kernel part
        weights    bytes of weights; they and 16 bytes of scales lie in region `region`
        wide       whether accumulators have more than 32 bits
        blockdep   as in the command
        microblock of U85, by its number
        fast       whether weights are in the fast format of U85
        """
        high, wide = more.get("kernel", (1, 1))
        depthwise = more.get("depthwise", False)
        taken = shape[0] + high - 1, shape[1] + wide - 1, channels
        self.map("IFM", 0, taken)
        self.map("OFM", 0x1000, shape)
        self._block(shape, more.get("block", shape))
        self._kernel(high, wide, part=more.get("part", False))
        self.add("SET_IFM_DEPTH_M1", depth=channels)
        for kind in ("WEIGHT", "SCALE"):
            self.add(f"SET_{kind}_REGION", region=more.get("region", 0))
            self.add(f"SET_{kind}_BASE", address=0)
        self.add("SET_WEIGHT_LENGTH", length=more.get("weights", 16))
        self.add("SET_SCALE_LENGTH", length=16)
        if self.accelerator.cores > 1:
            for kind in ("WEIGHT1", "SCALE1"):
                self.add(f"SET_{kind}_BASE", address=0)
                self.add(f"SET_{kind}_LENGTH", length=16)
            self.add("SET_PARALLEL_MODE", parallel_mode=1)
        for number in range(1, self.accelerator.weight_streams):
            self.add(f"SET_WEIGHT{number}_BASE", address=0)
            self.add(f"SET_WEIGHT{number}_LENGTH", length=16)
        self.add("SET_WEIGHT_FORMAT", weight_format=int(more.get("fast", False)))
        self.add("SET_ACC_FORMAT", acc_format=int(more.get("wide", False)),
                 microblock=more.get("microblock", 0))  # fmt: skip
        self.add("SET_BLOCKDEP", blockdep=more.get("blockdep", 0))
        name = "OP_DEPTHWISE" if depthwise else "OP_CONV"
        return self.operation(name, "CONV_2D")

    def pool(self, shape: Shape, kernel: tuple[int, int], *, microblock: int) -> int:
        """Add a sum over a kernel's elements."""
        self.map("IFM", 0, (shape[0] + kernel[0] - 1, shape[1] + kernel[1] - 1, shape[2]))
        self.map("OFM", 0x1000, shape)
        self._block(shape, shape)
        self._kernel(*kernel, part=False)
        self.add("SET_ACC_FORMAT", microblock=microblock)
        self.add("SET_BLOCKDEP")
        return self.operation("OP_POOL", "AVERAGE_POOL_2D", pooling_mode=3)

    def sum(self, shape: Shape, **more: Any) -> int:
        """Add an ADD of two maps; `scale_mode` says how operands are scaled."""
        self.map("IFM", 0, shape)
        self.map("IFM2", 0x800, shape)
        self.map("OFM", 0x1000, shape)
        self.add("SET_IFM_PRECISION", activation_type=1, scale_mode=more.get("scale_mode", 0))
        self._block(shape, more.get("block", shape))
        self.add("SET_IFM_BROADCAST")
        self.add("SET_IFM2_BROADCAST")
        self.add("SET_IFM2_IB_START", ib_start=4)
        self.add("SET_BLOCKDEP", blockdep=more.get("blockdep", 0))
        return self.operation("OP_ELEMENTWISE", "ADD", elementwise_mode=more.get("mode", ADD))

    def _block(self, shape: Shape, block: Shape) -> None:
        for name, extent, step in zip(("HEIGHT", "WIDTH", "DEPTH"), shape, block, strict=True):
            self.add(f"SET_OFM_{name}_M1", **{name.lower(): extent})
            self.add(f"SET_OFM_BLK_{name}_M1", **{name.lower(): step})
        self.add("SET_ACTIVATION")
        self.add("SET_ACTIVATION_MIN", clip_boundary=-128)
        self.add("SET_ACTIVATION_MAX", clip_boundary=127)
        self.add("SET_ACC_FORMAT")
        self.add("SET_AB_START", ab_start=4)
        self.add("SET_IFM_IB_END", ib_end=4)

    def _kernel(self, high: int, wide: int, *, part: bool) -> None:
        for side in ("TOP", "LEFT", "BOTTOM", "RIGHT"):
            self.add(f"SET_IFM_PAD_{side}")
        self.add("SET_KERNEL_HEIGHT_M1", height=high)
        self.add("SET_KERNEL_WIDTH_M1", width=wide)
        self.add("SET_KERNEL_STRIDE", stride_x=1, stride_y=1, weight_order=int(part))
        self.add("SET_IFM_UPSCALE")

    def made(self) -> Program:
        """Return the program."""
        return self.program([(0, 16)], (0x1000, 16))


def system(accelerator: str, axi0: dict[str, Any], axi1: dict[str, Any]) -> EthosUConfiguration:
    """Return a system whose memories behind the two ports differ from the default's in fields."""
    found = resolve(accelerator)

    def changed(timing: MemoryTiming, fields: dict[str, Any]) -> MemoryTiming:
        return replace(timing, max_reads=None, max_writes=None, **fields)

    at = found.system
    return replace(
        found, system=replace(at, axi0=changed(at.axi0, axi0), axi1=changed(at.axi1, axi1))
    )


def ideal(accelerator: str) -> EthosUConfiguration:
    """Return a system whose memories never make anything wait."""
    return system(accelerator, FAST, FAST)


def causes(rows: list[Timed]) -> dict[Cause, int]:
    """Add up what is waited for, in whole cycles."""
    found: dict[Cause, float] = {}
    for row in rows:
        for (cause, _), cycles in row.causes.items():
            found[cause] = found.get(cause, 0.0) + cycles
    return {cause: round(cycles) for cause, cycles in found.items() if round(cycles)}


def timed(maker: Kernels, configuration: EthosUConfiguration) -> list[Timed]:
    """Time what was made."""
    return estimate(maker.made(), configuration)
