"""Streams of small sequences: exact, free of hazards, and overlapping as far as they may."""

from __future__ import annotations

import pytest

from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.generator.operations import Kernel, Role, Sequence
from mizzen.targets.ethos_u.generator.schedule import plain, schedule
from mizzen.targets.ethos_u.generator.shared_buffer import ARRAYS, CORES
from mizzen.targets.ethos_u.machine.commands_values import PoolingMode
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from mizzen.targets.ethos_u.machine.system_config import resolve

from .chance_schedules import by_chance
from .program_judges import blockdeps, greatest_blockdeps, needless_waits, require_right
from .sequences import Network

SAME = Kernel(3, 3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1)


def network() -> Sequence:
    """Return a residual network of one block, with pools and a last layer of one row."""
    net = Network()
    ifm = net.tensor((11, 13, 5), Role.INPUT)
    first = net.convolution(ifm, 24, SAME)
    window = Kernel(3, 5, 2, 2, pad_left=2, pad_right=2)
    narrow = net.convolution(first, 24, window, depthwise=True)
    wide = net.convolution(narrow, 40, Kernel())
    other = net.convolution(wide, 40, SAME)
    both = net.add(wide, other)
    halved = net.pool(both, PoolingMode.MAX, Kernel(2, 2, 2, 2))
    height, width, _ = net.tensors[halved].shape
    mean = net.pool(halved, PoolingMode.AVERAGE, Kernel(height, width))
    last = net.convolution(mean, 12, Kernel())
    net.as_output(last)
    return net.sequence((ifm,), (last,))


@pytest.mark.parametrize("name", [*CORES, *ARRAYS])
def test_a_plain_schedule(name: str) -> None:
    sequence, accelerator = network(), ACCELERATORS[name]
    program = emit(plain(sequence, resolve(name)), accelerator)
    require_right(program, sequence, accelerator)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", [*CORES, *ARRAYS])
def test_schedules_by_chance(name: str, seed: int) -> None:
    sequence, accelerator = network(), ACCELERATORS[name]
    program = emit(by_chance(sequence, accelerator, seed), accelerator)
    require_right(program, sequence, accelerator)
    assert blockdeps(program)[1:] == greatest_blockdeps(program, accelerator)[1:]
    assert needless_waits(program, accelerator) == []


@pytest.mark.parametrize("name", [*CORES, *ARRAYS])
def test_an_output_is_not_written_over_because_the_last_operation_reads_it(name: str) -> None:
    net = Network()
    ifm = net.tensor((1, 1, 96), Role.INPUT)
    first = net.convolution(ifm, 96, Kernel())
    second = net.convolution(first, 22, Kernel())
    net.as_output(first)
    net.as_output(second)
    sequence, accelerator = net.sequence((ifm,), (first, second)), ACCELERATORS[name]
    program = emit(schedule(sequence, resolve(name)), accelerator)
    require_right(program, sequence, accelerator)
