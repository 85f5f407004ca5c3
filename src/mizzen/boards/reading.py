"""Read boards from their TOML files; every key is checked, and an unknown one is refused."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

from mizzen.boards.board import (
    OF_BOARD,
    OF_MODE,
    REGION_COUNT,
    Board,
    Cpu,
    Memory,
    MemoryKind,
    MemoryMode,
    Npu,
    PortLimits,
    Ports,
    Role,
    Uart,
    UartKind,
    Window,
)
from mizzen.boards.table import Table
from mizzen.diagnostics import fail

FOLDER = Path(__file__).parent
SUFFIX = ".toml"

LARGEST_FILE_BYTES = 1 << 20
"""No board's file is nearly as long; what is longer is something else."""

PAGE_BYTES = 0x1000
ADDRESS_LIMIT = 1 << 32
PRODUCTS = ("ethos-u55", "ethos-u65", "ethos-u85")
PORT_SETTINGS = 4
U85_PORTS = 2


@cache
def board_names() -> tuple[str, ...]:
    """Return the names of the boards that are built in."""
    return tuple(sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}")))


def find_board(name: str) -> Board:
    """Return a board by its name, or by the path of its file, which ends with ``.toml``.

    E410 for a file that cannot be read, E411 to E413 for what is wrong in it, E414 for a name that
    no board has.
    """
    if name.endswith(SUFFIX):
        return read_board(Path(name))
    if name not in board_names():
        close = difflib.get_close_matches(name, board_names(), n=1)
        raise fail(
            "E414",
            f"the board must be {', '.join(board_names())} or a file .toml, not {name!r}",
            help=f"did you mean {close[0]}?" if close else None,
        )
    return read_board(FOLDER / f"{name}{SUFFIX}")


def read_board(path: Path) -> Board:
    """Read a board's file. E410 if it cannot be read, E411 to E413 for what is wrong in it."""
    board = _board(Table(path.name, "", _parse(path)))
    _check_overlaps(path.name, board)
    return board


def _parse(path: Path) -> dict[str, object]:
    try:
        if path.stat().st_size > LARGEST_FILE_BYTES:
            raise fail("E410", f"{path} must be a board's file of at most 1 MiB")
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        message = f"{path} must be a board's file in TOML: {reason or 'nested too deeply'}"
        raise fail("E410", message) from None


def _board(file: Table) -> Board:
    memories = tuple(_memory(table) for table in file.tables("memory"))
    names = tuple(memory.name for memory in memories)
    board = Board(
        name=file.text("name"),
        title=file.text("title"),
        cpu=_cpu(file.table("cpu")),
        memories=memories,
        places=_places(file.table("placement"), OF_BOARD, names),
        npu=_npu(file.table("npu")),
        uart=_uart(file.table("uart")),
        timing_adapters=tuple(_window(table) for table in file.tables("timing_adapter")),
        modes=tuple(_mode(table, names) for table in file.tables("memory_mode")),
        ports=tuple(_ports(table) for table in file.tables("ports")),
    )
    file.finish()
    if not board.modes:
        raise file.wrong("memory_mode", "be given at least once", "nothing")
    return board


def _cpu(table: Table) -> Cpu:
    cpu = Cpu(
        core=table.text("core"),
        interrupts=table.whole("interrupts", 1, 480),
        clock_hz=table.whole("clock_hz", 1, 10**10),
        qemu=table.optional_text("qemu"),
    )
    table.finish()
    return cpu


def _memory(table: Table) -> Memory:
    size_bytes = table.whole("size_kib", 4, ADDRESS_LIMIT >> 10) << 10
    memory = Memory(
        name=table.name("name"),
        base=_base(table, "base", size_bytes),
        alias=_alias(table, size_bytes),
        size_bytes=size_bytes,
        kind=MemoryKind(table.choice("kind", [kind.value for kind in MemoryKind])),
        writable=table.boolean("writable"),
        npu=table.boolean("npu"),
    )
    if size_bytes % PAGE_BYTES:
        raise table.wrong("size_kib", "be a multiple of 4", str(size_bytes >> 10))
    table.finish()
    return memory


