"""Read boards from their TOML files; every key is checked, and an unknown one is refused."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Mapping
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
from mizzen.boards.inheriting import inherited
from mizzen.boards.table import Table
from mizzen.diagnostics import fail

FOLDER = Path(__file__).parent
SUFFIX = ".toml"

LARGEST_FILE_BYTES = 1 << 20
"""No board's file is nearly as long; what is longer is something else."""

MOST_PARENTS = 8
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
    find_known(name)
    return read_board(FOLDER / f"{name}{SUFFIX}")


def find_known(name: str) -> None:
    """Refuse a name that no board has: E414."""
    if name not in board_names():
        close = difflib.get_close_matches(name, board_names(), n=1)
        raise fail(
            "E414",
            f"the board must be {', '.join(board_names())} or a file .toml, not {name!r}",
            help=f"did you mean {close[0]}?" if close else None,
        )


def read_board(path: Path) -> Board:
    """Read a board's file. E410 if it cannot be read, E411 to E413 for what is wrong in it."""
    board = _board(Table(path.name, "", inherited(path.name, _parse(path), _parent_of(path))))
    _check_overlaps(path.name, board)
    return board


def _parent_of(path: Path) -> Callable[[str], Mapping[str, object]]:
    """Return what reads boards that a file inherits: by name, or by a path beside the file."""

    def read(name: str, depth: int = 1) -> Mapping[str, object]:
        if not name.endswith(SUFFIX):
            find_known(name)
        parent = path.parent / name if name.endswith(SUFFIX) else FOLDER / f"{name}{SUFFIX}"
        if depth > MOST_PARENTS:
            raise fail(
                "E443",
                f"{path.name}: boards must inherit at most {MOST_PARENTS} others, one of the other",
                help="do any of them inherit one another?",
            )
        return inherited(parent.name, _parse(parent), lambda above: read(above, depth + 1))

    return read


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
    """Return a board; one that places firmware says all that firmware needs."""
    placed = file.has("placement")
    memories = tuple(_memory(table, placed) for table in file.tables("memory"))
    names = tuple(memory.name for memory in memories)
    board = Board(
        name=file.text("name"),
        title=file.text("title"),
        cpu=_cpu(file.table("cpu"), placed),
        memories=memories,
        places=_places(file.table("placement"), OF_BOARD, names) if placed else {},
        npu=_npu(file.table("npu"), placed),
        console=_uart(file.table("uart")) if placed or file.has("uart") else None,
        timing_adapters=tuple(_window(table) for table in file.tables("timing_adapter")),
        modes=tuple(_mode(table, names, placed) for table in file.tables("memory_mode")),
        ports=tuple(_ports(table) for table in file.tables("ports")),
    )
    file.finish()
    if not board.modes:
        raise file.wrong("memory_mode", "be given at least once", "nothing")
    return board


def _cpu(table: Table, placed: bool) -> Cpu:
    external, clocked = (placed or table.has(key) for key in ("interrupts", "clock_hz"))
    cpu = Cpu(
        core=table.text("core"),
        external=table.whole("interrupts", 1, 480) if external else None,
        fastest=table.whole("clock_hz", 1, 10**10) if clocked else None,
        qemu=table.optional_text("qemu"),
    )
    table.finish()
    return cpu


def _memory(table: Table, placed: bool) -> Memory:
    size_bytes = table.whole("size_kib", 4, ADDRESS_LIMIT >> 10) << 10
    addressed = placed or table.has("base")
    memory = Memory(
        name=table.name("name"),
        address=_base(table, "base", size_bytes) if addressed else None,
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


def _npu(table: Table, placed: bool) -> Npu:
    addressed, wired = placed or table.has("base"), placed or table.has("irq")
    npu = Npu(
        address=_base(table, "base", 2 * PAGE_BYTES) if addressed else None,
        alias=_alias(table, 2 * PAGE_BYTES),
        interrupt=table.whole("irq", 0, 479) if wired else None,
        products=tuple(table.choices("products", PRODUCTS)),
        accelerators=tuple(table.texts("accelerators")) if table.has("accelerators") else (),
        clock_hz=table.whole("clock_hz", 1, 10**10) if table.has("clock_hz") else None,
        driver=table.optional_text("driver"),
    )
    for name in npu.accelerators:
        if not name.startswith(tuple(f"{product}-" for product in npu.products)):
            raise table.wrong("accelerators", f"be of {', '.join(npu.products)}", repr(name))
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


def _mode(table: Table, memories: tuple[str, ...], placed: bool) -> MemoryMode:
    queued, reached = placed or table.has("qconfig"), placed or table.has("regions")
    regions = table.wholes("regions", REGION_COUNT, PORT_SETTINGS - 1) if reached else ()
    mode = MemoryMode(
        names=tuple(table.texts("names")),
        places=_places(table, OF_MODE, memories),
        queue=table.whole("qconfig", 0, PORT_SETTINGS - 1) if queued else None,
        regions=tuple(regions),
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
    ranges = [
        _Range(row.name, base, base + row.size_bytes)
        for row in board.memories
        if row.address is not None
        for base in row.bases
    ]
    if board.console is not None:
        ranges += [
            _Range("uart", base, base + PAGE_BYTES)
            for base in (board.console.base, board.console.alias)
            if base is not None
        ]
    if board.npu.address is not None:
        ranges.append(_Range("npu", board.npu.address, board.npu.address + PAGE_BYTES))
    for one, other in combinations(ranges, 2):
        if one.start < other.end and other.start < one.end:
            raise fail(
                "E413",
                f"{file}: {one.name} and {other.name} must lie apart, and both have address "
                f"{max(one.start, other.start):#010x}",
            )
