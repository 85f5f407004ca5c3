"""Several custom operators in the place of one, which do its work one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from mizzen.flatbuffer import Record, write
from mizzen.flatbuffer.memory_plan import ALLOCATION, NOT_IN_ARENA, plan_of, split_plan
from mizzen.flatbuffer.tflite import SCHEMA, TensorType


def cut_operators(
    network: Record, payloads: Mapping[int, Sequence[bytes]], memory_inputs: int
) -> bytes:
    """Return a network with compiled operators of its main subgraph cut into several.

    Each of them takes its own payload first, and else the same memories; inputs that other
    operators, or who executes the network, read later are inputs of all of them. Outputs are those
    of all: the last one completes them. Tensors lie where they did.

    payloads       of the operators that take the place of one, by its index; others stay
    memory_inputs  how many inputs come before the operator's real ones
    """
    made = _Cut(network, memory_inputs)
    main = made.main
    operators: list[Record] = list(main["operators"])
    main["operators"] = [
        new
        for index, operator in enumerate(operators)
        for new in (
            made.parts(operator, payloads[index], operators[index + 1 :])
            if index in payloads
            else (operator,)
        )
    ]
    return made.written()


class _Cut:
    """A network under construction."""

    def __init__(self, network: Record, memory_inputs: int) -> None:
        self._network = network
        self._memory_inputs = memory_inputs
        self._buffers: list[Record] = list(network["buffers"])
        self.main: Record = dict(network["subgraphs"][0])
        self._tensors: list[Record] = list(self.main["tensors"])

    def parts(
        self, operator: Record, payloads: Sequence[bytes], later: Sequence[Record]
    ) -> Iterator[Record]:
        """Return the operators that do an operator's work."""
        payload, *memories = map(int, operator["inputs"][: self._memory_inputs])
        real = [int(index) for index in operator["inputs"][self._memory_inputs :]]
        needed = {int(index) for each in later for index in each["inputs"]}
        needed.update(map(int, self.main["outputs"]))
        kept = [
            index for index in real if index in needed or self._tensors[index].get("is_variable")
        ]
        for place, data in enumerate(payloads):
            stream = self._constant(f"{self._tensors[payload]['name']}_{place + 1}", data)
            inputs = [stream, *memories, *(kept if place else real)]
            yield {**operator, "inputs": np.array(inputs, np.int32)}

    def _constant(self, name: str, data: bytes) -> int:
        contents = np.frombuffer(data, np.uint8)
        self._buffers.append({"data": contents})
        self._tensors.append(
            {
                "name": name,
                "shape": np.array([contents.size], np.int32),
                "type": int(TensorType.UINT8),
                "buffer": len(self._buffers) - 1,
                "is_variable": False,
            }
        )
        return len(self._tensors) - 1

    def written(self) -> bytes:
        """Return the file; the memory plan has new tensors outside the arena."""
        subgraphs = [{**self.main, "tensors": self._tensors}, *self._network["subgraphs"][1:]]
        before = [len(each["tensors"] or ()) for each in self._network["subgraphs"]]
        for entry in self._network["metadata"] or ():
            if entry["name"] != ALLOCATION:
                continue
            data = self._buffers[int(entry["buffer"])]["data"]
            plan = split_plan(np.asarray(data, np.uint8), before)
            assert plan is not None, "the network was read, with its plan"
            new = [NOT_IN_ARENA] * (len(self._tensors) - before[0])
            self._buffers[int(entry["buffer"])] = {"data": plan_of([[*plan[0], *new], *plan[1:]])}
        return write({**self._network, "subgraphs": subgraphs, "buffers": self._buffers}, SCHEMA)
