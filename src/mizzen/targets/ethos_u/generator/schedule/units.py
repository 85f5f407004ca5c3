"""What is issued at once: an operation or some channels of it, with its best blocks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass

from mizzen.targets.ethos_u.generator.operations import (
    Blob,
    Blockwise,
    Copy,
    Sequence,
    convolution_of,
    maps_read,
    tensor_written,
    tensors_read,
)
from mizzen.targets.ethos_u.generator.schedule.blocks import traversals, usual
from mizzen.targets.ethos_u.generator.schedule.choices import Choice, Ranked, ranked
from mizzen.targets.ethos_u.generator.schedule.cost import Constants
from mizzen.targets.ethos_u.generator.schedule.facts import Facts, facts_of
from mizzen.targets.ethos_u.generator.schedule.storage import Storage
from mizzen.targets.ethos_u.generator.shared_buffer import demand_on
from mizzen.targets.ethos_u.generator.tuned import FAST_BYTES_PER_CYCLE, FAST_GAIN
from mizzen.targets.ethos_u.generator.weights import Compression, encode, fast_bits
from mizzen.targets.ethos_u.judge.timing.machine import Bus, Machine, machine_of
from mizzen.targets.ethos_u.judge.timing.rates import (
    DECODED_WEIGHTS_PER_CYCLE,
    FAST_PALETTE_WEIGHTS_PER_CYCLE,
    FAST_WEIGHTS_PER_CYCLE,
    PALETTE_BITS,
)
from mizzen.targets.ethos_u.machine.commands_values import Layout
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Feature, Port
from mizzen.targets.ethos_u.machine.program import RegionIndex

Channels = tuple[int, int]
GRANULE_BYTES = 16
"""Of streams, and of the ends of a transfer."""
_Lies = tuple[int, Channels | None, Port | None, bool, tuple[tuple[Layout, RegionIndex], ...]]
"""An operation, its channels, the bus of its constants, and where its maps lie."""


@dataclass(frozen=True, slots=True)
class Unit:
    """An operation, or some channels of its output.

    channels   None for all
    in_place   its blocks where constants are read where they lie, or it has none; None of a copy
    staged     its blocks where constants are fetched first; None where that gains nothing
    """

    operation: int
    channels: Channels | None
    in_place: Ranked | None
    staged: Ranked | None


class Costs:
    """Costs of a sequence's operations, whatever is asked for computed once."""

    def __init__(self, sequence: Sequence, configuration: EthosUConfiguration) -> None:
        self.sequence = sequence
        self.machine: Machine = machine_of(configuration)
        self.accelerator = configuration.accelerator
        spills = configuration.mode.spills
        self.staging_region = RegionIndex.SCRATCH_FAST if spills else RegionIndex.SCRATCH
        self._users: list[tuple[int, ...]] | None = None
        self._row_cycles: Mapping[int, float] = {}
        self._facts: dict[tuple[int, Channels | None], Facts] = {}
        self._lengths: dict[tuple[int, bool, bool], tuple[int, ...]] = {}
        self._may_be_fast = Feature.FAST_WEIGHTS not in configuration.disabled
        self._ranked: dict[_Lies, Ranked] = {}

    def priced(self, byte_cycles: Mapping[int, float]) -> Costs:
        """Return costs by which blocks of some operations are to write later than they read.

        byte_cycles  of operations, what a byte that is written too early is worth
        """
        priced = copy(self)
        priced._ranked = {}
        row_cycles: dict[int, float] = {}
        for operation, price in byte_cycles.items():
            computed = self.sequence.operations[operation]
            if not isinstance(computed, Copy):
                row_bytes = (
                    computed.ofm.elements // computed.ofm.shape[0] * computed.ofm.dtype.itemsize
                )
                row_cycles[operation] = price * row_bytes
        priced._row_cycles = row_cycles
        return priced

    def facts(self, operation: int, channels: Channels | None = None) -> Facts:
        """Return the facts of an operation, or of some channels of it."""
        key = operation, channels
        if key not in self._facts:
            computed = self.sequence.operations[operation]
            assert not isinstance(computed, Copy)
            self._facts[key] = facts_of(computed, self.accelerator, channels)
        return self._facts[key]

    def users(self, tensor: int) -> tuple[int, ...]:
        """Return the operations that read or write a tensor, copies left out."""
        if self._users is None:
            self._users = [() for _ in self.sequence.tensors]
            for index, operation in enumerate(self.sequence.operations):
                if not isinstance(operation, Copy):
                    for used in {*tensors_read(operation), tensor_written(operation)}:
                        self._users[used] = *self._users[used], index
        return self._users[tensor]

    def staged_cycles(self, storage: Storage, operations: Iterable[int]) -> float:
        """Return the cycles of operations if all constants were staged."""
        return sum(self.staged(storage, operation).cycles for operation in operations)

    def blob(self, operation: int, channels: Channels | None, choice: Choice) -> Blob:
        """Return the constants of a convolution as a block needs them."""
        convolution = convolution_of(self.sequence.operations[operation])
        assert convolution is not None, "it has constants"
        blocking = choice.blocking
        whole = channels or (0, len(convolution.weights))
        return encode(
            convolution,
            whole,
            blocking.block[2],
            blocking.part_kernel,
            self.accelerator,
            fast=blocking.fast,
        )

    def unit(self, storage: Storage, operation: int, channels: Channels | None = None) -> Unit:
        """Return an operation with its best blocks, for where everything lies."""
        done = self.sequence.operations[operation]
        if isinstance(done, Copy):
            return Unit(operation=operation, channels=None, in_place=None, staged=None)
        if convolution_of(done) is None:
            return Unit(
                operation=operation,
                channels=channels,
                in_place=self.ranked(storage, operation, channels, None),
                staged=None,
            )
        in_place = self.ranked(storage, operation, channels, self.machine.constants)
        if self.machine.constants == self.machine.cache:
            return Unit(operation=operation, channels=channels, in_place=in_place, staged=None)
        staged = self.ranked(storage, operation, channels, self.machine.cache)
        return Unit(operation=operation, channels=channels, in_place=in_place, staged=staged)

    def staged(self, storage: Storage, operation: int) -> Choice:
        """Return the best block of an operation whose constants lie in the fastest memory."""
        has_constants = convolution_of(self.sequence.operations[operation]) is not None
        bus = self.machine.cache if has_constants else None
        return self.ranked(storage, operation, None, bus).best

    def ranked(
        self, storage: Storage, operation: int, channels: Channels | None, bus: Bus | None
    ) -> Ranked:
        """Return the blocks of an operation; `bus` is that through which constants are read."""
        computed = self.sequence.operations[operation]
        assert not isinstance(computed, Copy)
        lies = tuple(
            (storage.layouts[map_.tensor], storage.regions[map_.tensor])
            for map_ in (*maps_read(computed), computed.ofm)
        )
        key = operation, channels, bus and bus.port, bus is self.machine.cache, lies
        if key not in self._ranked:
            self._ranked[key] = self._rank(computed, storage, operation, channels, bus)
        return self._ranked[key]

    def _rank(
        self,
        computed: Blockwise,
        storage: Storage,
        operation: int,
        channels: Channels | None,
        bus: Bus | None,
    ) -> Ranked:
        facts = self.facts(operation, channels)
        demand = demand_on(computed, self.accelerator)
        price = self._row_cycles.get(operation, 0.0)

        def rank(fast: bool) -> Ranked:
            traffics = tuple(
                storage.traffic(
                    computed,
                    facts,
                    self._constants(operation, channels, part_kernel, bus, fast=fast),
                )
                for part_kernel in traversals(facts, demand)
            )
            return ranked(facts, demand, traffics, self.machine, price)

        standard = rank(fast=False)
        if bus is None or not self._has_fast(operation):
            return standard
        return self._better(standard, rank(fast=True), bus, operation, channels)

    def _has_fast(self, operation: int) -> bool:
        """Whether decoding an operation's weights may be faster in U85's fast format."""
        convolution = convolution_of(self.sequence.operations[operation])
        if convolution is None or not self._may_be_fast or not self.machine.is_u85:
            return False
        bits = fast_bits(convolution, self.accelerator)
        if bits is None:
            return False
        few = bits <= PALETTE_BITS
        most = FAST_PALETTE_WEIGHTS_PER_CYCLE if few else FAST_WEIGHTS_PER_CYCLE
        return DECODED_WEIGHTS_PER_CYCLE * self.accelerator.weight_streams < most

    def _better(
        self, standard: Ranked, fast: Ranked, bus: Bus, operation: int, channels: Channels | None
    ) -> Ranked:
        """Return blocks with fast weights if the cycles that they save are worth their bytes."""
        saved = standard.best.cycles - fast.best.cycles
        added = self._bytes(operation, channels, fast.best) - self._bytes(
            operation, channels, standard.best
        )
        if bus is not self.machine.constants:
            saved -= added / self.machine.constants.bytes_per_cycle
        is_worth = saved > max(added / FAST_BYTES_PER_CYCLE, FAST_GAIN * standard.best.cycles)
        return fast if is_worth else standard

    def blob_bytes(self, unit: Unit, choice: Choice) -> int:
        """Return the size of the constants that a block needs, nearly and rather too large."""
        return self._bytes(unit.operation, unit.channels, choice)

    def _bytes(self, operation: int, channels: Channels | None, choice: Choice) -> int:
        blocking = choice.blocking
        return sum(self._streams(operation, channels, blocking.part_kernel, fast=blocking.fast))

    def _constants(
        self,
        operation: int,
        channels: Channels | None,
        part_kernel: bool,
        bus: Bus | None,
        *,
        fast: bool,
    ) -> Constants | None:
        if bus is None:
            return None
        streams = self._streams(operation, channels, part_kernel, fast=fast)
        return Constants(bus, streams[::2], streams[1::2], fast)

    def _streams(
        self, operation: int, channels: Channels | None, part_kernel: bool, *, fast: bool
    ) -> tuple[int, ...]:
        """Return the lengths of streams, nearly: a part's are a part of the whole's."""
        key = operation, part_kernel, fast
        if key not in self._lengths:
            self._lengths[key] = self._encoded(*key)
        whole = self._lengths[key]
        if channels is None:
            return whole
        share = (channels[1] - channels[0]) / self.facts(operation).shape[2]
        return tuple(
            GRANULE_BYTES * (math.ceil(length * share / GRANULE_BYTES) + 1) for length in whole
        )

    def _encoded(self, operation: int, part_kernel: bool, fast: bool) -> tuple[int, ...]:
        """Return the lengths of all streams for a traversal; the block's depth is a usual one."""
        convolution = convolution_of(self.sequence.operations[operation])
        assert convolution is not None, "it has constants"
        depth = usual(convolution, self.facts(operation), self.accelerator).block[2]
        blob = encode(
            convolution,
            (0, len(convolution.weights)),
            depth,
            part_kernel,
            self.accelerator,
            Compression.QUICK,
            fast,
        )
        return tuple(
            length for part in blob.cores for length in (part.weights_bytes, part.scales_bytes)
        )
