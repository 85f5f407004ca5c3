"""The page of a board in the documentation: how a network comes onto it."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.boards.board import Board, Page
from mizzen.boards.missing import missing_keys
from mizzen.boards.reading import board_names, find_board


def pages() -> dict[str, str]:
    """Return the page of each board that has one, by its name."""
    boards = map(find_board, board_names())
    return {
        board.name: "\n\n".join(_parts(board, board.page)) + "\n"
        for board in boards
        if board.page is not None
    }


def sections(page: Page, operators: str) -> Iterator[str]:
    """Return the sections that the documentation and an exported project share."""
    yield f"## Files\n\n{page.files}"
    yield f"## Model and arena\n\n{page.memory}"
    yield f"## Driver\n\n{page.driver}"
    yield f"## Operators\n\n{operators}"
    yield f"## Measure\n\n{page.measure}"


def _parts(board: Board, page: Page) -> Iterator[str]:
    usual, *others = board.modes
    yield f"# {board.title}"
    yield (
        f"Bring a network onto {board.title}: compile it, copy the files, start the NPU, measure. "
        f"The board's facts and their sources are in the [reference](../../reference/boards.md#"
        f"{board.name})."
    )
    yield _facts(board)
    if board.sdk is not None and others:
        yield (
            "In the vendor's software, model and arena lie where the section "
            "[Model and arena](#model-and-arena) says. Another memory mode needs `--bare-metal`."
        )
    yield f"## Compile and export\n\n```sh\n{_commands(board, page)}\n```"
    yield (
        "The project has this page with the network's own sizes and operators, as "
        "`ONTO_YOUR_BOARD.md`."
    )
    yield from sections(
        page,
        "With `--to tflm`, `operators.cc` makes a resolver with the operators that the network "
        "has, and no others. With `--to c`, `kernels.c` does.",
    )
    yield f"## Tried\n\n{page.tried}"
    if missing := [f"`{each.place}`" for each in missing_keys(board, usual)]:
        yield (
            "## Not public\n\n`--bare-metal` makes a firmware of its own. It needs "
            f"{', '.join(missing)}, which no public document gives; the error E441 shows how to "
            "give them."
        )


def _facts(board: Board) -> str:
    lines = [
        ("NPU", ", ".join(board.accelerators)),
        ("processor", board.cpu.core),
        *(
            (" or ".join(mode.names[:1]), f"model in {model}, arena in {arena}")
            for mode in board.modes
            for model, arena, *_ in [tuple(mode.places.values())]
        ),
    ]
    if board.sdk is not None:
        lines.append(("software", f"[{board.sdk.title}]({board.sdk.source}), {board.sdk.version}"))
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {said} |" for name, said in lines)])


def _commands(board: Board, page: Page) -> str:
    return (
        f"mizzen compile model.tflite --board {board.name}\n"
        f"mizzen export output/model_vela.tflite --to {page.runtime} --board {board.name} \\\n"
        "    --output-dir project"
    )
