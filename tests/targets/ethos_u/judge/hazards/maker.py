"""Small streams by hand: copies as 1 x 1 pooling, transfers, waits, for each family."""

from __future__ import annotations

from typing import Any

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.isa.command import Command
from mizzen.targets.ethos_u.machine.commands import Arch, Instruction, encode, instruction_set
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from mizzen.targets.ethos_u.machine.program import HardwareId, Program, TensorAddress

Shape = tuple[int, int, int]
SIZE = 0x1000
"""Bytes of the scratch region."""
CONSTANT_BYTES = 0x400
POOLS_U85 = {128: (0, 1, 1), 256: (1, 1, 2), 512: (3, 2, 2), 1024: (4, 2, 4), 2048: (5, 4, 4)}
"""The microblock of pooling on U85, by MACs: its number, height and width; it has 16 channels."""


class Maker:
    """Collects the commands of a stream over 1 KiB of constants and 4 KiB of scratch memory."""

    def __init__(self, accelerator: str) -> None:
        self.accelerator = ACCELERATORS[accelerator]
        self._commands = instruction_set(self.accelerator.arch)
        self._made: list[Instruction] = []
        self.origins: dict[int, Origin] = {}

    @property
    def here(self) -> int:
        """The offset in words of the next command."""
        return sum(instruction.command.words for instruction in self._made)

    def add(self, name: str, **values: int) -> None:
        """Add a command if the family has it; fields that are not given are the lowest."""
        if name not in self._commands:
            return
        command: Command = self._commands[name]
        fields = {item.name: values.get(item.name, max(0, item.minimum)) for item in command.fields}
        self._made.append(command(**fields))

    def operation(self, name: str, kind: str, **values: int) -> int:
        """Add an operation for an operator `kind` of the model; give its offset in words."""
        at = self.here
        self.origins[4 * at] = Origin("net.tflite", len(self.origins), kind, f"t{at}")
        self.add(name, **values)
        return at

    def map(self, prefix: str, offset: int, shape: Shape, **more: Any) -> None:
        """Set the registers of a map of int8: dense NHWC in one tile, or a `layout` of its own.

        A layout has `bricks`, bytes of `room_x` and `room_y` beside each pixel and row, a `split`
        of the height, the right column's height and the width, and offsets of the other `bases`.
        """
        height, width, depth = shape
        layout = more.get("layout") or {}
        bricks, room_y = int(layout.get("bricks", False)), layout.get("room_y", 0)
        split, bases = layout.get("split", shape), layout.get("bases", (0, 0, 0))
        pixel = depth + layout.get("room_x", 0)
        slice_ = width * 16 if bricks else 1
        row = (slice_ * -(-depth // 16) if bricks else width * pixel) + room_y
        self.add(f"SET_{prefix}_REGION", region=more.get("region", 1))
        for tile, further in enumerate((0, *bases)):
            self.add(f"SET_{prefix}_BASE{tile}", address=offset + further)
        self.add(f"SET_{prefix}_HEIGHT0_M1", height=split[0] if layout else height)
        self.add(f"SET_{prefix}_HEIGHT1_M1", height=split[1] if layout else height)
        self.add(f"SET_{prefix}_WIDTH0_M1", width=split[2] if layout else width)
        self.add(f"SET_{prefix}_STRIDE_Y", stride=row)
        self.add(f"SET_{prefix}_STRIDE_X", stride=pixel)
        self.add(f"SET_{prefix}_STRIDE_C", stride=slice_)
        self.add(f"SET_{prefix}_PRECISION", activation_type=1, scale_mode=1,
                 activation_format=bricks, activation_storage=more.get("storage", 0))  # fmt: skip

    def copy(self, source: int, target: int, shape: Shape, **more: Any) -> int:
        """Add a copy in blocks of `block` with a `table`, if one is given, and a `blockdep`."""
        block = more.get("block", self._whole(shape))
        self.map(
            "IFM", source, shape, storage=more.get("ifm_storage", 0), layout=more.get("ifm_layout")
        )
        self.map(
            "OFM", target, shape, storage=more.get("ofm_storage", 0), layout=more.get("ofm_layout")
        )
        for name, extent, step in zip(("HEIGHT", "WIDTH", "DEPTH"), shape, block, strict=True):
            self.add(f"SET_OFM_{name}_M1", **{name.lower(): extent})
            self.add(f"SET_OFM_BLK_{name}_M1", **{name.lower(): step})
        for side in ("TOP", "LEFT", "BOTTOM", "RIGHT"):
            self.add(f"SET_IFM_PAD_{side}")
        self.add("SET_KERNEL_HEIGHT_M1", height=1)
        self.add("SET_KERNEL_WIDTH_M1", width=1)
        self.add("SET_KERNEL_STRIDE", stride_x=1, stride_y=1)
        self.add("SET_IFM_UPSCALE")
        function = 0
        if "table" in more:
            function = 4 if self.accelerator.arch is Arch.U85 else 16 + more["table"]
        self.add("SET_ACTIVATION", activation_function=function, table=more.get("table", 0))
        self.add("SET_ACC_FORMAT", microblock=POOLS_U85.get(self.accelerator.macs, (0, 1, 1))[0])
        self.add("SET_AB_START", ab_start=more.get("ab_start", 4))
        self.add("SET_IFM_IB_END", ib_end=4)
        self.add("SET_BLOCKDEP", blockdep=more.get("blockdep", 0))
        mode = 3 if self.accelerator.arch is Arch.U85 else 1
        return self.operation("OP_POOL", "AVERAGE_POOL_2D", pooling_mode=mode)

    def _whole(self, shape: Shape) -> Shape:
        """Return the block that a copy is done in at once; on U85 of whole microblocks."""
        if self.accelerator.arch is not Arch.U85:
            return shape
        _, high, wide = POOLS_U85[self.accelerator.macs]
        height, width, depth = shape
        return -(-height // high) * high, -(-width // wide) * wide, -(-depth // 16) * 16

    def dma(self, source: int, target: int, length: int, **more: Any) -> int:
        """Add a transfer from `source_region` (1) to `region` (1), or to the NPU's own memory."""
        inside = int(more.get("inside", False))
        self.add("SET_DMA0_SRC_REGION", region=more.get("source_region", 1))
        self.add("SET_DMA0_SRC", address=source)
        self.add("SET_DMA0_DST_REGION", region=more.get("region", 1), region_mode=inside)
        self.add("SET_DMA0_DST", address=target)
        self.add("SET_DMA0_LEN", length=length)
        return self.operation("OP_DMA_START", "RESHAPE")

    def program(self, inputs: list[tuple[int, int]], output: tuple[int, int]) -> Program:
        """Return the program; an input or output is an offset in scratch memory and a size."""
        self.add("OP_STOP", mask=0xFFFF)
        byte = np.dtype(np.int8)
        return Program(
            words=encode(self._made, self.accelerator.arch),
            hardware=HardwareId(self.accelerator.config_word, 0x1010_0000),
            region_bytes={0: CONSTANT_BYTES, 1: SIZE},
            constants={0: np.zeros(CONSTANT_BYTES, np.uint8)},
            inputs=tuple(TensorAddress(f"i{at}", (n,), byte, 1, at) for at, n in inputs),
            outputs=(TensorAddress("output", (output[1],), byte, 1, output[0]),),
            origins=self.origins,
        )
