"""What other hands compute: TensorFlow Lite Micro, and LiteRT where that has no kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

ARENA_BYTES = 4 << 20


def tflm(data: bytes, inputs: Sequence[Array], outputs: int) -> list[Array]:
    """Run the batch `[N, *shape]` one by one on TFLite Micro; state is reset in between."""
    from tflite_micro.python.tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(data, arena_size=ARENA_BYTES)
    results: list[list[Array]] = []
    for image in range(len(inputs[0])):
        interpreter.reset()
        for index, values in enumerate(inputs):
            interpreter.set_input(values[image], index)
        interpreter.invoke()
        results.append([interpreter.get_output(index) for index in range(outputs)])
    return [np.stack(column) for column in zip(*results, strict=True)]


def litert(data: bytes, inputs: Sequence[Array]) -> list[Array]:
    """Run the batch one by one on LiteRT's reference kernels."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    results: list[list[Array]] = []
    for image in range(len(inputs[0])):
        interpreter.reset_all_variables()
        for details, values in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(details["index"], values[image])
        interpreter.invoke()
        details = interpreter.get_output_details()
        results.append([interpreter.get_tensor(output["index"]) for output in details])
    return [np.stack(column) for column in zip(*results, strict=True)]


LITERT_ONLY = ("exp_", "log_", "relu_0_to_1", "relu_n1_to_1", "tile", "gelu", "neg_")
"""Cases, by the start of their name, whose operator TFLite Micro has no kernel for."""


def expected(name: str, data: bytes, inputs: Sequence[Array], outputs: int) -> list[Array]:
    """Run a case on the oracle that knows its operator and type."""
    if name.startswith(LITERT_ONLY) or name.endswith("_uint8"):
        return litert(data, inputs)
    return tflm(data, inputs, outputs)


def random_inputs(shapes: Sequence[tuple[tuple[int, ...], Any]], count: int) -> list[Array]:
    """Uniformly random integers over the whole range of each type, `[count, *shape]`."""
    rng = np.random.default_rng(count)
    made: list[Array] = []
    for shape, dtype in shapes:
        info = np.iinfo(dtype)
        values = rng.integers(info.min, info.max, (count, *shape), endpoint=True)
        made.append(values.astype(dtype))
    return made
