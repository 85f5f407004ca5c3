"""What an emitted program holds beside words: constants, tables, origins; and what is refused."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError, Origin
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.generator.emit.tables import assign
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Blocking,
    Box,
    Copy,
    Elementwise,
    Fetch,
    Issue,
    Kernel,
    Map,
    Place,
    Role,
    Schedule,
    Sequence,
    Shape,
    Staging,
    Table,
)
from mizzen.targets.ethos_u.generator.schedule import plain
from mizzen.targets.ethos_u.generator.shared_buffer import CORES
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.machine.commands_values import Layout, PoolingMode
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from mizzen.targets.ethos_u.machine.program import Program
from mizzen.targets.ethos_u.machine.system_config import resolve

from .chance_schedules import by_chance
from .program_judges import require_right
from .sequences import Network

U55, U65 = ACCELERATORS["ethos-u55-128"], ACCELERATORS["ethos-u65-512"]


def scheduled(sequence: Sequence) -> Schedule:
    return plain(sequence, resolve("ethos-u55-128"))


def convolutions(count: int) -> Sequence:
    """Return that many convolutions one after the other."""
    net = Network()
    at = first = net.tensor((4, 6, 16), Role.INPUT)
    for _ in range(count):
        at = net.convolution(at, 16, Kernel())
    net.as_output(at)
    return net.sequence((first,), (at,))


def names(program: Program) -> list[str]:
    return [row.name for row in program.instructions]


# Constants and origins


def test_equal_constants_lie_once_and_at_multiples_of_16() -> None:
    net = Network()
    x = net.tensor((1, 1, 7), Role.INPUT)
    bytes_ = np.arange(7, dtype=np.uint8)
    ones = [net.tensor((1, 1, 7), Role.CONSTANT, data=bytes_.copy()) for _ in range(3)]
    other = net.tensor((1, 1, 7), Role.CONSTANT, data=bytes_[::-1].copy())
    at = x
    for constant in (*ones, other):
        at = net.add(at, constant)
    net.as_output(at)
    program = emit(scheduled(net.sequence((x,), (at,))), U55)
    assert program.region_bytes[0] == 32
    assert program.constants[0].tolist() == [*range(7), *[0] * 9, *range(6, -1, -1), *[0] * 9]


def test_a_schedule_has_one_stream() -> None:
    schedule = by_chance(convolutions(4), U65, 3)
    first, second = emit(schedule, U65), emit(schedule, U65)
    assert first.words.tobytes() == second.words.tobytes()
    assert first.constants[0].tobytes() == second.constants[0].tobytes()


def test_registers_are_written_when_they_change() -> None:
    program = emit(scheduled(convolutions(5)), U55)
    held: dict[str, object] = {}
    for row in program.instructions:
        if row.name.startswith("SET_"):
            assert held.get(row.name) != row.values, row
            held[row.name] = row.values
    assert names(program).count("SET_KERNEL_HEIGHT_M1") == 1
    assert names(program)[-1] == "OP_STOP"


def test_only_u65_has_a_parallel_mode() -> None:
    modes: dict[str, object] = {}
    for name in CORES:
        first = emit(plain(convolutions(1), resolve(name)), ACCELERATORS[name]).instructions[0]
        modes[name] = first.values.get("parallel_mode")
    assert modes == {name: None for name in CORES if "u55" in name} | {
        "ethos-u65-256": 0,
        "ethos-u65-512": 1,
    }


def test_transfers_belong_to_what_follows() -> None:
    sequence = convolutions(2)
    whole = scheduled(sequence)
    staging = Staging(Place(1, whole.region_bytes[1]), 4096)
    fetches = [Fetch(row, 0, len(whole.blobs[row].data), 0, 2048 * row) for row in range(2)]
    issues = [
        replace(item, staging=0, offset_bytes=2048 * index)
        for index, item in enumerate(whole.items)
        if isinstance(item, Issue)
    ]
    schedule = replace(
        whole, stagings=(staging,), items=(fetches[0], fetches[1], *issues),
        region_bytes={1: whole.region_bytes[1] + 4096},
    )  # fmt: skip
    program = emit(schedule, U55)
    starts = [4 * row.offset_words for row in program.instructions
              if row.name in ("OP_DMA_START", "OP_CONV")]  # fmt: skip
    assert [program.origins[at].operator for at in starts] == [0, 1, 0, 1]
    require_right(program, sequence, U55)


# Lookup tables


def data(name: str, slots: int = 1) -> bytes:
    return name.encode() * (256 * slots)


def loads(core: str, uses: list[bytes | None]) -> int:
    return sum(use is not None and use.is_loaded for use in assign(uses, CORES[core].keeps_tables))


def test_tables_stay_where_there_is_room() -> None:
    a, b, none = data("a"), data("b"), None
    uses = [a, none, b, none, a, b, a]
    assert loads("ethos-u55-128", uses) == 2
    assert loads("ethos-u55-64", uses) == 4


def test_large_tables_take_slots_of_their_size() -> None:
    uses = [data("a"), data("w", 4), data("b"), data("v", 4), data("h", 8)]
    slots = [use.slot for use in assign(uses, keeps_tables=True) if use is not None]
    assert [slots[1] % 4, slots[3] % 4, slots[4]] == [0, 0, 0]
    assert slots[1] != slots[0] // 4 * 4


def test_no_order_of_slots_needs_fewer_loads() -> None:
    """Of tables of one size, the one that is needed latest has to go: no choice loads less."""
    rng = random.Random(1)
    tables = [data(chr(ord("a") + index), 4) for index in range(4)]
    for _ in range(30):
        uses: list[bytes | None] = [rng.choice(tables) for _ in range(7)]
        assert loads("ethos-u55-128", uses) == fewest(uses, 2)


def fewest(uses: list[bytes | None], room: int) -> int:
    """Return the fewest loads with room for so many tables, by trying every choice."""
    best = len(uses)
    for choices in product(range(room), repeat=len(uses)):
        held: list[bytes | None] = [None] * room
        count = 0
        for use, choice in zip(uses, choices, strict=True):
            if use not in held:
                held[choice] = use
                count += 1
        best = min(best, count)
    return best


def test_a_table_is_loaded_before_operations_that_it_does_not_disturb() -> None:
    net = Network()
    x = net.tensor((4, 6, 16), Role.INPUT)
    first = net.convolution(x, 16, Kernel())
    second = net.convolution(first, 16, Kernel())
    table = Activation(-128, 127, Table(bytes(range(256))))
    last = net.pool(second, PoolingMode.AVERAGE, Kernel(), activation=table)
    net.as_output(last)
    sequence = net.sequence((x,), (last,))
    for name, wanted in (
        ("ethos-u55-128", ["OP_DMA_START", "OP_CONV", "OP_CONV", "OP_DMA_WAIT", "OP_POOL"]),
        (
            "ethos-u55-64",
            ["OP_CONV", "OP_CONV", "OP_KERNEL_WAIT", "OP_DMA_START", "OP_DMA_WAIT", "OP_POOL"],
        ),
    ):
        program = emit(plain(sequence, resolve(name)), ACCELERATORS[name])
        found = [row for row in names(program) if row.startswith("OP_")]
        assert found == [*wanted, "OP_STOP"]
        require_right(program, sequence, ACCELERATORS[name])


def test_small_machines_do_not_overlap_what_overwrites_tables() -> None:
    net = Network()
    x, y = net.tensor((4, 6, 16), Role.INPUT), net.tensor((4, 6, 16), Role.INPUT)
    table = Activation(-128, 127, Table(bytes(range(256))))
    first = net.pool(x, PoolingMode.AVERAGE, Kernel(), activation=table)
    second = net.convolution(y, 16, Kernel())
    net.as_output(first)
    net.as_output(second)
    sequence = net.sequence((x, y), (first, second))
    found: list[int] = []
    for name in ("ethos-u55-64", "ethos-u55-128"):
        program = emit(plain(sequence, resolve(name)), ACCELERATORS[name])
        values = [row.values["blockdep"] for row in program.instructions if "BLOCKDEP" in row.name]
        found.append(values[-1])
    assert found == [0, 3]


# Outputs over inputs


def two_steps() -> Sequence:
    net = Network()
    x = net.tensor((8, 8, 16), Role.INPUT)
    first = net.convolution(x, 16, Kernel())
    second = net.convolution(first, 16, Kernel(), depthwise=True)
    third = net.add(second, x)
    net.as_output(third)
    return net.sequence((x,), (third,))


def placed(sequence: Sequence, offsets: list[int]) -> Schedule:
    """Return a plain schedule with tensors at other offsets."""
    found = scheduled(sequence)
    places = tuple(Place(1, offset) for offset in offsets)
    return replace(found, places=places, region_bytes={1: 8192})


def test_an_output_may_lie_exactly_over_the_input() -> None:
    sequence = two_steps()
    program = emit(placed(sequence, [0, 1024, 1024, 1024]), U55)
    require_right(program, sequence, U55)


def blocked(schedule: Schedule, block: Shape) -> Schedule:
    """Return a schedule with another block of its second operation."""
    items = [
        replace(item, blocking=Blocking(block))
        if isinstance(item, Issue) and item.operation == 1
        else item
        for item in schedule.items
    ]
    return replace(schedule, items=tuple(items))


def test_an_output_over_what_is_still_read_is_refused() -> None:
    schedule = blocked(placed(two_steps(), [0, 1024, 1040, 4096]), (2, 4, 16))
    with pytest.raises(MizzenError) as caught:
        emit(schedule, U55)
    assert caught.value.diagnostic.render() == (
        "error[E288]: the output must not be written over what later blocks of its operation read\n"
        "  at   operator 1\n"
        "  help give the output a place of its own, or exactly that of the input"
    )


def emitted(schedule: Schedule) -> Program | None:
    """Return the program; None if an output lies over what is still read."""
    try:
        return emit(schedule, U55)
    except MizzenError as error:
        if error.diagnostic.code != "E288":
            raise
        return None


def test_the_checker_has_nothing_against_outputs_that_are_not_refused() -> None:
    rng = random.Random(4)
    found: list[Program | None] = []
    for _ in range(60):
        schedule = placed(two_steps(), [0, 1024, 16 * rng.randint(0, 128), 4096])
        block = rng.randint(1, 8), 2 * rng.randint(1, 4), 16
        found.append(emitted(blocked(schedule, block)))
    programs = [row for row in found if row is not None]
    codes = {row.code for program in programs for row in find_hazards(program).diagnostics}
    assert "E672" not in codes
    assert 10 < len(programs) < 50


# Refusals


def refusal(schedule: Schedule) -> str:
    with pytest.raises(MizzenError) as caught:
        emit(schedule, U55)
    diagnostic = caught.value.diagnostic
    return f"{diagnostic.code} {diagnostic.origin}: {diagnostic.message}"


def first_issue(schedule: Schedule, **changes: object) -> Schedule:
    issue, *others = schedule.items
    assert isinstance(issue, Issue)
    return replace(schedule, items=(replace(issue, **changes), *others))


def test_refusals() -> None:
    schedule = scheduled(convolutions(1))
    assert refusal(first_issue(schedule, blocking=Blocking((32, 64, 128)))) == (
        "E286 operator 0: a block must fit the shared buffer of ethos-u55-128, not 32 x 64 x 128"
    )
    assert refusal(first_issue(schedule, blocking=None)) == (
        "E289 operator 0: the schedule must give the operation a block"
    )
    assert refusal(first_issue(schedule, blob=None)) == (
        "E289 operator 0: the schedule must give a convolution its constants"
    )
    assert refusal(replace(schedule, places=(None, Place(1, 0)))) == (
        'E289 operator 0: the schedule must say where tensor "t0" lies'
    )
    bricks = replace(schedule, layouts=(Layout.NHWC, Layout.NHCWB16))
    assert refusal(replace(bricks, places=(Place(1, 0), Place(1, 1000)))) == (
        'E287 operator 0: a map of tensor "t1" in NHCWB16 must begin at a multiple of 16 bytes and '
        "of 16 channels, not at byte 1000"
    )


def test_addresses_are_aligned() -> None:
    schedule = scheduled(convolutions(1))
    staged = replace(
        first_issue(schedule, staging=0, offset_bytes=8), stagings=(Staging(Place(1, 4096), 4096),)
    )
    assert refusal(staged) == (
        "E287 operator 0: weights and scales must begin at a multiple of 16 bytes, not at byte "
        f"{4096 + 8 + schedule.blobs[0].cores[0].weights_offset_bytes}"
    )
    net = Network()
    wide = np.dtype(np.int16)
    x = net.tensor((4, 6, 16), Role.INPUT, dtype=wide)
    last = net.tensor((4, 6, 16), Role.OUTPUT, dtype=wide)
    net.pool(net.whole(x), PoolingMode.MAX, Kernel())
    net.operations[-1] = replace(net.operations[-1], ofm=net.whole(last))
    odd = replace(
        scheduled(net.sequence((x,), (last,))), places=(Place(1, 0), Place(1, 1001), None)
    )
    assert refusal(odd) == (
        'E287 operator 0: a map of tensor "t1" must begin at a multiple of 2 bytes, not at byte '
        "1001"
    )


def test_transfers_of_u55_are_aligned() -> None:
    """At the end of a tensor there is room; anywhere else a transfer would write over others."""
    net = Network()
    x, y = net.tensor((1, 1, 40), Role.INPUT), net.tensor((1, 1, 40), Role.OUTPUT)
    net.operations.append(Copy(Origin(), x, 0, y, 0, 40))
    whole = net.sequence((x,), (y,))
    net.operations = [Copy(Origin(), x, 0, y, 0, 24), Copy(Origin(), x, 16, y, 16, 24)]
    parts = net.sequence((x,), (y,))
    assert refusal(scheduled(parts)) == (
        "E287 unknown place: a transfer of Ethos-U55 must have ends and a length that are "
        "multiples of 16 bytes, not 24 bytes from 0 to 48"
    )
    for sequence, name, accelerator in (
        (whole, "ethos-u55-128", U55),
        (whole, "ethos-u65-512", U65),
        (parts, "ethos-u65-512", U65),
    ):
        program = emit(plain(sequence, resolve(name)), accelerator)
        require_right(program, sequence, accelerator)


def test_bricks_cannot_leave_out_columns() -> None:
    net = Network()
    x = net.tensor((4, 8, 16), Role.INPUT)
    middle = net.convolution(x, 16, Kernel())
    half = Map(Box(middle, (4, 4, 16), (0, 0, 0), (1, 2)), np.dtype(np.int8), 3)
    last = net.pool(half, PoolingMode.MAX, Kernel())
    net.as_output(last)
    schedule = scheduled(net.sequence((x,), (last,)))
    assert refusal(replace(schedule, layouts=(Layout.NHWC, Layout.NHCWB16, Layout.NHWC))) == (
        'E287 operator 1: a map of tensor "t1" in NHCWB16 must have every column, not every second '
        "or later one"
    )


def test_the_first_operand_is_not_repeated() -> None:
    net = Network()
    x, row = net.tensor((4, 6, 16), Role.INPUT), net.tensor((1, 6, 16), Role.INPUT)
    last = net.add(x, row)
    net.as_output(last)
    right = net.sequence((x, row), (last,))
    require_right(emit(scheduled(right), U55), right, U55)
    (operation,) = right.operations
    assert isinstance(operation, Elementwise)
    assert isinstance(operation.ifm2, Map)
    turned = replace(operation, ifm=operation.ifm2, ifm2=operation.ifm)
    assert refusal(scheduled(replace(right, operations=(turned,)))) == (
        "E287 operator 0: the first operand of an elementwise operation must have the shape of the "
        "output, 4 x 6 x 16, not 1 x 6 x 16"
    )


def test_a_place_of_nothing_is_no_matter() -> None:
    """A tensor that no operation touches needs no place."""
    net = Network()
    x = net.tensor((4, 6, 16), Role.INPUT)
    net.tensor((4, 6, 16))
    last = net.pool(x, PoolingMode.MAX, Kernel())
    net.as_output(last)
    sequence = net.sequence((x,), (last,))
    require_right(emit(scheduled(sequence), U55), sequence, U55)
