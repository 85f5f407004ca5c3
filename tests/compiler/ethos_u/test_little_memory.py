"""Where less memory is asked for than whole maps take, code of our own does them in stripes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mizzen.artifact.steps import read_network
from mizzen.compiler.ethos_u.search.candidates import rounds
from mizzen.compiler.ethos_u.search.searching import (
    MORE_MEMORY_GAIN,
    STAGING_ROOM,
    hazard_of,
    searched,
)
from mizzen.frontends.tflite.lower import lower as lower_network
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.targets.ethos_u.generator.cascade import peak_bytes
from mizzen.targets.ethos_u.generator.lower import lower
from mizzen.targets.ethos_u.generator.operations import Sequence
from mizzen.targets.ethos_u.generator.schedule import plain_bytes
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.config import Search
from mizzen.targets.ethos_u.machine.system_config import resolve

ENOUGH_BYTES = 14_000
FLASH = "Ethos_U85_SYS_Flash_High"


def with_a_large_map_inside() -> bytes:
    """Return 32 x 32 maps of 4, 24 and 24 channels, then 16 x 16 of 8."""
    net, numbers = NetworkBuilder(), np.random.default_rng(1)
    sizes = [(32, 4), (32, 24), (32, 24), (16, 8)]
    maps = [net.tensor(f"map{n}", (1, s, s, c), "int8", 0.1) for n, (s, c) in enumerate(sizes)]
    for place, (step, before, after) in enumerate(((1, 4, 24), (1, 24, 24), (2, 24, 8))):
        weights = numbers.integers(-127, 128, (after, 3, 3, before)).astype(np.int8)
        rows = [net.constant(f"weights{place}", weights, 0.01)]
        rows.append(net.constant(f"bias{place}", np.zeros(after, np.int32), 0.001))
        options = {"padding": 0, "stride_h": step, "stride_w": step}
        given = ("Conv2DOptions", options)
        net.operator("CONV_2D", [maps[place], *rows], [maps[place + 1]], given)
    return net.finish([maps[0]], [maps[-1]])


def sequence_of(data: bytes, arch: Arch = Arch.U55) -> Sequence:
    graph = lower_network(read_network(data, "network")).graph
    sequence = lower(graph, (), arch).sequence
    assert sequence is not None
    return sequence


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-256"])
def test_code_of_our_own_keeps_to_less_memory(accelerator: str) -> None:
    configuration = resolve(accelerator, memory_mode="Shared_Sram", arena_cache_size=ENOUGH_BYTES)
    whole = sequence_of(with_a_large_map_inside())
    assert peak_bytes(whole) > 2 * ENOUGH_BYTES
    program = searched(whole, configuration)
    assert program.cost.memory_bytes < 1.5 * ENOUGH_BYTES
    assert hazard_of(program.program) == ""


@pytest.mark.parametrize("searching", list(Search))
def test_what_does_not_fit_is_not_scheduled_whole(searching: Search) -> None:
    configuration = replace(resolve("ethos-u55-128"), search=searching)
    whole = sequence_of(with_a_large_map_inside())
    taken_bytes = peak_bytes(whole)
    (first, *_) = rounds([whole], configuration, taken_bytes)
    assert first[0] is whole
    found = [row for some in rounds([whole], configuration, taken_bytes // 2) for row in some]
    assert found
    assert all(peak_bytes(row) < taken_bytes for row in found)


def test_what_just_fits_is_done_in_stripes_where_nothing_else_is_taken() -> None:
    configuration = resolve("ethos-u55-128")
    whole = sequence_of(with_a_large_map_inside())
    first, then = rounds([whole], configuration, peak_bytes(whole))
    assert first == [whole]
    assert then
    assert all(peak_bytes(row) < peak_bytes(whole) for row in then)


def test_there_is_always_something_to_schedule() -> None:
    configuration = resolve("ethos-u55-128")
    whole = sequence_of(with_a_large_map_inside())
    without = replace(whole, operations=whole.operations[:1])
    assert [row for some in rounds([without], configuration, 1) for row in some] == [without]


def test_constants_are_staged_in_more_memory_where_that_pays(
    model_file: Callable[[str], Path],
) -> None:
    sequence = sequence_of(model_file("kws_ref_model.tflite").read_bytes(), Arch.U85)
    limit_bytes = plain_bytes(sequence)
    whole = searched(
        sequence, resolve("ethos-u85-256", system_config=FLASH, memory_mode="Shared_Sram")
    )
    assert limit_bytes < whole.cost.memory_bytes <= STAGING_ROOM * limit_bytes
    less = resolve(
        "ethos-u85-256",
        system_config=FLASH,
        memory_mode="Shared_Sram",
        arena_cache_size=limit_bytes,
    )
    kept = searched(sequence, less)
    assert kept.cost.memory_bytes <= limit_bytes
    cycles = [each.cost.cycles + each.cost.vela_cycles for each in (whole, kept)]
    saved = 1 - cycles[0] / cycles[1]
    grown = whole.cost.memory_bytes / kept.cost.memory_bytes - 1
    assert saved > MORE_MEMORY_GAIN * grown
    assert hazard_of(whole.program) == ""
