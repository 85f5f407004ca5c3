"""Two exported PyTorch programs, converted and floating-point: what is rounded in the one, and
what gives its real numbers in the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mizzen.analysis.comparison.counterparts import counterparts
from mizzen.analysis.comparison.interpreting import Interpreter
from mizzen.analysis.comparison.pairs import Pair
from mizzen.analysis.comparison.program import input_stimulus
from mizzen.artifact.interface import Array, TensorInfo
from mizzen.compiler.proof.stimuli import Stimulus, plausible, stimuli
from mizzen.compiler.torch.exported import load_exported
from mizzen.compiler.torch.placement import require_quantized
from mizzen.diagnostics import fail
from mizzen.frontends.torch.exported_example import stored_inputs
from mizzen.frontends.torch.int_lowering.int_lower import QUANTIZE
from mizzen.frontends.torch.narrowing import read
from mizzen.frontends.torch.operators import overload_of
from mizzen.frontends.torch.program import Role, TorchProgram, is_tensor, kind_of, origin_of

if TYPE_CHECKING:
    from torch.export import ExportedProgram

STEP_OF_RANGE = 1 / 255
"""Of 8 bits: by a half its zero point may be moved, and from a half beyond numbers are rounded."""

PAIRING_INPUTS, PAIRING_SEED = 2, 1
"""Inferences by which counterparts are found: one of any numbers, one of small ones."""


def programs(data: bytes, name: str, other: bytes, floating: str) -> ProgramNetworks:
    """Read both programs. E167 for a first one that is not quantised."""
    converted, original = load_exported(data, name), load_exported(other, floating)
    names = Path(name).stem, Path(floating).stem
    require_quantized(converted, names[0])
    example = stored_inputs(data)
    return ProgramNetworks(read(converted, names[0]), read(original, names[1]), example)


def networks_of(
    converted: ExportedProgram, original: ExportedProgram, names: tuple[str, str]
) -> ProgramNetworks:
    """Return both programs. E167 for a first one that is not quantised."""
    require_quantized(converted, names[0])
    given, _ = converted.example_inputs or ((), {})
    example = [array.detach().cpu().numpy().tobytes() for array in given if is_tensor(array)]
    return ProgramNetworks(read(converted, names[0]), read(original, names[1]), example)


class ProgramNetworks:
    """A converted program and its floating-point one, both in PyTorch."""

    def __init__(
        self, program: TorchProgram, floating: TorchProgram, example: Sequence[bytes]
    ) -> None:
        self._programs = program, floating
        self.inputs = tuple(_infos(program))
        if [info.shape for info in self.inputs] != [info.shape for info in _infos(floating)]:
            raise fail(
                "E495",
                f"{floating.name} must take what {program.name} does, and its inputs have other "
                "shapes",
                help="give the program that was quantised",
            )
        self.pairs: Sequence[Pair] = tuple(self._pairs())
        self.unmatched: Sequence[tuple[int, str, str]] = tuple(self._unmatched())
        values = [node.meta.get("val") for each in self._programs for node in each.nodes]
        sizes = (value.numel() * value.element_size() for value in values if is_tensor(value))
        self.values_bytes = max(1, sum(sizes))
        self.example = _telling(example, self._stimuli())

    def stimuli(self, count: int, seed: int) -> list[Array]:
        """Return inputs of the program, `[count, *shape]` each."""
        return plausible(self._stimuli(), count, seed)

    def _stimuli(self) -> list[Stimulus]:
        program, _ = self._programs
        given = [node for node, role in program.roles.items() if role is Role.INPUT]
        return [input_stimulus(node) for node in given]

    def infer(self, arrays: Sequence[Array]) -> tuple[Mapping[Any, Array], Mapping[Any, Array]]:
        """Return the tensors of both, of inputs `[N, *shape]`."""
        wanted = {pair.ours for pair in self.pairs}, {pair.theirs for pair in self.pairs}
        one, other = (
            _values(program, nodes, self._as_inputs(arrays))
            for program, nodes in zip(self._programs, wanted, strict=True)
        )
        return one, other

    def _as_inputs(self, arrays: Sequence[Array]) -> list[Array]:
        return [
            array.reshape(-1, *info.shape).astype(info.dtype)
            for array, info in zip(arrays, self.inputs, strict=True)
        ]

    def _rounded(self) -> Iterator[tuple[int, Any, Any]]:
        """Return each rounding: its place, the node, and the node that rounds it."""
        program, _ = self._programs
        for place, node in enumerate(program.nodes):
            if node.op == "call_function" and overload_of(node) == QUANTIZE:
                source = node.args[0]
                if source.op == "call_function":
                    yield place, source, node

    def _pairs(self) -> Iterator[Pair]:
        program, floating = self._programs
        arrays = stimuli(self._stimuli(), PAIRING_INPUTS, PAIRING_SEED)
        inputs = [[array[index] for array in arrays] for index in range(PAIRING_INPUTS)]
        matched = counterparts(program, floating, inputs)
        seen = set[Any]()
        for place, source, node in self._rounded():
            if source not in matched or source in seen:
                continue
            seen.add(source)
            _, scale, zero, low, high = node.args[:5]
            yield Pair(
                place, kind_of(source), _name(source), matched[source].name, node, matched[source],
                float(scale), int(zero), int(low), int(high),
            )  # fmt: skip

    def _unmatched(self) -> Iterator[tuple[int, str, str]]:
        paired = {pair.ours for pair in self.pairs}
        for place, source, node in self._rounded():
            if node not in paired:
                yield place, kind_of(source), _name(source)


def _telling(example: Sequence[bytes], inputs: Sequence[Stimulus]) -> list[Array] | None:
    """Return example inputs, `[1, *shape]` each, if they lie where the program was calibrated."""
    if [len(held) for held in example] != [_size(stimulus) for stimulus in inputs]:
        return None
    arrays = [
        np.frombuffer(held, stimulus.dtype).reshape(1, *stimulus.shape)
        for held, stimulus in zip(example, inputs, strict=True)
    ]
    return arrays if all(map(_tells, arrays, inputs)) else None


def _size(stimulus: Stimulus) -> int:
    return math.prod(stimulus.shape) * stimulus.dtype.itemsize


def _tells(array: Array, stimulus: Stimulus) -> bool:
    """Whether an input has more than one value, all of them within what is rounded to integers."""
    low, high = array.min(initial=math.inf), array.max(initial=-math.inf)
    slack = STEP_OF_RANGE * (stimulus.high - stimulus.low)
    return stimulus.low - slack <= low < high <= stimulus.high + slack


def _infos(program: TorchProgram) -> Iterator[TensorInfo]:
    for node, role in program.roles.items():
        if role is Role.INPUT:
            value = node.meta["val"]
            dtype = np.dtype(str(value.dtype).removeprefix("torch."))
            yield TensorInfo(node.name, tuple(value.shape), dtype, None)


def _name(node: Any) -> str:
    origin = origin_of(node, None, 0)
    return f"{node.name} in {origin.module}" if origin.module else node.name


def _values(program: TorchProgram, wanted: set[Any], arrays: Sequence[Array]) -> dict[Any, Array]:
    seen: dict[Any, list[Array]] = {node: [] for node in wanted}

    def exchange(node: Any, result: Any) -> Any:
        if node in seen:
            seen[node].append(result.detach().cpu().numpy())
        return result

    for index in range(len(arrays[0]) if arrays else 1):
        Interpreter(program).infer([array[index] for array in arrays], exchange)
    return {node: np.stack(each) for node, each in seen.items()}
