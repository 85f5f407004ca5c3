"""Chains of U85 by hand: what links read from memory, and what the last one writes over."""

from __future__ import annotations

from mizzen.diagnostics import Diagnostic
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.machine.program import Program

from .maker import Maker, Shape

U85 = "ethos-u85-256"
SHAPE: Shape = (4, 4, 16)
BLOCK: Shape = (1, 4, 16)
BYTES = 4 * 4 * 16
IN, OTHER, MIDDLE, OUT = 0, 0x200, 0x400, 0x800
CHAINED, INSIDE = 2, 1
"""Storage of a chained map, and the buffer's number, which is the region of all maps here."""


class Chains(Maker):
    """Adds links: sums of what comes through the chain and a map."""

    def link(self, second: int, target: int | None, shape: Shape = SHAPE, blockdep: int = 0) -> int:
        """Add a sum with the map at `second` of `shape`; into the next buffer without a target."""
        self.map("IFM", 0, SHAPE, storage=CHAINED, region=INSIDE)
        self.map("IFM2", second, shape)
        goes_on = target is None
        self.map("OFM", target or 0, SHAPE, storage=CHAINED if goes_on else 0)
        self.add("SET_IFM_BROADCAST")
        axes = [size == 1 != whole for size, whole in zip(shape, SHAPE, strict=True)]
        mode = sum(bit for bit, once in zip((1, 2, 4), axes, strict=True) if once)
        self.add("SET_IFM2_BROADCAST", broadcast_mode=mode)
        self.add("SET_BLOCKDEP", blockdep=blockdep)
        return self.operation("OP_ELEMENTWISE", "ADD", elementwise_mode=1)


def races(program: Program) -> list[Diagnostic]:
    return [row.diagnostic for row in find_hazards(program).findings]


def after_a_copy(blockdep: int) -> tuple[list[Diagnostic], int]:
    """A copy, then a chain whose first operation is free of it and whose link is not."""
    maker = Chains(U85)
    maker.copy(IN, MIDDLE, SHAPE, block=BLOCK)
    first = maker.copy(OTHER, 0, SHAPE, block=BLOCK, blockdep=blockdep, ofm_storage=CHAINED)
    maker.link(MIDDLE, OUT)
    return races(maker.program([(IN, BYTES), (OTHER, BYTES)], (OUT, BYTES))), first


def test_a_link_starts_when_the_first_of_its_chain_may() -> None:
    """Its own BLOCKDEP of 0 is no guard; with 4 each row may be read before it is written."""
    assert after_a_copy(3)[0] == []
    (found,), first = after_a_copy(4)
    assert found.code == "E671"
    assert "IFM2 must read bytes 1024..1279" in found.message
    assert found.help == f"set BLOCKDEP to 3 for the command at word {first}"


def over(second: int, shape: Shape = SHAPE, links: int = 1) -> list[str]:
    """A chain whose last result lies over the second operand of its first link."""
    maker = Chains(U85)
    maker.copy(OTHER, 0, SHAPE, block=BLOCK, ofm_storage=CHAINED)
    maker.link(second, OUT if links == 1 else None, shape)
    for left in range(links - 1, 0, -1):
        maker.link(OTHER, None if left > 1 else OUT)
    inputs = [(OTHER, BYTES), (second, shape[0] * shape[1] * shape[2])]
    return [row.code for row in races(maker.program(inputs, (OUT, BYTES)))]


def test_a_chain_may_write_where_each_block_has_been_read() -> None:
    """In place, or one row ahead of what is still needed, after any number of links."""
    for links in (1, 2, 3):
        assert over(OUT, links=links) == []
        assert over(OUT + 64, links=links) == []
        assert over(OUT - 64, links=links) == ["E672"]


def test_a_chain_must_not_write_over_what_every_block_reads() -> None:
    """One row of 4 x 16 that all blocks add lies where the first block's result goes."""
    assert over(OUT, (1, 4, 16)) == ["E672"]
    assert over(OUT + 192, (1, 4, 16)) == []
    assert over(OUT + 128, (1, 4, 16)) == ["E672"]