def _base(table: Table, key: str, size_bytes: int) -> int:
    base = table.whole(key, 0, ADDRESS_LIMIT - size_bytes)
    if base % PAGE_BYTES:
        raise table.wrong(key, f"be a multiple of {PAGE_BYTES:#x}", f"{base:#x}")
    return base


def _alias(table: Table, size_bytes: int) -> int | None:
    return _base(table, "alias", size_bytes) if table.has("alias") else None


def _places(table: Table, roles: tuple[Role, ...], memories: tuple[str, ...]) -> dict[Role, str]:
    places = {role: table.choice(role.value, memories) for role in roles}
    if roles is OF_BOARD:
        table.finish()
    return places


def _npu(table: Table) -> Npu:
    npu = Npu(
        base=_base(table, "base", 2 * PAGE_BYTES),
        alias=_alias(table, 2 * PAGE_BYTES),
        irq=table.whole("irq", 0, 479),
        products=tuple(table.choices("products", PRODUCTS)),
    )
    table.finish()
    return npu


def _uart(table: Table) -> Uart:
    kind = UartKind(table.choice("kind", [kind.value for kind in UartKind]))
    uart = Uart(kind, _base(table, "base", PAGE_BYTES), _alias(table, PAGE_BYTES))
    table.finish()
    return uart


def _window(table: Table) -> Window:
    size = table.whole("size_bytes", 4, PAGE_BYTES)
    base = table.whole("base", 0, ADDRESS_LIMIT - size)
    alias = table.whole("alias", 0, ADDRESS_LIMIT - size) if table.has("alias") else None
    window = Window(table.name("name"), base, alias, size)
    table.finish()
    return window


def _mode(table: Table, memories: tuple[str, ...]) -> MemoryMode:
    mode = MemoryMode(
        names=tuple(table.texts("names")),
        places=_places(table, OF_MODE, memories),
        qconfig=table.whole("qconfig", 0, PORT_SETTINGS - 1),
        regions=tuple(table.wholes("regions", REGION_COUNT, PORT_SETTINGS - 1)),
    )
    table.finish()
    return mode


def _ports(table: Table) -> Ports:
    product = table.choice("product", PRODUCTS)
    is_u85 = product == PRODUCTS[2]
    rows = U85_PORTS if is_u85 else PORT_SETTINGS
    reads = table.wholes("reads", rows, 64, least=1)
    writes = table.wholes("writes", rows, 32, least=1)
    beats = table.wholes("beats", rows, 2)
    attributes = tuple(table.wholes("attributes", PORT_SETTINGS, 127)) if is_u85 else ()
    table.finish()
    limits = tuple(PortLimits(*row) for row in zip(reads, writes, beats, strict=True))
    return Ports(product, limits, attributes)


@dataclass(frozen=True, slots=True)
class _Range:
    name: str
    start: int
    end: int


def _check_overlaps(file: str, board: Board) -> None:
    """E413 where two things lie at one address, which then answers for neither."""
    memories = [
        _Range(row.name, base, base + row.size_bytes)
        for row in board.memories
        for base in row.bases
    ]
    devices = [("npu", board.npu, 2 * PAGE_BYTES), ("uart", board.uart, PAGE_BYTES)]
    ranges = [
        *memories,
        *(
            _Range(name, base, base + size)
            for name, row, size in devices[1:]
            for base in (row.base, row.alias)
            if base is not None
        ),
        _Range("npu", board.npu.base, board.npu.base + PAGE_BYTES),
    ]
    for one, other in combinations(ranges, 2):
        if one.start < other.end and other.start < one.end:
            raise fail(
                "E413",
                f"{file}: {one.name} and {other.name} must lie apart, and both have address "
                f"{max(one.start, other.start):#010x}",
            )
