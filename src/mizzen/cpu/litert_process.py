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

from mizzen.cpu.tflm_process import ADDRESS_SPACE_BYTES, LOG_BYTES, receive, send
from mizzen.platforms.limits import limit_resources, limit_time

Array = npt.NDArray[Any]

STDOUT, STDERR = 1, 2


class _LitertServer:
    """Keeps the interpreter of the last network: one is asked for part after part of a batch."""

    def __init__(self) -> None:
        self._litert: Any = import_module("ai_edge_litert.interpreter")
        self._network = b""
        self._interpreter: Any = None

    def infer(self, network: bytes, inputs: Sequence[Array], count: int, seconds: float) -> Any:
        """Infer one by one; every inference starts from the initial state."""
        if network != self._network:
            self._network = b""
            self._interpreter = self._litert.Interpreter(
                model_content=network,
                experimental_op_resolver_type=self._litert.OpResolverType.BUILTIN_REF,
            )
            self._interpreter.allocate_tensors()
            self._network = network
        results: list[list[Array]] = []
        for index in range(count):
            limit_time(seconds)
            results.append(self._one([array[index] for array in inputs]))
        return [np.stack(column) for column in zip(*results, strict=True)]

    def _one(self, inputs: Sequence[Array]) -> list[Array]:
        interpreter = self._interpreter
        interpreter.reset_all_variables()
        for details, value in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(details["index"], value)
        interpreter.invoke()
        outputs = interpreter.get_output_details()
        return [np.array(interpreter.get_tensor(output["index"])) for output in outputs]


def main() -> None:
    """Answer requests until there are no more."""
    limit_resources(ADDRESS_SPACE_BYTES, LOG_BYTES)
    answers = os.fdopen(os.dup(STDOUT), "wb")
    os.dup2(STDERR, STDOUT)
    server = _LitertServer()
    while True:
        try:
            request, (network, *inputs) = receive(sys.stdin.buffer)
        except EOFError:
            return
        limit_time(request["seconds"])
        try:
            count, seconds = request["batch"], request["seconds"]
            outputs = server.infer(network.tobytes(), inputs, count, seconds)
        except Exception as error:
            limit_time(0)
            send(answers, {"text": str(error)})
        else:
            limit_time(0)
            send(answers, {}, outputs)


if __name__ == "__main__":
    main()
