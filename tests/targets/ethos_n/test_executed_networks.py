"""What is compiled of networks, executed, gives what the integer reference gives."""

from __future__ import annotations

import pytest

from mizzen.targets.ethos_n.commands_values import Convert, Location, McePle, PleOnly

from .arms_containers import options
from .executing import configured, require_reference

ONE_TOPS = configured("ethos-n78-1tops-2ple")
EIGHT_TOPS = configured("ethos-n78-8tops-2ple")


@pytest.mark.parametrize(
    "second",
    ["y", "again"],
    ids=["the same map", "the same bytes, read as other numbers"],
)
def test_sum_of_a_map_in_sram_with_itself(second: str) -> None:
    compiled = require_reference(
        f"""
input x 1 16 16 16 u8 NHWC 10 1 0.05 -1
op y relu x 20 200
op again reinterp y 30 1 0.02 -1
op z add y {second} 10 1 0.1 -1
output z NHWC
""",
        ONE_TOPS,
    )
    (added,) = (row for row in compiled.commands if isinstance(row, PleOnly))
    assert added.input0.location is added.input1.location is Location.SRAM
    assert added.input0.sram_offset_bytes == added.input1.sram_offset_bytes


def test_reshape_within_sram_in_stripes_of_the_maps_own_extents() -> None:
    compiled = require_reference(
        """
input x 1 2 13 20 s8 NHWC 51 1 0.07 -1
op y pool x 3 3 1 1 1 1 1 1 AVG
op again reshape y 1 1 26 20
op z tanh again
output z NHWC
""",
        ONE_TOPS,
    )
    moves = [row for row in compiled.commands if isinstance(row, Convert)]
    inside = [row for row in moves if row.input.location is Location.SRAM]
    assert [row.output.stripe_shape for row in inside] == [(1, 1, 26, 20)]


def test_input_in_sram_in_stripes_of_columns() -> None:
    """One row of brick groups: the stripes lie behind one another as they would alone."""
    compiled = require_reference(
        """
input x 1 3 13 16 u8 NHWC 50 1 0.02 -1
op y add x x 50 1 0.02 -1
const w 3 3 16 1 u8 HWIM 120 1 0.01 -1
const b 1 1 1 16 s32 NHWC 0 1 0.0002 -1
op z dw y b w 1 1 1 1 1 1 59 1 0.07 -1
output z NHWC
""",
        configured("ethos-n78-8tops-2ple", options=options(["strategy1=0", "strategy3=0"])),
    )
    (made,) = (row for row in compiled.commands if isinstance(row, McePle))
    assert made.input.location is Location.SRAM
    assert (made.input.shape, made.input.stripe_shape) == ((1, 3, 13, 16), (1, 8, 8, 16))


def test_input_in_sram_in_stripes_that_do_not_lie_behind_one_another() -> None:
    compiled = require_reference(
        """
input x 1 16 16 16 u8 NHWC 50 1 0.02 -1
op y add x x 50 1 0.02 -1
const w 3 3 16 1 u8 HWIM 120 1 0.01 -1
const b 1 1 1 16 s32 NHWC 0 1 0.0002 -1
op z dw y b w 1 1 1 1 1 1 59 1 0.07 -1
output z NHWC
""",
        configured(
            "ethos-n78-8tops-2ple",
            options=options(["strategy0=0", "strategy1=0", "strategy3=0"]),
        ),
    )
    (made,) = (row for row in compiled.commands if isinstance(row, McePle))
    assert made.input.location is Location.SRAM
    assert (made.input.shape, made.input.stripe_shape) == ((1, 16, 16, 16), (1, 16, 8, 16))


def test_upsampled_row_that_no_window_sees() -> None:
    """A kernel of one row makes 2H - 1 rows of the 2H that the pass before has upsampled."""
    require_reference(
        """
input x 1 5 6 16 u8 NHWC 20 1 0.07 -1
const w 1 9 16 16 u8 HWIO 120 1 0.01 -1
const b 1 1 1 16 s32 NHWC 0 1 0.0007 -1
op y tconv x b w 0 0 3 4 2 2 92 1 0.05 -1
output y NHWC
""",
        EIGHT_TOPS,
    )


