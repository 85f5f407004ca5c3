"""The files of a project of TensorFlow Lite Micro."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
from mizzen.package.tflm.operators import TflmOperator, sources_of

SOURCES = (
    Sources("board", ("board.[ch]", "startup.c"), "board/"),
    Sources("newlib", ("*.c",), "newlib/"),
    Sources("tflm", ("*", "tflm/**/*")),
)
"""newlib has the functions of `board/memory.c`."""


@dataclass(frozen=True, slots=True, eq=False)
class TflmModel:
    """A model as an interpreter needs it.

    network      the file ``.tflite``
    operators    all that it has, each once
    arena_bytes  what the interpreter allocates in
    fast_bytes   memory that the NPU stages in, besides the arena; 0 where there is none
    variables    resource variables
    npu_calls    operators that run on the NPU
    """

    network: bytes
    operators: Sequence[TflmOperator]
    arena_bytes: int
    fast_bytes: int
    variables: int
    npu_calls: int

    @property
    def on_npu(self) -> bool:
        """Whether something runs on the NPU."""
        return self.npu_calls > 0


def project_files(
    model: TflmModel, around: Surroundings, example: Example = NO_EXAMPLE
) -> Mapping[str, bytes]:
    """Return the files of a project by their path in its folder."""
    generated = {
        "model.h": _model_header(model, example),
        "model.c": array("model_network", model.network),
        "example.c": example_source(example),
        "operators.cc": _operators_source(model.operators),
    }
    lists = {"KERNELS": sources_of(model.operators)}
    return surrounding_files(SOURCES, around, lists) | {
        path: text.encode() for path, text in generated.items()
    }


def _model_header(model: TflmModel, example: Example) -> str:
    macros = {
        "MODEL_ARENA_BYTES": str(model.arena_bytes),
        "MODEL_FAST_BYTES": str(model.fast_bytes),
        "MODEL_VARIABLES": str(model.variables),
        "MODEL_ON_NPU": str(int(model.on_npu)),
        "MODEL_NPU_CALLS": str(model.npu_calls),
    }
    return header(macros, "model_network", model.network, example)


def _operators_source(operators: Sequence[TflmOperator]) -> str:
    """Return `operators.cc`: a resolver with these operators, and no others."""
    added = "\n".join(
        f"    if (operators.{operator.method}() != kTfLiteOk) return nullptr;"
        for operator in operators
    )
    return (
        "// The operators that the model has, and no others: made by Mizzen.\n"
        '#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"\n\n'
        "const tflite::MicroOpResolver *model_operators();\n\n"
        "const tflite::MicroOpResolver *model_operators() {\n"
        f"    static tflite::MicroMutableOpResolver<{len(operators)}> operators;\n"
        f"{added}\n"
        "    return &operators;\n}\n"
    )
