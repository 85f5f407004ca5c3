"""Work graphs divided into passes: what is fused, where maps stay, what is repaired."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_n.commands_values import Algorithm, Format, Location, Strategy
from mizzen.targets.ethos_n.config import (
    CHOOSABLE_STRATEGIES,
    VARIANTS,
    CompilationOptions,
    VariantConfiguration,
)
from mizzen.targets.ethos_n.lower import lower
from mizzen.targets.ethos_n.lower.work_graph import Mce, Relayout
from mizzen.targets.ethos_n.network import Network
from mizzen.targets.ethos_n.schedule import schedule
from mizzen.targets.ethos_n.schedule.attempt import (
    Attempt,
    ConvertPass,
    McePass,
    Pass,
    PlePass,
    Tile,
)

FOUR_TOPS = VariantConfiguration(VARIANTS["ethos-n78-4tops-4ple"])
ONE_TOPS = VariantConfiguration(VARIANTS["ethos-n78-1tops-2ple"])
Attempted = Callable[..., Attempt]
"""Divides a network in the text form, for FOUR_TOPS or another configuration."""

STRIDED = """
input x 1 64 64 32 u8 NHWC 128 1 0.02 -1
const w 3 3 32 64 u8 HWIO 120 1 0.5 -1
const b 1 1 1 64 s32 NHWC 0 1 0.01 -1
op y conv x b w 1 1 1 1 2 2 110 1 0.7 -1
op z relu y 110 255
op p pool z 2 2 2 2 0 0 0 0 MAX
output p NHWC
"""


@pytest.fixture
def attempted(network_of: Callable[[str], Network]) -> Attempted:
    def attempt(text: str, configuration: VariantConfiguration = FOUR_TOPS) -> Attempt:
        graph = lower(network_of(text.replace("; ", "\n")), configuration.capabilities)
        return schedule(graph, configuration.capabilities, configuration.options)

    return attempt


def kinds(made: Pass) -> list[str]:
    return [type(node.work).__name__ for node in made.nodes]


def without(*strategies: Strategy) -> CompilationOptions:
    return CompilationOptions(strategies=frozenset(CHOOSABLE_STRATEGIES) - set(strategies))


def test_strided_convolution_with_relu_and_maximum(attempted: Attempted) -> None:
    """The example of the package."""
    attempt = attempted(STRIDED)
    first, second = attempt.passes
    assert kinds(first) == ["Relayout", "Mce", "FusedPle"]
    assert kinds(second) == ["Mce", "Clamp", "FusedPle", "Relayout"]
    assert isinstance(first, McePass)
    assert isinstance(second, McePass)
    assert (first.plan.strategy, first.plan.ple_offset_bytes) == (Strategy.STRATEGY_3, 0)
    assert first.plan.input == Tile((1, 64, 64, 32), 131_072, 1, 4096)
    assert first.plan.weights == Tile((1, 1, 32, 1), 2048, 1, 12_288)
    assert first.plan.output == Tile((1, 32, 32, 128), 131_072, 1, 57_344)
    assert attempt.location(first.nodes[-1]) is Location.SRAM
    assert second.plan.input == first.plan.output
    assert second.plan.weights == Tile((3, 3, 128, 64), 86_528, 1, 51_936)
    assert second.plan.output == Tile((1, 16, 16, 64), 16_384, 1, 4096)
    assert attempt.location(second.nodes[-1]) is Location.DRAM
    # A convolution with a stride is computed directly.
    assert second.algorithm is Algorithm.DIRECT


def test_rows_where_not_everything_may_be_worked_on_at_once(attempted: Attempted) -> None:
    options = without(Strategy.STRATEGY_3)
    attempt = attempted(STRIDED, replace(FOUR_TOPS, options=options))
    first, second = attempt.passes
    assert isinstance(first, McePass)
    assert isinstance(second, McePass)
    assert first.plan.strategy is second.plan.strategy is Strategy.STRATEGY_0
    assert (first.plan.input.stripe, first.plan.output.stripe) == (
        (1, 32, 64, 32),
        (1, 16, 32, 128),
    )
    assert attempt.location(first.nodes[-1]) is Location.DRAM
    assert attempt.format(first.nodes[-1]) is Format.FCAF_DEEP


CHAIN = """
input x 1 16 16 16 u8 NHWC 128 1 0.02 -1
const w 3 3 16 16 u8 HWIO 120 1 0.01 -1
const b 1 1 1 16 s32 NHWC 0 1 0.0002 -1
op y conv x b w 1 1 1 1 1 1 110 1 0.04 -1
"""


@pytest.mark.parametrize(
    ("behind", "passes"),
    [
        ("op z relu y 110 200", [["Relayout", "Mce", "Clamp", "Relayout"]]),
        (
            "op z requant y 100 1 0.05 -1 -",
            [["Relayout", "Mce", "Requantization", "Relayout"]],
        ),
        ("op z leaky y 0.1 100 1 0.05 -1", [["Relayout", "Mce", "FusedPle", "Relayout"]]),
        # A bound that comes behind a kernel needs a stage of its own.
        (
            "op p pool y 2 2 2 2 0 0 0 0 MAX; op z relu p 110 200",
            [["Relayout", "Mce", "FusedPle"], ["Mce", "Clamp", "Relayout"]],
        ),
        # A requantisation goes before a kernel that knows nothing of quantisations, and not
        # before one that does.
        (
            "op p pool y 2 2 2 2 0 0 0 0 MAX; op z requant p 100 1 0.05 -1 -",
            [["Relayout", "Mce", "FusedPle", "Requantization", "Relayout"]],
        ),
        (
            "op p sigmoid y; op z requant p 10 1 0.005 -1 -",
            [["Relayout", "Mce", "FusedPle"], ["Mce", "Requantization", "Relayout"]],
        ),
        # Two kernels are two passes.
        (
            "op p sigmoid y; op z pool p 2 2 2 2 0 0 0 0 MAX",
            [["Relayout", "Mce", "FusedPle"], ["Mce", "FusedPle", "Relayout"]],
        ),
        # A map that two read ends its pass.
        (
            "op p relu y 110 200; op z add y p 110 1 0.08 -1",
            [["Relayout", "Mce"], ["Mce", "Clamp"], ["LonePle", "Relayout"]],
        ),
    ],
)
def test_passes_are_as_long_as_can_be(
    attempted: Attempted, behind: str, passes: list[list[str]]
) -> None:
    attempt = attempted(f"{CHAIN}{behind}; output z NHWC")
    assert [kinds(made) for made in attempt.passes] == passes


def test_winograd_gives_way_where_its_stripes_have_no_room(attempted: Attempted) -> None:
    """Of 9 rows only those of a direct convolution's stripes hold what the kernel covers."""
    text = """
input x 1 16 16 16 u8 NHWC 128 1 0.02 -1
const w 3 3 16 16 u8 HWIO 120 1 0.01 -1
const b 1 1 1 16 s32 NHWC 0 1 0.0002 -1
op y conv x b w 1 1 1 1 1 1 110 1 0.04 -1
output y NHWC
"""
    (made,) = attempted(text).passes
    assert isinstance(made, McePass)
    assert made.algorithm is Algorithm.WINOGRAD
    options = CompilationOptions(block_configs=frozenset(made.plan.block for _ in (0,)))
    (again,) = attempted(text, replace(FOUR_TOPS, options=options)).passes
    assert isinstance(again, McePass)
    assert again.algorithm is Algorithm.WINOGRAD
    large = next(block for block in CompilationOptions().block_configs if str(block) == "32x8")
    options = CompilationOptions(block_configs=frozenset({large}))
    (direct,) = attempted(text, replace(FOUR_TOPS, options=options)).passes
    assert isinstance(direct, McePass)
    # Winograd has accumulators for half of such a block.
    assert (direct.algorithm, direct.plan.block) == (Algorithm.DIRECT, large)


