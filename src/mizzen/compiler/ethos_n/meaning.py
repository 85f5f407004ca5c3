"""What parts of a TFLite network are in Ethos-N's own roundings, whatever compiled them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mizzen.artifact.interface import Array
from mizzen.artifact.program import ProgramReference
from mizzen.compiler.codegen import OperatorCode, RegionRefusal
from mizzen.compiler.ethos_n.configuration import EthosNConfiguration
from mizzen.compiler.ethos_n.regions import EthosNRegions
from mizzen.compiler.proof.regions import computed
from mizzen.compiler.tflite import FOLD
from mizzen.diagnostics import fail
from mizzen.frontends.tflite import Model
from mizzen.frontends.tflite.lower import Lowered, lower
from mizzen.graph import Value, other_sign
from mizzen.partition import extract


class NetworkMeaning:
    """A network, of which parts are asked for by the tensors around them.

    A part is brought into the compiler's form anew, since what is rounded together depends on where
    it begins and ends; no program is asked.
    """

    def __init__(self, model: Model, configuration: EthosNConfiguration) -> None:
        self.model = model
        self.lowered = lower(model)
        FOLD.run(self.lowered.graph)
        self._regions = EthosNRegions(
            configuration.target, configuration.inline, self.lowered.is_unsigned
        )
        self._regions.legality(self.lowered.graph)  # which covers the graph

    def part(self, takes: Collection[int], gives: Sequence[int]) -> PartMeaning:
        """Return the meaning of a part, by its inputs and outputs. E691 if that is not known.

        Not known is what the compiler does not take.
        """
        graph = self.lowered.graph
        held = {operation.group for operation in graph if operation.group is not None}
        groups = self._between(set(takes), gives) & held
        name = self.model.name
        if not groups:
            raise fail("E691", f"{name}: an NPU operator must compute something of the network")
        code = self._regions.compile(extract(graph, groups, graph.name), None)
        if isinstance(code, RegionRefusal):
            raise fail(
                "E691",
                f"{name}: what the NPU computes must be known in its own roundings to be judged, "
                f"and is not for operators {', '.join(map(str, sorted(groups)))}: "
                f"{code.general.message}",
                help="compile the network again: what the compiler does not take goes to the CPU",
            )
        assert code.reference is not None, "every region of Ethos-N has one"
        return PartMeaning(self.lowered, code, code.reference)

    def _between(self, takes: set[int], gives: Sequence[int]) -> set[int]:
        """Return the operators by which some tensors are computed of others."""
        main = self.model.main
        makers = {index: each for each in main.operators for index in each.outputs}
        waiting, reached = list(gives), set[int]()
        while waiting:
            index = waiting.pop()
            operator = makers.get(index)
            if operator is None or index in takes or operator.index in reached:
                continue
            reached.add(operator.index)
            waiting += operator.inputs
        return reached


@dataclass(frozen=True, slots=True, eq=False)
class PartMeaning:
    """A part of a network as Ethos-N computes it."""

    lowered: Lowered
    code: OperatorCode
    reference: ProgramReference

    def infer(self, values: Mapping[int, Array], count: int) -> dict[int, Array]:
        """Return the tensors that the part gives, of those that it takes, `[count, *shape]` each.

        E691 for tensors that are not there.
        """
        part, tensor_of = self.code.part, self.lowered.tensor_of
        missing = [value.name for value in part.inputs if tensor_of.get(value) not in values]
        if missing:
            raise fail(
                "E691",
                f"{self.lowered.model.name}: what an NPU operator takes must be known for it to be "
                f"judged, and {missing[0]!r} is not seen",
            )
        inputs = [self._signed(value, values[tensor_of[value]], count) for value in part.inputs]
        outputs = computed(self.code, inputs, count, self.reference)
        return {
            tensor_of[value]: other_sign(array) if self.lowered.is_unsigned(value) else array
            for value, array in zip(part.outputs, outputs, strict=True)
            if value in tensor_of
        }

    def _signed(self, value: Value, array: Array, count: int) -> Array:
        """Return a tensor of the network as the graph has it."""
        whole = array.reshape(count, *value.shape)
        return other_sign(whole) if self.lowered.is_unsigned(value) else whole
