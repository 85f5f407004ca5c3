"""The blocks that an operation of a stream of U85 could have, and what they would cost.

Operations of a chain have one block in common, and resizes hardly a choice: of these nothing is
said.
"""

from __future__ import annotations

from dataclasses import replace

from mizzen.analysis.decisions.alternatives import Alternatives, facts_of_work, others, traffic_of
from mizzen.targets.ethos_u.generator.operations import PERMUTATIONS, Order
from mizzen.targets.ethos_u.generator.schedule.facts import Facts, Function
from mizzen.targets.ethos_u.generator.shared_buffer import (
    DemandU85,
    microblock_for,
    slab_for,
    subkernel_side,
)
from mizzen.targets.ethos_u.generator.shared_buffer.arrays_u85 import Work
from mizzen.targets.ethos_u.judge.hazards.registers import Registers
from mizzen.targets.ethos_u.judge.timing import KernelWork, WorkKind
from mizzen.targets.ethos_u.judge.timing.machine import Machine
from mizzen.targets.ethos_u.machine.commands_values import (
    AccFormat,
    ReverseU85,
    TransposeU85,
    UpscaleMode,
)

WORKS = {
    WorkKind.CONVOLUTION: Work.CONVOLUTION,
    WorkKind.DEPTHWISE: Work.DEPTHWISE,
    WorkKind.REDUCE_SUM: Work.REDUCE_SUM,
    WorkKind.POOL: Work.POOL,
    WorkKind.ELEMENTWISE: Work.ELEMENTWISE,
}


def alternatives_u85(work: KernelWork, registers: Registers, machine: Machine) -> Alternatives:
    """Return an operation's block with its cycles, the best other one, and how many fit."""
    if work.goes_on or work.chained or work.kind not in WORKS:
        return None, None, 0
    facts = _facts(work, registers)
    demand = _demand(work, facts, registers)
    if microblock_for(demand, machine.accelerator) != work.microblock:
        return None, None, 0  # another compiler may choose otherwise, which has other blocks
    facts = replace(facts, slab=slab_for(demand, machine.accelerator))
    traffic = traffic_of(work, machine, facts.stored_shape)
    return others(work, facts, demand, traffic, machine)


def _facts(work: KernelWork, registers: Registers) -> Facts:
    order = _order(registers)
    return replace(
        facts_of_work(work, registers),
        function=Function.TABLE if work.activation else Function.NONE,
        axes=PERMUTATIONS[order.transpose],
        turned=work.turned,
        sparse=work.sparse,
    )


def _order(registers: Registers) -> Order:
    return Order(
        TransposeU85[registers.choice("SET_OFM_PRECISION", "activation_transpose")],
        ReverseU85[registers.choice("SET_OFM_PRECISION", "activation_reverse")],
    )


def _demand(work: KernelWork, facts: Facts, registers: Registers) -> DemandU85:
    result = work.blocks.result
    assert result is not None
    kind = WORKS[work.kind]
    return DemandU85(
        work=Work.PRODUCT if kind is Work.CONVOLUTION and not work.streams else kind,
        shape=facts.shape,
        ifm=facts.inputs[0],
        ifm_bytes=facts.input_bits // 8,
        kernel_height=subkernel_side(facts.kernel[0]),
        kernel_width=subkernel_side(facts.kernel[1]),
        is_point=facts.subkernels == (1,),
        stride_y=facts.strides[0],
        stride_x=facts.strides[1],
        upscale=1 if facts.upscale is UpscaleMode.NONE else 2,
        replicates=facts.upscale is UpscaleMode.NEAREST,
        wide=facts.accumulators is AccFormat.I40,
        part_kernel=work.part_kernel,
        sparse=work.sparse,
        operands=facts.inputs if kind is Work.ELEMENTWISE else (),
        order=_order(registers),
        bricks=result.map.bricks,
    )
