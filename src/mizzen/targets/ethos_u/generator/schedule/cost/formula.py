"""Vela's formula for one operation, of many blocks at once.

Ref: Vela 5.2.0, npu_performance.py and the performance estimate of its C++ core.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from mizzen.targets.ethos_u.generator.operations import BRICK
from mizzen.targets.ethos_u.generator.schedule.blocks import Blocks, input_blocks, rounded, slab, up
from mizzen.targets.ethos_u.generator.schedule.cost.array_u85 import subkernel_by_formula
from mizzen.targets.ethos_u.generator.schedule.cost.links import links
from mizzen.targets.ethos_u.generator.schedule.cost.rates import (
    NARROWEST_ARRAY_MACS,
    POOL_SLOTS,
    Cycles,
    Ints,
    output_rate,
    pause_cycles,
    unit_of,
)
from mizzen.targets.ethos_u.generator.schedule.cost.traffic import Stored, Traffic
from mizzen.targets.ethos_u.generator.schedule.facts import EVERY_CHANNEL, HAS_WEIGHTS, Facts, Kind
from mizzen.targets.ethos_u.judge.timing.machine import Bus, Machine
from mizzen.targets.ethos_u.judge.timing.rates import (
    BIAS_BYTES,
    BIAS_PREFETCH_BYTES,
    INPUT_DEPTH,
    SLOTS,
)
from mizzen.targets.ethos_u.judge.timing.stages import IN_FLIGHT
from mizzen.targets.ethos_u.judge.timing.vela_formula import LONGEST_WRITE_BYTES
from mizzen.targets.ethos_u.machine.config import Accelerator, Port


@dataclass(frozen=True, slots=True)
class Formula:
    """Cycles of each block by the formula.

    own     of the operation itself
    memory  that each port is needed
    """

    own: Cycles
    memory: dict[Port, Cycles]

    @property
    def total(self) -> Cycles:
        """Cycles if no transfer is left to wait for."""
        busiest = np.floor(self.own)
        for cycles in self.memory.values():
            busiest = np.maximum(busiest, np.floor(cycles))
        return busiest


def formula(
    facts: Facts, blocks: Blocks, part_kernel: bool, traffic: Traffic, machine: Machine
) -> Formula:
    """Return the cycles of an operation with each of the blocks; of a chain, all operations'."""
    if not facts.links:
        return _formula(facts, blocks, part_kernel, traffic, machine)
    parts = [
        _formula(link, blocks, part_kernel and not place, moved, machine)
        for place, (link, moved) in enumerate(links(facts, traffic))
    ]
    memory: defaultdict[Port, Cycles] = defaultdict(lambda: np.zeros(len(blocks)))
    for part in parts:
        for port, cycles in part.memory.items():
            memory[port] += cycles
    return Formula(np.sum([part.total for part in parts], axis=0), dict(memory))


def _formula(
    facts: Facts, blocks: Blocks, part_kernel: bool, traffic: Traffic, machine: Machine
) -> Formula:
    """Return the cycles of an operation that is no chain."""
    covered = input_blocks(facts, blocks, part_kernel)
    fetch, write = _fetch(covered, traffic), _write(facts, blocks, traffic, machine)
    if facts.kind is Kind.RESIZE:  # Which the formula leaves out.
        own = np.zeros(len(blocks))
        return Formula(own, _memory(facts, blocks, covered, traffic, machine))
    own = _own(facts, blocks, part_kernel, traffic, machine, fetch, write)
    return Formula(own, _memory(facts, blocks, covered, traffic, machine))


