"""Runs LiteRT's reference kernels; started as a script, in a process that a network may end.

Messages are those of `mizzen.cpu.tflm_process`. A request's arrays are the network, uint8 [bytes],
and its inputs, `[N, *shape]`; the answer's are the outputs, or it has the key `text`: what LiteRT
says against the network. Standard error is what the kernels print.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.cpu.tflm_process import receive, send

Array = npt.NDArray[Any]

STDOUT, STDERR = 1, 2


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(STDOUT), "wb")
    os.dup2(STDERR, STDOUT)
    litert = import_module("ai_edge_litert.interpreter")
    while True:
        try:
            _, (network, *inputs) = receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            outputs = _infer(litert, network.tobytes(), inputs)
        except Exception as error:
            send(answers, {"text": str(error)})
        else:
            send(answers, {}, outputs)


def _infer(litert: Any, network: bytes, inputs: Sequence[Array]) -> list[Array]:
    """Infer one by one; every inference starts from the initial state."""
    interpreter = litert.Interpreter(
        model_content=network,
        experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF,
    )
    interpreter.allocate_tensors()
    rows: list[list[Array]] = []
    for values in zip(*inputs, strict=True):
        interpreter.reset_all_variables()
        for details, value in zip(interpreter.get_input_details(), values, strict=True):
            interpreter.set_tensor(details["index"], value)
        interpreter.invoke()
        outputs = interpreter.get_output_details()
        rows.append([np.array(interpreter.get_tensor(output["index"])) for output in outputs])
    return [np.stack(column) for column in zip(*rows, strict=True)]


if __name__ == "__main__":
    main()
