"""What a board says about a compilation: its NPU, a memory mode that it has, its fast memory."""

from __future__ import annotations

from dataclasses import replace

from mizzen.boards import Board, Role, board_names, find_board
from mizzen.compiler.options import DEFAULT_ACCELERATOR, CompileOptions
from mizzen.diagnostics import MizzenError, fail
from mizzen.report.board_figures import BoardFigures
from mizzen.report.energy import EnergyFigure


def on_board(options: CompileOptions, board: Board) -> CompileOptions:
    """Return the options with the board's NPU where none is named. E237 for one that it has not."""
    named = options.accelerator
    if named is None:
        return replace(options, accelerator=own_accelerator(board))
    try:
        board.require_npu(named)
    except MizzenError:
        known = " or ".join(board.accelerators or board.products)
        raise fail(
            "E237",
            f"the accelerator must be an NPU of {board.name}, which has {known}, not {named!r}",
            help=f"leave out --accelerator-config, or name {_others(board, named)}",
        ) from None
    return options


def _others(board: Board, accelerator: str) -> str:
    """Name the boards that have an accelerator; of this board's family alone if one has it."""
    known = [name for name in board_names() if accelerator in find_board(name).accelerators]
    family = [name for name in known if name.startswith(f"{board.name}_")]
    named = " or ".join(family or known)
    return f"a board that has it: {named}" if named else "another board"


def with_memories(options: CompileOptions, board: Board, default_mode: object) -> CompileOptions:
    """Return the options with a memory mode of the board, and its fast memory as the cache.

    Configuration files of one's own say themselves how large the cache is.

    default_mode  what the backend takes where none is asked for; None where it has no modes
    """
    if default_mode is None:
        return options
    asked = options.memory_mode or board.mode_like(str(default_mode))
    chosen = board.mode_of(asked)
    options = replace(options, memory_mode=asked)
    if chosen is None or options.arena_cache_size is not None or options.config is not None:
        return options
    fast = board.memory(Role.FAST, chosen)
    if fast == board.memory(Role.ARENA, chosen):
        return options
    return replace(options, arena_cache_size=fast.size_bytes)


def as_measured(options: CompileOptions, board: Board) -> CompileOptions:
    """Return the options with the system configuration that a board was measured beside.

    One that is asked for stays, and so does that of another NPU.
    """
    measured = board.measured
    own = options.config is not None or options.system_config is not None
    if measured is None or own or options.accelerator_name != measured.accelerator:
        return options
    return replace(options, system_config=measured.system_config)


def figures_of(
    board: Board | None, accelerator: str, clock_hz: float | None
) -> BoardFigures | None:
    """Return what a board says of time and energy; None without one, and without a clock.

    clock_hz  of the NPU, before the board's; E290 for one that is none
    """
    if clock_hz is not None and not clock_hz > 0:
        raise fail(
            "E290",
            f"the NPU's clock must be above 0 Hz, not {clock_hz}",
            help="clock_hz=400e6 is 400 MHz",
        )
    if board is None:
        return None if clock_hz is None else BoardFigures(clock_hz=clock_hz)
    npu = next((npu for npu in board.npus if npu.has(accelerator)), board.npu)
    return BoardFigures(
        board.name,
        float(clock_hz or npu.clock_hz or 0),
        board.cpu.core,
        float(board.cpu.fastest or 0),
        tuple(
            EnergyFigure(each.of.value, each.value, each.error, each.source)
            for each in board.energy
        ),
    )


def own_accelerator(board: Board) -> str:
    """Return the NPU that a board's memories were measured with, else its own or a possible one."""
    if board.measured is not None and any(
        npu.has(board.measured.accelerator) for npu in board.npus
    ):
        return board.measured.accelerator
    if not board.accelerators and board.npu.has(DEFAULT_ACCELERATOR):
        return DEFAULT_ACCELERATOR
    return board.own_accelerator