WEIGHTS = """
const w 1 1 16 16 u8 HWIO 120 1 0.01 -1
const b 1 1 1 16 s32 NHWC 0 1 0.001 -1
op sum conv x b w 0 0 0 0 1 1 107 1 0.02 -1
"""
ROUNDINGS = {
    "behind rows that are joined": """
input x 1 5 5 16 u8 NHWC 46 1 0.03 -1
op all concat 2 x x 1 106 1 0.05 -1
op y requant all 122 1 0.07 -1 -
output y NHWC
""",
    "before rows are joined": """
input x 1 5 1 16 u8 NHWC 161 1 0.0125 -1
op narrow requant x 64 1 0.02 -1 -
op y concat 2 narrow x 2 80 1 0.03 -1
output y NHWC
""",
    "of a sum before rows are joined": f"""
input x 1 5 5 16 u8 NHWC 46 1 0.1 -1
{WEIGHTS}
op narrow requant sum 64 1 0.03 -1 -
op y concat 2 narrow x 1 80 1 0.07 -1
output y NHWC
""",
    "of a sum that is reshaped before rows are joined": f"""
input x 1 5 5 16 u8 NHWC 46 1 0.1 -1
{WEIGHTS}
op flat reshape sum 1 25 1 16
op y concat 2 flat flat 2 80 1 0.07 -1
op z concat 1 flat 3 9 1 0.03 -1
output y NHWC
output z NHWC
""",
    "of a sum of one reader that is reshaped before rows are joined": f"""
input x 1 5 5 16 u8 NHWC 46 1 0.1 -1
{WEIGHTS}
op flat reshape sum 1 25 1 16
op other reshape x 1 25 1 16
op y concat 2 flat other 2 80 1 0.07 -1
output y NHWC
""",
    "of rows that are joined, before more are": """
input x 1 5 5 16 u8 NHWC 46 1 0.1 -1
op one requant x 60 1 0.07 -1 -
op all concat 2 one x 1 106 1 0.05 -1
op y concat 2 all all 2 122 1 0.02 -1
op more concat 2 all x 1 9 1 0.03 -1
output y NHWC
output more NHWC
""",
    "of clamped numbers, of which the largest are taken": """
input x 1 8 8 16 u8 NHWC 46 1 0.1 -1
op clamped relu x 40 220
op narrow requant clamped 60 1 0.07 -1 -
op largest pool narrow 2 2 2 2 0 0 0 0 MAX
op y requant largest 9 1 0.11 -1 -
output y NHWC
""",
    "of a sum, of which the largest are taken": f"""
input x 1 8 8 16 u8 NHWC 46 1 0.1 -1
{WEIGHTS}
op narrow requant sum 60 1 0.07 -1 -
op largest pool narrow 2 2 2 2 0 0 0 0 MAX
op y requant largest 9 1 0.11 -1 -
output y NHWC
""",
    "of largest numbers of another type, some around the plane": """
input x 1 16 24 16 u8 NHWC 95 1 0.05 -1
op largest pool x 3 3 2 2 0 1 0 1 MAX
op y requant largest -120 1 0.07 -1 s8
output y NHWC
""",
    "of what is joined along two axes": """
input x 1 16 8 32 u8 NHWC 35 1 0.02 -1
op inner concat 2 x x 3 35 1 0.02 -1
op other requant inner 214 1 0.05 -1 -
op again concat 2 x x 3 35 1 0.02 -1
op outer concat 2 other again 2 105 1 0.03 -1
op y requant outer 143 1 0.0125 -1 -
output y NHWC
""",
    "of parts": """
input x 1 8 10 16 u8 NHWC 46 1 0.1 -1
op parts split x 2 2 5 5
op narrow requant parts.0 60 1 0.07 -1 -
op y concat 2 narrow parts.1 2 122 1 0.03 -1
output y NHWC
""",
    "what nothing reads has no say in": f"""
input x 1 8 8 16 u8 NHWC 46 1 0.1 -1
{WEIGHTS}
op unread tanh sum
op y requant sum 60 1 0.07 -1 -
output y NHWC
""",
}


