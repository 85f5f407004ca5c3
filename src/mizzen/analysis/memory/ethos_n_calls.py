"""What an Ethos-N's program does and holds, as far as its container says: passes and buffers."""

from __future__ import annotations

from mizzen.analysis.memory.layout import ARENA, Constant, Held
from mizzen.artifact.ethos_n import NpuProgram
from mizzen.artifact.steps import NpuStep
from mizzen.report.memory import Use
from mizzen.targets.ethos_n.program import BufferKind
from mizzen.targets.ethos_n.timing import passes_of


def passes(step: NpuStep) -> tuple[str, ...]:
    """Return the names of an NPU step's operations, where its stream does not say them itself."""
    program = step.program
    if not isinstance(program, NpuProgram):
        return (step.accelerator,)
    names = tuple(type(pass_.command).__name__ for pass_ in passes_of(program.program))
    return names or (step.accelerator,)


def ethos_n_scratch(step: NpuStep) -> tuple[Held, ...]:
    """Return the feature maps between passes."""
    program = step.program
    if not isinstance(program, NpuProgram):
        return ()
    buffers = program.program.of_kind(BufferKind.INTERMEDIATE)
    return tuple(
        Held(
            f"buffer {buffer.id} between passes", Use.FEATURE_MAP, buffer.offset, buffer.size, ARENA
        )
        for buffer in buffers
    )


def ethos_n_constants(step: NpuStep, container: Constant) -> tuple[Constant, ...]:
    """Return the parts of a container: for the NPU's DMA, for its control unit, lists."""
    program = step.program
    assert isinstance(program, NpuProgram), "a step of an Ethos-N has its program"
    held = program.program.container
    sizes = {
        "weights": len(held.constant_dma),
        "command stream and places of weights": len(held.constant_control_unit),
    }
    rest = container.size_bytes - sum(sizes.values())
    parts = {**sizes, "lists of buffers": rest}
    return tuple(Constant(name, size) for name, size in parts.items() if size > 0)
