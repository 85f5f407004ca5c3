"""A project of C for one element of a mapped network."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.boards import Role, board_header, find_board, linker_script
from mizzen.diagnostics import fail
from mizzen.mesh.execution.cutting import cut
from mizzen.mesh.export.element import element_files
from mizzen.mesh.export.kernels import Containers
from mizzen.mesh.export.recorded import recorded_source
from mizzen.mesh.export.recording import Recording
from mizzen.mesh.export.tiles import has_form, operations_of
from mizzen.mesh.machine import ElementKind, Overflow
from mizzen.mesh.network.network import Layer
from mizzen.mesh.program import Compute, ElementProgram, MeshProgram
from mizzen.ops.control_flow import Custom
from mizzen.package.c.kernel_rows import kernel_table, sources_of
from mizzen.package.firmware import Sources, copied

BOARD = "corstone300"
CORE = "cortex-m33"
"""What Unicorn emulates of the board's cores: it has no vectors (`mizzen emulate`)."""

SOURCES = (
    Sources(
        "mesh",
        (*("main.c", "mesh_array.c", "mesh_box.c", "recorded_port.c"), "*.h", "Makefile", "host/*"),
    ),
    Sources("board", ("*.c", "*.h"), "board/"),
)

RUNTIME = ("mizzen.c", "arguments.c", "cache.c", "file.c", "status_text.c")
"""Of the C runtime, besides its kernels and its NPU."""

MACHINE = """\
/* The accelerator of this element: made by Mizzen. */
#ifndef MESH_MACHINE_H
#define MESH_MACHINE_H

#define MESH_ACCUMULATOR_BITS {bits}
#define MESH_ACCUMULATOR_SATURATES {saturates}

#endif
"""


def export_element(
    program: MeshProgram, element: int, recorded: Recording | None = None
) -> dict[str, bytes]:
    """Return the files of a project by their path in it.

    recorded  what the firmware replays and compares, from `record`; without it, it does nothing

    E550 for layers without a form of C, all of them named; E551 for an element without a program
    and for networks of shapes only; E552 for a tile with too little scratch memory; E531 for tiles
    that their layer cannot be cut to; E553 for a recording without the element; E554 for more than
    the board can hold.
    """
    element_program = _row(program, element)
    _require_recorded(element_program, recorded)
    containers = Containers()
    _require_forms(program, element_program, containers)
    kind = program.machine.kind_of(element)
    board = find_board(BOARD)
    generated = {
        **element_files(program, element_program, containers),
        "recorded.c": recorded_source(element_program, recorded),
        "mesh_machine.h": _machine(kind),
        "board/board_config.h": board_header(board, board.npu.products[0]),
        "board/board.ld": linker_script(board),
        "project.mk": f"CPU ?= {CORE}\n",
    }
    arena = board.memory(Role.ARENA)
    if element_program.data_bytes > arena.size_bytes:
        raise fail(
            "E554",
            f"{arena.name} of {board.name} must hold {element_program.data_bytes} bytes of data "
            f"memory, and has {arena.size_bytes}",
            help="use element.c in a project of your own",
        )
    if containers.kernels:
        generated["kernels.c"] = kernel_table(containers.kernels)
    files = copied((*SOURCES, *_runtime(containers.kernels)))
    return files | {path: text.encode() for path, text in generated.items()}


def _runtime(kernels: list[str]) -> tuple[Sources, ...]:
    """Return the sources of the C runtime that some kernels need: none for none."""
    if not kernels:
        return ()
    linked = ("kernels/*.h", *(f"kernels/{name}" for name in sources_of(kernels)))
    return (
        Sources("mesh", ("mesh_kernel.c",)),
        Sources("runtime", (*RUNTIME, "*.h", *linked), "runtime/"),
    )


def _row(program: MeshProgram, element: int) -> ElementProgram:
    element_program = next((each for each in program.elements if each.element == element), None)
    if element_program is None:
        raise fail(
            "E551",
            f"element {element} must have a program, and {len(program.elements)} others have one",
            help="`mizzen mesh report` shows which elements are used",
        )
    if not program.network.is_executable:
        raise fail(
            "E551",
            f"{program.network.name} must have weights to be written in C, and has shapes only",
            help="map a .tflite file or a quantised PyTorch program instead",
        )
    return element_program


def _require_recorded(element_program: ElementProgram, recorded: Recording | None) -> None:
    if recorded is not None and element_program.element not in recorded.elements:
        raise fail(
            "E553",
            f"element {element_program.element} must have been recorded, and these were: "
            f"{', '.join(map(str, sorted(recorded.elements)))}",
            help="name the element in `record`",
        )


def _require_forms(
    program: MeshProgram, element_program: ElementProgram, containers: Containers
) -> None:
    """Refuse an element with operations that have no form of C: E550."""
    missing = dict.fromkeys(_missing(program, element_program, containers))
    if missing:
        shown = "; ".join(f"{kind} of layer {layer.name!r}" for layer, kind in missing)
        raise fail(
            "E550",
            f"every operation of {program.machine.element_name(element_program.element)} must have "
            f"a form of C, and these have none: {shown}",
            origin=next(iter(missing))[0].origin,
            help="leave these layers to an element that runs a kernel of its own, or cut the "
            "network before them; every other element can be exported",
        )


def _missing(
    program: MeshProgram, element_program: ElementProgram, containers: Containers
) -> Iterator[tuple[Layer, str]]:
    for instruction in element_program.instructions:
        if isinstance(instruction, Compute):
            layer = program.network.layers[instruction.kernel.layer]
            operations = operations_of(cut(program.network, instruction.kernel))
            for operation in operations:
                if not has_form(operation, containers):
                    is_custom = isinstance(operation, Custom)
                    yield layer, operation.operator_name if is_custom else operation.kind


def _machine(kind: ElementKind) -> str:
    array = kind.array
    return MACHINE.format(
        bits=32 if array is None else array.accumulator_bits,
        saturates=int(array is not None and array.overflow is Overflow.SATURATE),
    )
