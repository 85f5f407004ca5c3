"""Read boards from their TOML files; every key is checked, and an unknown one is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

from mizzen.boards.board import Board
from mizzen.boards.building import FORM, build
from mizzen.boards.inheriting import inherited
from mizzen.diagnostics import did_you_mean, fail
from mizzen.documents import content_of, parse, values_of

FOLDER = Path(__file__).parent
SUFFIX = ".toml"

MOST_PARENTS = 8
PAGE_BYTES = 0x1000


ALIASES = {
    "ra8p1": "renesas_ra8p1",
    "pse84": "infineon_pse84",
    "imx93": "nxp_imx93",
    "m55m1": "nuvoton_m55m1",
}
"""Short names of boards that are built in."""


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
    name = ALIASES.get(name, name)
    find_known(name)
    return read_board(FOLDER / f"{name}{SUFFIX}")


def find_known(name: str) -> None:
    """Refuse a name that no board has: E414."""
    if name not in board_names():
        raise fail(
            "E414",
            f"the board must be {', '.join(board_names())} or a file .toml, not {name!r}",
            help=did_you_mean(name, (*board_names(), *ALIASES)),
        )


def read_board(path: Path) -> Board:
    """Read a board's file. E410 if it cannot be read, E411 to E413 for what is wrong in it."""
    from mizzen.boards.file_format import BoardKeys

    values = inherited(path.name, _values(path), _parent_of(path))
    board = build(parse(BoardKeys, values, path.name, FORM), path.name)
    _check_overlaps(path.name, board)
    return board


def _parent_of(path: Path) -> Callable[[str], Mapping[str, object]]:
    """Return a reader of the boards that a file inherits: by name, or by a path beside the file."""

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
        return inherited(parent.name, _values(parent), lambda above: read(above, depth + 1))

    return read


def _values(path: Path) -> dict[str, object]:
    return values_of(content_of(path, FORM), str(path), FORM)


@dataclass(frozen=True, slots=True)
class _Range:
    name: str
    start: int
    end: int


def _check_overlaps(file: str, board: Board) -> None:
    """E413 where two things lie at one address, which then answers for neither."""
    ranges = [
        _Range(memory.name, base, base + memory.size_bytes)
        for memory in board.mapped
        for base in memory.bases
    ]
    if board.console is not None:
        ranges += [
            _Range("uart", base, base + PAGE_BYTES)
            for base in (board.console.base, board.console.alias)
            if base is not None
        ]
    ranges += [
        _Range("npu", npu.address, npu.address + PAGE_BYTES)
        for npu in board.npus
        if npu.address is not None
    ]
    for one, other in combinations(ranges, 2):
        if one.start < other.end and other.start < one.end:
            raise fail(
                "E413",
                f"{file}: {one.name} and {other.name} must lie apart, and both have address "
                f"{max(one.start, other.start):#010x}",
            )
