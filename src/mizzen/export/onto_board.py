"""The page ``ONTO_YOUR_BOARD.md`` of a project: what people do with it on the board."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mizzen.boards import Board
from mizzen.boards.how_to import sections
from mizzen.export.drop_in import FOLDER
from mizzen.export.project import Project

NAME = "ONTO_YOUR_BOARD.md"


def with_page(project: Project, board: Board, accelerator: str | None) -> Project:
    """Return a project with the page of its board; as it is where the board's file has none."""
    if board.page is None:
        return project
    text = "\n\n".join(_parts(project, board, accelerator)) + "\n"
    return replace(project, files={**project.files, NAME: text.encode()})


def _parts(project: Project, board: Board, accelerator: str | None) -> Iterator[str]:
    assert board.page is not None, "the board has a page"
    yield f"# Onto your board: {board.title}"
    yield _facts(project, board, accelerator)
    yield from sections(board.page, _resolver(project))
    yield f"## Check\n\n{_check(project)}"


def _facts(project: Project, board: Board, accelerator: str | None) -> str:
    mode = board.mode(project.memory_mode)
    rows = [
        ("NPU", accelerator or "not used: nothing in the network is for it"),
        ("memory mode", project.memory_mode),
    ]
    rows += [
        (role.value, f"{size:,} bytes in {board.memory(role, mode).name}")
        for role, size in project.needed.items()
        if size
    ]
    if board.sdk is not None:
        rows.append(("software", f"[{board.sdk.title}]({board.sdk.source}), {board.sdk.version}"))
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {said} |" for name, said in rows)])


def _resolver(project: Project) -> str:
    if not project.kernels:
        return "The NPU computes the whole network: no kernels for the processor are needed."
    names = ", ".join(f"`{name}`" for name in project.kernels)
    if f"{FOLDER}/operators.cc" in project.files:
        return f"`operators.cc` makes a resolver with the operators that the network has: {names}."
    return f"The network needs these operators of the runtime: {names}."


def _check(project: Project) -> str:
    if f"{FOLDER}/mizzen_example.c" not in project.files:
        return "Compare the outputs on the board with those of `mizzen run` on the same inputs."
    if not project.inferences:
        return "The example executes one inference of zeros and shows the outputs."
    return (
        f"The example executes {count(project.inferences)}, and compares every byte with what "
        "the simulated NPU gave. It ends with the line `mizzen: ok`. If it ends with an error, "
        "`mizzen doctor` says which of its causes it is."
    )


def count(inferences: int) -> str:
    """Return a number of inferences in words."""
    return "1 inference" if inferences == 1 else f"{inferences:,} inferences"