@pytest.mark.parametrize("name", ROUNDINGS)
def test_roundings(name: str) -> None:
    """The reference rounds once what the compiler rounds once, and twice what it rounds twice."""
    require_reference(ROUNDINGS[name], ONE_TOPS)


@pytest.mark.parametrize(
    ("extents", "off"),
    [
        ("2 2", ["strategy3=0", "strategy6=0", "strategy7=0"]),
        ("2 6000", ["strategy0=0", "strategy1=0"]),
    ],
    ids=["channels", "columns"],
)
@pytest.mark.parametrize("between", ["relu c 0 200", "requant c 0 1 0.06 -1 -"])
def test_sum_in_stripes_that_cannot_be_written_as_rows(
    extents: str, off: list[str], between: str
) -> None:
    """It is requantised before its layout is changed, and so rounded once."""
    compiled = require_reference(
        f"""
input x 1 {extents} 16 u8 NHWC 0 1 0.02 -1
const w 1 1 16 16 u8 HWIO 128 1 0.00390625 -1
const b 1 1 1 16 s32 NHWC 0 1 0.000078125 -1
op c conv x b w 0 0 0 0 1 1 0 1 0.05 -1
op y {between}
op z concat 2 x y 1 0 1 0.02 -1
output z NHWC
""",
        configured("ethos-n78-1tops-2ple", options=options(off)),
    )
    (made,) = (row for row in compiled.commands if isinstance(row, McePle))
    assert made.output.shape[1:] != made.output.stripe_shape[1:]
    assert isinstance(compiled.commands[-1], Convert)


def test_sum_whose_factor_has_no_shift() -> None:
    """The kernel shifts by 31 then: of the first input nothing is left but its sign."""
    require_reference(
        """
input x 1 8 8 16 u8 NHWC 100 1 40000.0 -1
input y 1 8 8 16 u8 NHWC 3 1 1.0 -1
op z add x y 7 1 1.0 -1
output z NHWC
""",
        ONE_TOPS,
    )


def test_part_of_what_is_only_read_otherwise() -> None:
    """It is taken out of a map in DRAM, whatever lies between that and the pass that makes it."""
    compiled = require_reference(
        """
input x 1 8 24 32 u8 NHWC 149 1 0.0125 -1
op narrow requant x 220 1 0.02 -1 -
op same reinterp narrow 220 1 0.02 -1
op parts split same 2 2 16 8
op y pool parts.1 2 2 2 2 0 0 0 0 MAX
output parts.0 NHWC
output y NHWC
""",
        ONE_TOPS,
    )
    made = [row for row in compiled.commands if isinstance(row, McePle)]
    assert [row.input.location for row in made] == [Location.DRAM] * 3


def test_output_that_is_also_read_as_bricks() -> None:
    """Its buffer is rounded up to a brick group; what lies behind the map is nobody's."""
    compiled = require_reference(
        """
input x 1 1 3 48 u8 NHWC 199 1 0.0078125 -1
op parts split x 2 2 1 2
op y reshape parts.0 1 3 4 4
const w 1 1 48 16 u8 HWIO 120 1 0.01 -1
const b 1 1 1 16 s32 NHWC 0 1 0.000078125 -1
op z fc parts.0 b w 151 1 0.1 -1
output y NHWC
output z NHWC
output parts.1 NHWC
""",
        ONE_TOPS,
    )
    assert sorted(row.size_bytes for row in compiled.outputs) == [16, 96, 1024]