def test_sums_take_both_maps_from_one_memory(attempted: Attempted) -> None:
    """One of the maps is an input, in DRAM: the other is demanded there, if it does not copy."""
    attempt = attempted(f"{CHAIN}op z add x y 110 1 0.08 -1; output z NHWC")
    (added,) = [made for made in attempt.passes if isinstance(made, PlePass)]
    assert len({attempt.location(source) for source in added.nodes[0].inputs}) == 1


def test_parts_of_a_concatenation_are_written_to_dram_uncompressed(attempted: Attempted) -> None:
    attempt = attempted(
        """
input x 1 32 32 16 u8 NHWC 128 1 0.02 -1
op y sigmoid x
op z tanh x
op c concat 2 y z 3 100 1 0.01 -1
output c NHWC
"""
    )
    nodes = {node for made in attempt.passes for node in made.nodes}
    parts = [node for node in nodes if any(type(u.work).__name__ == "Concat" for u in node.users)]
    assert len(parts) == 2
    assert all(attempt.in_dram(part) and not attempt.compressed(part) for part in parts)


def test_what_is_given_twice_has_two_buffers(attempted: Attempted) -> None:
    attempt = attempted(f"{CHAIN}output y NHWC; output y NHWC")
    assert [type(made) for made in attempt.passes].count(ConvertPass) >= 1
    assert len({made.nodes[-1] for made in attempt.passes}) == len(attempt.passes)


def test_an_input_that_is_given_back_is_copied(attempted: Attempted) -> None:
    (made,) = attempted("input x 1 16 16 16 u8 NHWC 128 1 0.02 -1; output x NHWC").passes
    assert isinstance(made, ConvertPass)
    assert kinds(made) == ["Copy"]


def test_stripes_of_a_copy_are_cut_where_there_is_no_room(attempted: Attempted) -> None:
    """448 KiB of SRAM; the map is 1 MiB: two parts along H would do, if they had room beside."""
    attempt = attempted("input x 1 128 128 64 u8 NHWC 128 1 0.02 -1; output x NHWC", ONE_TOPS)
    (made,) = attempt.passes
    assert isinstance(made, ConvertPass)
    assert made.stripe == (1, 48, 128, 64)


def test_networks_without_room_name_their_operations(attempted: Attempted) -> None:
    """Only strategy 3 is allowed, and everything at once is 4 MiB."""
    options = CompilationOptions(strategies=frozenset({Strategy.STRATEGY_3}))
    text = """
input x 1 256 256 64 u8 NHWC 128 1 0.02 -1
op y sigmoid x
output y NHWC
"""
    with pytest.raises(MizzenError) as caught:
        attempted(text, replace(FOUR_TOPS, options=options))
    found = caught.value.diagnostic
    assert (found.code, "operations 0, 1" in found.message) == ("E972", True)


def test_every_node_is_of_one_pass_or_of_none(attempted: Attempted) -> None:
    attempt = attempted(STRIDED)
    nodes = [node for made in attempt.passes for node in made.nodes]
    assert len(nodes) == len(set(nodes))
    assert all(attempt.of(node).made_by is made for made in attempt.passes for node in made.nodes)
    assert {type(node.work) for node in nodes} >= {Mce, Relayout}
