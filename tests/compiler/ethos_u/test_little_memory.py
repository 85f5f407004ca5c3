"""Where less memory is asked for than whole maps take, code of our own does them in stripes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mizzen.compiler.ethos_u.generator.improve import improved
from mizzen.compiler.ethos_u.generator.network import parts_of
from mizzen.compiler.ethos_u.generator.sequences import Source

from mizzen.compiler.ethos_u.search.candidates import rounds
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.targets.ethos_u.generator.cascade import peak_bytes
from mizzen.targets.ethos_u.generator.operations import Sequence
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Search
from mizzen.targets.ethos_u.machine.system_config import resolve
from mizzen.targets.ethos_u.vela.generate import Compiled, NetworkForm, generate

ENOUGH_BYTES = 14_000


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


def begun(configuration: EthosUConfiguration) -> tuple[Compiled, Source, Sequence]:
    data = with_a_large_map_inside()
    compiled = generate(data, configuration)
    assert isinstance(compiled, Compiled)
    (part,) = parts_of(compiled)[1]
    source = Source(data, NetworkForm.TFLITE)
    return compiled, source, source.made(part.program).sequence


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-256"])
def test_code_of_our_own_keeps_to_less_memory(accelerator: str) -> None:
    configuration = resolve(accelerator, memory_mode="Shared_Sram", arena_cache_size=ENOUGH_BYTES)
    compiled, source, whole = begun(configuration)
    assert peak_bytes(whole) > 2 * ENOUGH_BYTES
    (choice,) = improved(compiled, source, configuration).choices
    ours, theirs = choice.own, choice.vela
    assert choice.is_own
    assert ours is not None
    assert theirs is not None
    assert ours.arena_bytes <= theirs.arena_bytes < 1.5 * ENOUGH_BYTES
    assert ours.cycles <= theirs.cycles


@pytest.mark.parametrize("searching", list(Search))
def test_what_does_not_fit_is_not_scheduled_whole(searching: Search) -> None:
    configuration = replace(resolve("ethos-u55-128"), search=searching)
    _, _, whole = begun(configuration)
    taken_bytes = peak_bytes(whole)
    (first, *_) = rounds([whole], configuration, taken_bytes)
    assert first[0] is whole
    found = [row for some in rounds([whole], configuration, taken_bytes // 2) for row in some]
    assert found
    assert all(peak_bytes(row) < taken_bytes for row in found)


def test_what_just_fits_is_done_in_stripes_where_nothing_else_is_taken() -> None:
    configuration = resolve("ethos-u55-128")
    _, _, whole = begun(configuration)
    first, then = rounds([whole], configuration, peak_bytes(whole))
    assert first == [whole]
    assert then
    assert all(peak_bytes(row) < peak_bytes(whole) for row in then)


def test_there_is_always_something_to_schedule() -> None:
    configuration = resolve("ethos-u55-128")
    _, _, whole = begun(configuration)
    without = replace(whole, operations=whole.operations[:1])
    assert [row for some in rounds([without], configuration, 1) for row in some] == [without]
