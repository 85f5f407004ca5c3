"""What streams say of the shared buffer: demands read out of registers, and registers set."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.targets.ethos_u.generator.operations import Shape
from mizzen.targets.ethos_u.generator.shared_buffer import Demand, Parts, subkernel_side
from mizzen.targets.ethos_u.judge.hazards.operations import Kernel
from mizzen.targets.ethos_u.judge.hazards.registers import Registers
from mizzen.targets.ethos_u.judge.hazards.stream import steps
from mizzen.targets.ethos_u.machine.commands import instruction_set
from mizzen.targets.ethos_u.machine.commands_values import AccFormat
from mizzen.targets.ethos_u.machine.config import Accelerator
from mizzen.targets.ethos_u.machine.program import Program, accelerator_of

FIRST_TABLE = 16
UNARY = ("LRELU", "ABS", "CLZ")


def kernels(program: Program) -> Iterator[tuple[Kernel, Registers]]:
    """Return each operation of a stream; the registers hold what it starts with."""
    registers = Registers()
    for step in steps(program, accelerator_of(program.hardware), registers):
        if isinstance(step, Kernel):
            yield step, registers


def demand(kernel: Kernel, registers: Registers) -> Demand:
    """Return what an operation demands, from its registers alone."""
    ifm_bytes = registers.element_bytes("IFM")
    table = int(registers.fields("SET_ACTIVATION")["activation_function"]) >= FIRST_TABLE
    if kernel.name == "OP_ELEMENTWISE":
        scalar = kernel.mode not in UNARY and (
            bool(registers.fields("SET_IFM2_BROADCAST")["broadcast_constant"])
            and registers.element_bytes("IFM2") <= 2
        )
        return Demand(
            1, 1, 1, 1, 1, False, ifm_bytes, None, False, table, None, 1 if scalar else 2, False
        )
    stride = registers.fields("SET_KERNEL_STRIDE")
    height = registers.number("SET_KERNEL_HEIGHT_M1")
    upscale = registers.choice("SET_IFM_UPSCALE", "mode")
    every = kernel.name == "OP_CONV" or kernel.mode == "REDUCE_SUM"
    return Demand(
        kernel_height=subkernel_side(height),
        kernel_width=subkernel_side(registers.number("SET_KERNEL_WIDTH_M1")),
        stride_y=int(stride["stride_y"]),
        stride_x=int(stride["stride_x"]),
        upscale=1 if upscale == "NONE" else 2,
        replicates=upscale == "NEAREST",
        ifm_bytes=ifm_bytes,
        ifm_depth=registers.number("SET_IFM_DEPTH_M1") if every else None,
        has_traversal=kernel.name == "OP_CONV",
        has_table=table,
        accumulators=AccFormat[registers.choice("SET_ACC_FORMAT", "acc_format")],
        inputs=1,
        one_row=registers.output_shape()[0] == 1 and height == 1,
    )


def is_part_kernel(registers: Registers) -> bool:
    """Tell whether channels come kernel part by kernel part."""
    return registers.choice("SET_KERNEL_STRIDE", "weight_order") == "PART_KERNEL_FIRST"


def parts(kernel: Kernel, registers: Registers) -> Parts:
    """Return how registers divide the buffer; operations of one operand set no second start."""
    ends = registers.number("SET_IFM_IB_END"), registers.number("SET_AB_START")
    if kernel.name != "OP_ELEMENTWISE" or kernel.mode in UNARY:
        return Parts(*ends)
    return Parts(*ends, registers.number("SET_IFM2_IB_START"))


def registers_of(
    demand: Demand, block: Shape, part_kernel: bool, parts: Parts, accelerator: Accelerator
) -> Registers:
    """Return the registers that an operation of a demand reads of the shared buffer."""
    rows = instruction_set(accelerator.arch)
    registers = Registers()

    def put(name: str, **values: int) -> None:
        row = rows[name]
        given = {item.name: values.get(item.name, max(0, item.minimum)) for item in row.fields}
        registers.write(row(**given))

    precision = {1: 0, 2: 1, 4: 2}[demand.ifm_bytes]
    put("SET_IFM_PRECISION", activation_precision=precision)
    scalar = int(demand.accumulators is None and demand.inputs == 1)
    put("SET_IFM2_PRECISION", activation_precision=0 if scalar else precision)
    put("SET_IFM2_BROADCAST", broadcast_constant=scalar)
    put("SET_IFM_DEPTH_M1", depth=demand.ifm_depth or 1)
    put("SET_KERNEL_HEIGHT_M1", height=demand.kernel_height)
    put("SET_KERNEL_WIDTH_M1", width=demand.kernel_width)
    put(
        "SET_KERNEL_STRIDE",
        stride_x=demand.stride_x,
        stride_y=demand.stride_y,
        weight_order=int(part_kernel),
    )
    mode = 0 if demand.upscale == 1 else 1 if demand.replicates else 2
    put("SET_IFM_UPSCALE", mode=mode)
    put("SET_ACC_FORMAT", acc_format=int(demand.accumulators or 0))
    height, width, depth = block
    put("SET_OFM_BLK_HEIGHT_M1", height=height)
    put("SET_OFM_BLK_WIDTH_M1", width=width)
    put("SET_OFM_BLK_DEPTH_M1", depth=depth)
    put("SET_IFM_IB_END", ib_end=parts.ib_end)
    put("SET_AB_START", ab_start=parts.ab_start)
    if parts.ifm2_ib_start is not None:
        put("SET_IFM2_IB_START", ib_start=parts.ifm2_ib_start)
    return registers
