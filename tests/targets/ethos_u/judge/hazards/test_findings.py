"""Races and bad accesses in streams made by hand: what is found, and in which words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mizzen.diagnostics import Diagnostic, MizzenError
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.judge.hazards.findings import Misfit
from mizzen.targets.ethos_u.machine.program import Program

from .maker import CONSTANT_BYTES, SIZE, Maker

SHAPE = (4, 4, 16)
BYTES = 4 * 4 * 16
IN, MIDDLE, OUT = 0, 0x400, 0x800
FAMILIES = ("ethos-u55-128", "ethos-u65-512", "ethos-u85-256")


def races(program: Program) -> list[Diagnostic]:
    """Return findings about order; blocks and buffers here are as small as the cases need."""
    findings = find_hazards(program).findings
    return [found.diagnostic for found in findings if not isinstance(found, Misfit)]


def texts(program: Program) -> list[str]:
    return [found.render() for found in races(program)]


def codes(program: Program) -> list[str]:
    return [found.code for found in races(program)]


def after_a_transfer(accelerator: str, wait: int | None) -> tuple[Program, int, int]:
    maker = Maker(accelerator)
    dma = maker.dma(IN, MIDDLE, BYTES)
    if wait is not None:
        maker.add("OP_DMA_WAIT", k=wait)
    kernel = maker.copy(MIDDLE, OUT, SHAPE)
    return maker.program([(IN, BYTES)], (OUT, BYTES)), dma, kernel


@pytest.mark.parametrize("accelerator", FAMILIES)
def test_a_kernel_must_wait_for_a_transfer_that_it_reads(accelerator: str) -> None:
    program, dma, kernel = after_a_transfer(accelerator, None)
    assert texts(program) == [
        f"error[E671]: OP_POOL: IFM must read bytes 1024..1279 of region 1 after destination of "
        f"OP_DMA_START at word {dma} has written them, and nothing makes it wait\n"
        f'  at   net.tflite, command at word {kernel}, operator 1 AVERAGE_POOL_2D -> "t{kernel}"\n'
        f"  help put DMA_WAIT 0 before the command at word {kernel}"
    ]
    assert texts(after_a_transfer(accelerator, 0)[0]) == []
    assert codes(after_a_transfer(accelerator, 1)[0]) == ["E671"]


def test_a_finding_as_data() -> None:
    program, dma, kernel = after_a_transfer("ethos-u85-256", None)
    report = find_hazards(program).as_dict()
    (finding,) = find_hazards(program).findings
    assert report == {
        "accelerator": "ethos-u85-256",
        "operations": 2,
        "findings": [
            {
                **finding.diagnostic.as_dict(),
                "first": {
                    "command": "OP_DMA_START",
                    "offset_words": dma,
                    "access": "destination",
                    "operator": 0,
                    "kind": "RESHAPE",
                },
                "second": {
                    "command": "OP_POOL",
                    "offset_words": kernel,
                    "access": "IFM",
                    "operator": 1,
                    "kind": "AVERAGE_POOL_2D",
                },
                "memory": "region 1",
                "first_byte": 1024,
                "last_byte": 1279,
                "bytes": 256,
            }
        ],
    }


@pytest.mark.parametrize("accelerator", FAMILIES)
def test_a_transfer_must_wait_for_kernels_before_it(accelerator: str) -> None:
    maker = Maker(accelerator)
    reader = maker.copy(IN, OUT, SHAPE)
    maker.copy(OUT, MIDDLE, SHAPE)
    dma = maker.dma(0, IN + 32, 64, source_region=0)
    (found,) = texts(maker.program([(IN, BYTES)], (OUT, BYTES)))
    assert found.startswith(
        f"error[E672]: OP_DMA_START: destination must write bytes 32..95 of region 1 after IFM of "
        f"OP_POOL at word {reader} has read them, and nothing makes it wait\n"
    )
    assert found.endswith(f"\n  help put KERNEL_WAIT 1 before the command at word {dma}")


def test_two_writes_in_either_order() -> None:
    maker = Maker("ethos-u55-128")
    kernel = maker.copy(IN, OUT, SHAPE)
    maker.dma(0, OUT + 16, 16, source_region=0)
    (found,) = texts(replace(maker.program([(IN, BYTES)], (OUT, BYTES)), origins={}))
    assert found.startswith(
        f"error[E673]: OP_DMA_START: destination must write bytes 2064..2079 of region 1 after OFM "
        f"of OP_POOL at word {kernel} has written them, and nothing makes it wait\n"
    )


def chained_transfers(accelerator: str, between: int) -> list[str]:
    """A transfer, others, then one that reads what the first wrote."""
    maker = Maker(accelerator)
    maker.dma(IN, MIDDLE, 16)
    for number in range(between):
        maker.dma(0, OUT + 0x100 + 16 * number, 16, source_region=0)
    maker.dma(MIDDLE, OUT, 16)
    return codes(maker.program([(IN, 16)], (OUT, 16)))


def test_so_many_transfers_are_outstanding_as_the_family_has_room_for() -> None:
    """With the last one, 1 on U55, 2 on U65 and 4 on U85."""
    assert chained_transfers("ethos-u55-128", 0) == []
    assert chained_transfers("ethos-u65-256", 0) == ["E671"]
    assert chained_transfers("ethos-u65-256", 1) == []
    assert chained_transfers("ethos-u85-256", 2) == ["E671"]
    assert chained_transfers("ethos-u85-256", 3) == []


@pytest.mark.parametrize("accelerator", FAMILIES)
def test_a_kernel_reads_what_the_one_before_it_has_not_finished(accelerator: str) -> None:
    """Two copies in blocks of one row: job f of the second needs block f of four of the first."""

    def made(blockdep: int) -> tuple[Program, int, int]:
        maker, block = Maker(accelerator), (1, 4, 16)
        first = maker.copy(IN, MIDDLE, SHAPE, block=block)
        second = maker.copy(MIDDLE, OUT, SHAPE, block=block, blockdep=blockdep)
        return maker.program([(IN, BYTES)], (OUT, BYTES)), first, second

    # Block 3 - f of the end and job f: nearest are f and 3 - f, which add up to 3.
    assert texts(made(3)[0]) == []
    if accelerator == "ethos-u85-256":
        program, first, second = made(4)
        assert texts(program) == [
            f"error[E671]: OP_POOL: IFM must read bytes 1024..1279 of region 1 after OFM of "
            f"OP_POOL at word {first} has written them, and nothing makes it wait\n"
            f"  at   net.tflite, command at word {second}, operator 1 AVERAGE_POOL_2D -> "
            f'"t{second}"\n'
            f"  help set BLOCKDEP to 3 for the command at word {second}"
        ]


def test_blockdep_of_wider_blocks() -> None:
    """One block each: any overlap is a race."""
    maker = Maker("ethos-u55-128")
    maker.copy(IN, MIDDLE, SHAPE)
    second = maker.copy(MIDDLE, OUT, SHAPE, blockdep=1)
    (found,) = texts(maker.program([(IN, BYTES)], (OUT, BYTES)))
    assert found.endswith(f"\n  help set BLOCKDEP to 0 for the command at word {second}")


def test_a_third_kernel_starts_when_the_first_is_done() -> None:
    maker = Maker("ethos-u55-128")
    maker.copy(IN, MIDDLE, SHAPE)
    maker.copy(IN, OUT + 0x400, SHAPE)
    maker.copy(MIDDLE, OUT, SHAPE, blockdep=3)
    assert texts(maker.program([(IN, BYTES)], (OUT, BYTES))) == []


def with_table(accelerator: str, **between: int) -> Program:
    """A table is loaded, an operation without one works, then the table is used."""
    maker = Maker(accelerator)
    end = 1024 * (maker.accelerator.shram_kib or 2)
    maker.dma(0, end - 2048, 256, source_region=0, inside=True)
    maker.add("OP_DMA_WAIT", k=0)
    maker.copy(IN, MIDDLE, SHAPE, table=0)
    if between:
        maker.copy(IN, OUT + 0x400, SHAPE, **between)
    maker.copy(MIDDLE, OUT, SHAPE, table=0)
    return maker.program([(IN, BYTES)], (OUT, BYTES))


def test_accumulators_overwrite_tables_where_no_banks_are_kept_for_them() -> None:
    """Accumulators of 16 x 16 32-bit sums take two buffers of one bank each, from AB_START."""
    assert texts(with_table("ethos-u55-32")) == []
    assert texts(with_table("ethos-u55-32", ab_start=12)) == []
    (found,) = texts(with_table("ethos-u55-32", ab_start=14))
    assert found.startswith(
        "error[E674]: OP_POOL: lookup table must read what is written before, and nothing has "
        "written bytes 14336..14591 of the NPU's internal memory\n"
    )
    (race, _) = texts(with_table("ethos-u55-32", ab_start=14, blockdep=1))
    assert race.startswith(
        "error[E672]: OP_POOL: shared buffer must write bytes 14336..14591 of the NPU's internal "
        "memory after lookup table of OP_POOL at word "
    )


def test_what_nothing_wrote() -> None:
    maker = Maker("ethos-u85-256")
    at = maker.copy(IN, OUT, SHAPE)
    found = texts(maker.program([(IN, BYTES - 8)], (OUT, BYTES + 4)))
    assert found == [
        "error[E674]: OP_POOL: IFM must read what is written before, and nothing has written "
        "bytes 248..255 of region 1\n"
        f'  at   net.tflite, command at word {at}, operator 0 AVERAGE_POOL_2D -> "t{at}"\n'
        "  help the command stream is damaged, or what made it is wrong",
        "error[E676]: output 'output' must be written by the program, and nothing has written "
        "bytes 2304..2307 of region 1\n"
        '  at   "output"\n'
        "  help the command stream is damaged, or what made it is wrong",
    ]


def test_a_copy_of_what_nothing_wrote_is_no_use_of_it() -> None:
    maker = Maker("ethos-u55-128")
    maker.dma(IN, MIDDLE, BYTES + 16)
    maker.add("OP_DMA_WAIT", k=0)
    maker.copy(MIDDLE, OUT, SHAPE)
    assert texts(maker.program([(IN, BYTES)], (OUT, BYTES))) == []
    assert codes(maker.program([(IN, BYTES - 1)], (OUT, BYTES))) == ["E674"]


@pytest.mark.parametrize(
    ("source", "target", "more", "expected"),
    [
        (
            CONSTANT_BYTES - 8,
            OUT,
            {"source_region": 0},
            "source must stay inside region 0, which has 1024 bytes, not touch bytes 1024..1031 "
            "of region 0",
        ),
        (
            IN,
            SIZE - 4,
            {},
            "destination must stay inside region 1, which has 4096 bytes, not touch bytes "
            "4096..4107 of region 1",
        ),
        (
            IN,
            0,
            {"region": 5},
            "destination must stay inside the program's memory, which has no region 5",
        ),
        (
            IN,
            24 * 1024 - 8,
            {"inside": True},
            "destination must stay inside the NPU's internal memory, which has 24576 bytes, not "
            "touch bytes 24576..24583 of the NPU's internal memory",
        ),
    ],
)
def test_outside_of_what_is_declared(
    source: int, target: int, more: dict[str, int], expected: str
) -> None:
    maker = Maker("ethos-u55-128")
    at = maker.dma(source, target, 16, **more)
    found = texts(maker.program([(IN, BYTES)], (IN, BYTES)))
    assert (
        f"error[E675]: OP_DMA_START: {expected}\n"
        f'  at   net.tflite, command at word {at}, operator 0 RESHAPE -> "t{at}"\n'
        "  help the command stream is damaged, or what made it is wrong"
    ) in found


def test_an_output_over_the_operations_own_input() -> None:
    """Rows move down by one: block 0 is written over what block 1 reads."""
    maker, row = Maker("ethos-u85-256"), 4 * 16
    at = maker.copy(IN, IN + row, SHAPE, block=(1, 4, 16))
    assert texts(maker.program([(IN, BYTES)], (IN + row, BYTES))) == [
        f"error[E672]: OP_POOL: OFM must write bytes 64..255 of region 1 after IFM of OP_POOL at "
        f"word {at} has read them, and nothing makes it wait\n"
        f'  at   net.tflite, command at word {at}, operator 0 AVERAGE_POOL_2D -> "t{at}"\n'
        "  help write elsewhere: no wait orders the blocks of an operation or a chain"
    ]


@pytest.mark.parametrize("target", [IN, IN - 64])
def test_an_output_over_what_is_read_by_then(target: int) -> None:
    """In place, and rows moved up by one."""
    maker = Maker("ethos-u55-128")
    maker.copy(IN + 64, target + 64, SHAPE, block=(1, 4, 16))
    assert texts(maker.program([(IN + 64, BYTES)], (target + 64, BYTES))) == []


def test_an_output_in_place_whose_own_pixels_overlap() -> None:
    """Each pixel begins within the one before it: a block changes what the next reads."""
    maker, layout = Maker("ethos-u55-128"), {"room_x": -4}
    maker.copy(IN, IN, (1, 2, 8), block=(1, 1, 8), ifm_layout=layout, ofm_layout=layout)
    found, itself = texts(maker.program([(IN, 12)], (IN, 12)))
    assert itself.startswith("error[E673]")
    assert found.startswith(
        "error[E672]: OP_POOL: OFM must write bytes 4..7 of region 1 after IFM of OP_POOL at word "
    )


def test_an_output_whose_elements_lie_over_one_another() -> None:
    """Nothing says which block is written last where pixels, or rows, begin within others."""
    for layout in ({"room_x": -4}, {"room_y": -8}):
        maker = Maker("ethos-u55-128")
        at = maker.copy(IN, OUT, (2, 2, 8), block=(1, 2, 8), ofm_layout=layout)
        (found,) = texts(maker.program([(IN, BYTES)], (OUT, 20)))
        assert found.startswith("error[E673]: OP_POOL: OFM must write bytes 2048..")
        assert f"after OFM of OP_POOL at word {at} has written them" in found


def test_an_output_in_pieces_that_do_not_touch_is_none_of_that() -> None:
    """Rows that lie between the columns of others, and tiles in any order."""
    for layout in ({"room_x": 8, "room_y": -24}, {"split": (1, 1, 2), "bases": (0, 16, 0)}):
        maker = Maker("ethos-u55-128")
        maker.copy(IN, OUT, (2, 2, 8), block=(1, 2, 8), ofm_layout=layout)
        assert texts(maker.program([(IN, BYTES)], (OUT, 32))) == []


def catching_up(lead: int) -> list[str]:
    """A copy of 5,200 blocks to rows that are 16 bytes longer, `lead` bytes before its input."""
    maker, shape = Maker("ethos-u85-128"), (130, 40, 16)
    room = {"room_y": 16, "split": (130, 130, 40)}
    maker.copy(0x1000, 0x1000 - lead, shape, block=(1, 1, 16), ofm_layout=room)
    program = maker.program([(0x1000, 130 * 640)], (0x1000 - lead, 64))
    return codes(replace(program, region_bytes={0: CONSTANT_BYTES, 1: 0x20000}))


def test_an_output_that_catches_up_with_its_input_late() -> None:
    """After 125 rows 2,000 bytes are used up; after 130 rows 2,080 are not more than needed."""
    assert catching_up(2000) == ["E672"]
    assert catching_up(2064) == []
    assert catching_up(640) == ["E672"]


CHAINED = 2


def chain(blockdep: int, waits: bool) -> list[str]:
    """A transfer and a kernel, then two kernels with a chain buffer between them."""
    maker = Maker("ethos-u85-256")
    maker.copy(IN, MIDDLE, SHAPE)
    maker.copy(MIDDLE, 0, SHAPE, blockdep=blockdep, ofm_storage=CHAINED)
    maker.copy(0, OUT, SHAPE, blockdep=blockdep, ifm_storage=CHAINED)
    if waits:
        maker.add("OP_KERNEL_WAIT", n=0)
    maker.dma(OUT, 0xC00, BYTES)
    return codes(maker.program([(IN, BYTES)], (OUT, BYTES)))


def test_a_chain_is_one_operation_of_the_queue() -> None:
    assert chain(0, waits=True) == []
    assert chain(1, waits=True) == ["E671"]
    assert chain(0, waits=False) == ["E671"]


def test_a_chain_buffer_holds_nothing_of_an_earlier_chain() -> None:
    maker = Maker("ethos-u85-256")
    maker.copy(IN, 0, SHAPE, ofm_storage=CHAINED)
    maker.copy(0, OUT, SHAPE, ifm_storage=CHAINED)
    maker.copy(IN, MIDDLE, SHAPE)
    maker.copy(0, 0xC00, SHAPE, ifm_storage=CHAINED)
    (found,) = texts(maker.program([(IN, BYTES)], (OUT, BYTES)))
    assert found.startswith(
        "error[E674]: OP_POOL: IFM must read what is written before, and nothing has written "
        "bytes 0..255 of chain buffer 1\n"
    )


def test_a_register_that_was_never_set() -> None:
    maker = Maker("ethos-u55-128")
    maker.operation("OP_POOL", "MAX_POOL_2D")
    with pytest.raises(MizzenError) as caught:
        find_hazards(maker.program([], (0, 0)))
    assert str(caught.value) == (
        "error[E611]: OP_POOL: the operation needs SET_OFM_HEIGHT_M1, which no command has set\n"
        '  at   net.tflite, command at word 0, operator 0 MAX_POOL_2D -> "t0"\n'
        "  help the command stream is damaged or was made for another NPU; compile it again"
    )


def test_a_branch_cannot_be_checked() -> None:
    maker = Maker("ethos-u85-256")
    maker.add("OP_BRANCH")
    with pytest.raises(MizzenError) as caught:
        find_hazards(maker.program([], (0, 0)))
    assert str(caught.value) == (
        "error[E677]: OP_BRANCH: a stream must have no branches to be checked for hazards\n"
        "  at   command at word 0\n"
        "  help no compiler makes such a stream; check what made it"
    )


@pytest.mark.parametrize(("word", "code"), [(None, "E604"), (0xDEAD, "E605")])
def test_a_program_must_say_for_which_accelerator_it_is(word: int | None, code: str) -> None:
    program = after_a_transfer("ethos-u55-128", 0)[0]
    hardware = None
    if word is not None:
        assert program.hardware is not None
        hardware = replace(program.hardware, config_word=word)
    with pytest.raises(MizzenError) as caught:
        find_hazards(replace(program, hardware=hardware))
    assert caught.value.diagnostic.code == code
