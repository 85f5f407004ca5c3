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
    scales = next((stream for stream in work.streams if stream.what == "scales"), None)
    bus = machine.bus(scales.place) if scales else None
    return BIAS_BYTES * bus.read_latency_cycles / BIAS_PREFETCH_BYTES if bus else 0.0


def output_rate(work: KernelWork, machine: Machine) -> float:
    """Return the output unit's cycles for an element."""
    if work.is_u85:
        return _rate_u85(work, machine.accelerator.macs)
    rates = OUTPUT_RATES[machine.accelerator.macs_per_core]
    least = {"table": rates.table, "relu": rates.relu}.get(work.activation, 0.0)
    match work.kind, work.mode:
        case WorkKind.ELEMENTWISE, mode if work.input_bits == 32:
            rate = rates.word_unary if is_unary(mode) else rates.word_binary
        case WorkKind.ELEMENTWISE, "MUL":
            rate = rates.multiply_to_word if work.output_bits == 32 else rates.multiply
        case WorkKind.ELEMENTWISE, "ADD" | "SUB":
            rate = rates.add_simple if work.simple else rates.add
        case WorkKind.POOL, "MAX":
            rate = rates.maximum
        case _:
            rate = rates.multiply if work.wide else rates.other
    return max(rate, least) / machine.accelerator.cores


def _rate_u85(work: KernelWork, macs: int) -> float:
    rates = OUTPUT_RATES_U85[macs]
    rate = {8: rates.byte, 16: rates.half, 32: rates.word, 64: rates.double}[work.output_bits]
    if work.kind is WorkKind.ELEMENTWISE:
        if work.mode == "DIV":
            return rates.divide
        if work.input_bits == 32 and not is_unary(work.mode):
            rate = rates.words if work.output_bits == 32 else rates.narrowing
    if work.chained and work.input_bits == 32:
        rate = max(rate, rates.narrowing)
    if work.turned:
        return max(rate, rates.turned)
    return max(rate, rates.activation if work.activation else 0.0)
