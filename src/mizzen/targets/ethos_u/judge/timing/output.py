"""How fast the output unit scales, activates and gives away results."""

from __future__ import annotations

from mizzen.targets.ethos_u.judge.timing.machine import Machine
from mizzen.targets.ethos_u.judge.timing.rates import (
    BIAS_BYTES,
    BIAS_PREFETCH_BYTES,
    OUTPUT_RATES,
    OUTPUT_RATES_U85,
)
from mizzen.targets.ethos_u.judge.timing.work import KernelWork, WorkKind, is_unary


def bias_cycles(work: KernelWork, machine: Machine) -> float:
    """Return the least cycles for an output channel of a block, whose bias has to be fetched."""
    scales = next((row for row in work.streams if row.what == "scales"), None)
    bus = machine.bus(scales.place) if scales else None
    return BIAS_BYTES * bus.read_latency_cycles / BIAS_PREFETCH_BYTES if bus else 0.0


def output_rate(work: KernelWork, machine: Machine) -> float:
    """Return the output unit's cycles for an element."""
    if work.is_u85:
        return _rate_u85(work, machine.accelerator.macs)
    row = OUTPUT_RATES[machine.accelerator.macs_per_core]
    least = {"table": row.table, "relu": row.relu}.get(work.activation, 0.0)
    match work.kind, work.mode:
        case WorkKind.ELEMENTWISE, mode if work.input_bits == 32:
            rate = row.word_unary if is_unary(mode) else row.word_binary
        case WorkKind.ELEMENTWISE, "MUL":
            rate = row.multiply_to_word if work.output_bits == 32 else row.multiply
        case WorkKind.ELEMENTWISE, "ADD" | "SUB":
            rate = row.add_simple if work.simple else row.add
        case WorkKind.POOL, "MAX":
            rate = row.maximum
        case _:
            rate = row.multiply if work.wide else row.other
    return max(rate, least) / machine.accelerator.cores


def _rate_u85(work: KernelWork, macs: int) -> float:
    row = OUTPUT_RATES_U85[macs]
    rate = {8: row.byte, 16: row.half, 32: row.word, 64: row.double}[work.output_bits]
    if work.kind is WorkKind.ELEMENTWISE:
        if work.mode == "DIV":
            return row.divide
        if work.input_bits == 32 and not is_unary(work.mode):
            rate = row.words if work.output_bits == 32 else row.narrowing
    if work.chained and work.input_bits == 32:
        rate = max(rate, row.narrowing)
    if work.turned:
        return max(rate, row.turned)
    return max(rate, row.activation if work.activation else 0.0)