def _own(
    facts: Facts,
    blocks: Blocks,
    part_kernel: bool,
    traffic: Traffic,
    machine: Machine,
    fetch: Cycles,
    write: Cycles,
) -> Cycles:
    rate = output_rate(facts, machine.accelerator, simple=False)
    if facts.kind is Kind.ELEMENTWISE:
        elements = _elements(facts, traffic)
        issue = (np.maximum(fetch, write) / np.prod(blocks, axis=1) + rate) / IN_FLIGHT
        return np.maximum(np.ceil(issue * elements), math.ceil(rate * elements))
    unit = np.array(unit_of(facts, machine.accelerator))
    clipped = np.minimum(blocks, facts.shape)
    counts = -(-clipped // unit)
    number = math.prod(map(up, facts.shape, unit.tolist())) / np.prod(counts, axis=1)
    mac = _mac(facts, counts, part_kernel, machine)
    output = np.ceil(rate * np.prod(clipped, axis=1))
    if facts.kind in HAS_WEIGHTS and traffic.constants is not None:
        latency = traffic.constants.bus.read_latency_cycles
        output = np.maximum(output, BIAS_BYTES * clipped[:, 2] * latency / BIAS_PREFETCH_BYTES)
    between = np.where(number > 1, np.abs(write - fetch), 0.0)
    issue = (between + mac + output) / IN_FLIGHT
    mac, output = np.maximum(mac, issue), np.maximum(output, issue)
    led: Cycles = np.floor(mac * number) + output
    lagged: Cycles = np.floor(output * number + mac)
    leads = (mac > output).astype(np.int64)
    return leads * led + (1 - leads) * lagged + fetch + write


def _mac(facts: Facts, counts: Ints, part_kernel: bool, machine: Machine) -> Cycles:
    accelerator = machine.accelerator
    if machine.is_u85:
        return _mac_u85(facts, counts, part_kernel, accelerator)
    unit = unit_of(facts, accelerator)
    plane, deep = counts[:, 0] * counts[:, 1], counts[:, 2]
    channels = min(slab(facts, part_kernel), facts.channels)
    groups = up(channels, INPUT_DEPTH) if part_kernel else 1
    bits = facts.input_bits
    total = np.zeros(len(counts))
    for elements in facts.subkernels:
        if facts.kind is Kind.POOL:
            narrow = accelerator.macs_per_core <= NARROWEST_ARRAY_MACS
            steps, each = 1, max(POOL_SLOTS, elements) * plane * (1 if narrow else bits // 2)
        elif facts.kind is Kind.DEPTHWISE:
            steps = up(elements, SLOTS)
            each = np.maximum(SLOTS * unit[2], SLOTS * plane * (bits // 8)) * steps
        else:
            at_once = (SLOTS if bits == 8 else SLOTS // 2) if part_kernel else 1
            steps = up(elements, at_once)
            each = np.maximum(SLOTS * unit[2], SLOTS * plane) * steps * groups
        waits = np.where(deep == 1, steps, (steps - 1) * deep)
        pause = pause_cycles(facts, accelerator) * groups
        total += each * deep + np.where(plane == 1, pause * waits, 0)
    if facts.kind in EVERY_CHANNEL:
        total *= up(facts.channels, channels)
    return np.floor(total / accelerator.cores)


def _mac_u85(facts: Facts, counts: Ints, part_kernel: bool, accelerator: Accelerator) -> Cycles:
    total = np.zeros(len(counts))
    for elements in facts.subkernels:
        total += subkernel_by_formula(facts, elements, counts, part_kernel, accelerator)
    if facts.kind in EVERY_CHANNEL:
        total *= up(facts.channels, min(slab(facts, part_kernel), facts.channels))
    return np.floor(total)


def _fetch(covered: Blocks, traffic: Traffic) -> Cycles:
    slowest = np.zeros(len(covered))
    for stored in traffic.reads:
        elements = np.prod(np.minimum(covered, stored.shape), axis=1)
        moved = inflated(elements * stored.element_bytes, stored.bus, _read_burst(stored, covered))
        cycles = stored.bus.read_latency_cycles + moved // stored.bus.bytes_per_cycle
        slowest = np.maximum(slowest, cycles)
    return slowest


def _write(facts: Facts, blocks: Blocks, traffic: Traffic, machine: Machine) -> Cycles:
    stored = traffic.write
    if stored is None:
        return np.zeros(len(blocks))
    bytes_ = np.prod(np.minimum(blocks, facts.shape), axis=1) * stored.element_bytes
    moved = inflated(bytes_, stored.bus, _write_burst(stored, blocks, machine.accelerator.cores))
    return stored.bus.write_latency_cycles + moved // stored.bus.bytes_per_cycle


def inflated(bytes_: Ints | int, bus: Bus, burst: Ints) -> Cycles:
    """Return the bytes that are moved in bursts of so many; shorter ones are padded."""
    longest = bus.burst_bytes
    return np.floor(bytes_ * longest / np.minimum(longest, np.maximum(burst, 1)))


def _read_burst(stored: Stored, covered: Blocks) -> Ints:
    size = stored.element_bytes
    width, depth = covered[:, 1], covered[:, 2]
    if stored.bricks:
        whole = BRICK * size * stored.shape[1] == depth
        return np.where(whole, depth * width * size, BRICK * size * width)
    return np.where(stored.shape[2] * size == depth, size * width * depth, size * depth)


def _write_burst(stored: Stored, blocks: Blocks, cores: int) -> Ints:
    size = stored.element_bytes
    width, depth = blocks[:, 1], blocks[:, 2]
    if stored.bricks:
        return BRICK * size * width * cores
    whole = (depth <= BRICK) & (stored.shape[2] * size == depth)
    short = np.minimum(min(LONGEST_WRITE_BYTES, BRICK * size * cores), size * depth)
    return np.where(whole, size * width * depth, short)


def _elements(facts: Facts, traffic: Traffic) -> int:
    height, width, depth = facts.shape
    return (
        height
        * width
        * (rounded(depth, BRICK) if traffic.write is not None and traffic.write.bricks else depth)
    )


def _memory(
    facts: Facts, blocks: Blocks, covered: Blocks, traffic: Traffic, machine: Machine
) -> dict[Port, Cycles]:
    counts = -(-np.array(facts.shape) // blocks)
    planes = counts[:, 0] * counts[:, 1]
    times = planes * counts[:, 2] if facts.kind in EVERY_CHANNEL else planes
    sums: defaultdict[Port, Cycles] = defaultdict(lambda: np.zeros(len(blocks)))
    for stored in traffic.reads:
        if facts.kind is Kind.ELEMENTWISE:
            shape = stored.shape if machine.is_u85 else facts.shape
            elements = np.full(len(blocks), math.prod(shape))
        else:
            sides = np.minimum(covered, stored.shape)
            depth = rounded(stored.shape[2], BRICK) if stored.bricks else stored.shape[2]
            elements = sides[:, 0] * sides[:, 1] * depth * len(facts.subkernels) * times
        burst = _read_burst(stored, covered)
        moved = inflated(elements * stored.element_bytes, stored.bus, burst)
        sums[stored.bus.port] += moved / stored.bus.bytes_per_cycle
    write = traffic.write
    if write is not None:
        burst = _write_burst(write, blocks, machine.accelerator.cores)
        moved = inflated(_elements(facts, traffic) * write.element_bytes, write.bus, burst)
        sums[write.bus.port] += moved / write.bus.bytes_per_cycle
    if traffic.constants is not None:
        bus = traffic.constants.bus
        sums[bus.port] += planes * traffic.constants.bytes_ / bus.bytes_per_cycle
    return dict(sums)
