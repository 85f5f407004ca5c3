"""The files of a project of ExecuTorch's runtime."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mizzen.package.executorch.kernels import QUANTIZED
from mizzen.package.firmware import (
    NO_EXAMPLE,
    Example,
    Sources,
    Surroundings,
    array,
    example_source,
    header,
    surrounding_files,
)

SOURCES = (
    Sources("board", ("board.[ch]", "startup.c"), "board/"),
    Sources("newlib", ("*.c",), "newlib/"),
    Sources("executorch", ("*", "executorch/*")),
)
"""newlib has the functions of `board/memory.c`."""

PRIMITIVE = "executorch_prim::"
LEAST_MEMORY_BYTES = 16
"""C has no arrays without elements."""


@dataclass(frozen=True, slots=True, eq=False)
class PteModel:
    """A program as ExecuTorch's runtime needs it.

    operators        kernels that it names, each once
    planned_bytes    all planned memories, each aligned to 16 bytes
    memories         how many these are
    temporary_bytes  what delegates and kernels need while they run
    method_bytes     what the method keeps
    heap_bytes       what the delegate takes from operator new
    fast_bytes       memory that the NPU stages in; 0 where there is none
    npu_calls        delegates that run on the NPU
    """

    program: bytes
    operators: Sequence[str]
    planned_bytes: int
    memories: int
    temporary_bytes: int
    method_bytes: int
    heap_bytes: int
    fast_bytes: int
    npu_calls: int

    @property
    def on_npu(self) -> bool:
        """Whether something runs on the NPU."""
        return self.npu_calls > 0


def project_files(
    model: PteModel, around: Surroundings, example: Example = NO_EXAMPLE
) -> Mapping[str, bytes]:
    """Return the files of a project by their path in its folder."""
    generated = {
        "model.h": _model_header(model, example),
        "model.c": array("model_program", model.program),
        "example.c": example_source(example),
        "README.txt": _readme(model),
    }
    return surrounding_files(SOURCES, around, operator_lists(model.operators)) | {
        path: text.encode() for path, text in generated.items()
    }


def operator_lists(operators: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Return operators by the variable of the schema of ExecuTorch's that names them."""
    lists: dict[str, list[str]] = {
        "OPERATORS_FUNCTIONS_YAML": [],
        "OPERATORS_CUSTOM_OPS_YAML": [],
        "OPERATORS_PRIMITIVE": [],
    }
    for name in operators:
        if name.startswith(QUANTIZED):
            lists["OPERATORS_CUSTOM_OPS_YAML"].append(name)
        elif name.startswith(PRIMITIVE):
            lists["OPERATORS_PRIMITIVE"].append(name)
        else:
            lists["OPERATORS_FUNCTIONS_YAML"].append(name)
    return lists


def _model_header(model: PteModel, example: Example) -> str:
    macros = {
        "MODEL_BYTES": str(len(model.program)),
        "MODEL_PLANNED_BYTES": str(max(model.planned_bytes, LEAST_MEMORY_BYTES)),
        "MODEL_MEMORIES": str(max(model.memories, 1)),
        "MODEL_TEMPORARY_BYTES": str(model.temporary_bytes),
        "MODEL_METHOD_BYTES": str(model.method_bytes),
        "MODEL_HEAP_BYTES": str(model.heap_bytes),
        "MODEL_FAST_BYTES": str(model.fast_bytes),
        "MODEL_ON_NPU": str(int(model.on_npu)),
        "MODEL_NPU_CALLS": str(model.npu_calls),
    }
    return header(macros, "model_program", model.program, example)


def _readme(model: PteModel) -> str:
    names = "\n".join(f"  {name}" for name in model.operators) or "  none"
    driver = " -DDRIVER=path of ethos-u-core-driver" if model.on_npu else ""
    return f"""\
A project of ExecuTorch's runtime, made by Mizzen.

1. In the checkout of ExecuTorch, once:
     git submodule update --init third-party/flatbuffers third-party/flatcc third-party/gflags
         third-party/json backends/xnnpack/third-party/FXdiv
2. A Python with torch and pyyaml, from which ExecuTorch generates how kernels are called.
3. Here:
     cmake -B build -DCMAKE_TOOLCHAIN_FILE=toolchain.cmake -DEXECUTORCH=path of executorch
         {driver.strip()} [-DPYTHON_EXECUTABLE=python] [-DCPU=cortex-m33]
     cmake --build build
4. Run build/firmware.elf on the board, or with `mizzen emulate`.

Kernels that the program names:
{names}

Memory in bytes: {model.planned_bytes} planned, {model.temporary_bytes} while delegates run,
{model.method_bytes} for the method, {model.fast_bytes} that the NPU stages in.
"""
