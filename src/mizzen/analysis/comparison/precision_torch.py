"""Two exported PyTorch programs, converted and floating-point, whose nodes go by the same names.

A converted program keeps the names of the nodes that it was made of: what is rounded is the last
node of a layer, and the node of that name gives the real numbers. A convolution that took in a
normalisation behind it stands for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mizzen.analysis.comparison.interpreting import Interpreter
from mizzen.analysis.comparison.pairs import Pair
from mizzen.analysis.comparison.program import input_stimulus
from mizzen.artifact.interface import Array, TensorInfo
from mizzen.compiler.proof.stimuli import stimuli
from mizzen.compiler.torch.exported import load_exported
from mizzen.compiler.torch.placement import require_quantized
from mizzen.diagnostics import fail
from mizzen.frontends.torch.int_lowering.int_lower import QUANTIZE
from mizzen.frontends.torch.narrowing import read
from mizzen.frontends.torch.operators import overload_of
from mizzen.frontends.torch.program import Role, TorchProgram, is_tensor, kind_of, origin_of

if TYPE_CHECKING:
    from torch.export import ExportedProgram

NORMALISATIONS = ("aten.batch_norm", "aten._native_batch_norm_legit_no_training")
"""What a convolution in front of it takes in."""


def programs(data: bytes, name: str, other: bytes, floating: str) -> ProgramNetworks:
    """Read both programs. E167 for a first one that is not quantised."""
    names = Path(name).stem, Path(floating).stem
    return networks_of(load_exported(data, name), load_exported(other, floating), names)


def networks_of(
    converted: ExportedProgram, original: ExportedProgram, names: tuple[str, str]
) -> ProgramNetworks:
    """Return both programs. E167 for a first one that is not quantised."""
    require_quantized(converted, names[0])
    return ProgramNetworks(read(converted, names[0]), read(original, names[1]))


class ProgramNetworks:
    """A converted program and its floating-point one, both in PyTorch."""

    def __init__(self, program: TorchProgram, floating: TorchProgram) -> None:
        self._programs = program, floating
        self.inputs = tuple(_infos(program))
        if [row.shape for row in self.inputs] != [row.shape for row in _infos(floating)]:
            raise fail(
                "E495",
                f"{floating.name} must take what {program.name} does, and its inputs have other "
                "shapes",
                help="give the program that was quantised",
            )
        self.pairs: Sequence[Pair] = tuple(self._pairs())
        self.unmatched: Sequence[tuple[int, str, str]] = tuple(self._unmatched())
        values = [node.meta.get("val") for row in self._programs for node in row.nodes]
        sizes = (row.numel() * row.element_size() for row in values if is_tensor(row))
        self.values_bytes = max(1, sum(sizes))

    def stimuli(self, count: int, seed: int) -> list[Array]:
        """Return inputs of the program, `[count, *shape]` each."""
        program, _ = self._programs
        given = [node for node, role in program.roles.items() if role is Role.INPUT]
        return stimuli([input_stimulus(node) for node in given], count, seed)

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
        """Return what is rounded: its place, the node, and the node that rounds it."""
        program, _ = self._programs
        for place, node in enumerate(program.nodes):
            if node.op == "call_function" and overload_of(node) == QUANTIZE:
                source = node.args[0]
                if source.op == "call_function":
                    yield place, source, node

    def _pairs(self) -> Iterator[Pair]:
        _, floating = self._programs
        names = {node.name: node for node in floating.nodes if node.op == "call_function"}
        seen = set[Any]()
        for place, source, node in self._rounded():
            found = names.get(source.name)
            if found is None or source in seen or kind_of(found) != kind_of(source):
                continue
            found = _with_normalisation(found)
            if tuple(found.meta["val"].shape) != tuple(source.meta["val"].shape):
                continue
            seen.add(source)
            _, scale, zero, low, high = node.args[:5]
            yield Pair(
                place, kind_of(source), _name(source), found.name, node, found,
                float(scale), int(zero), int(low), int(high),
            )  # fmt: skip

    def _unmatched(self) -> Iterator[tuple[int, str, str]]:
        found = {pair.ours for pair in self.pairs}
        for place, source, node in self._rounded():
            if node not in found:
                yield place, kind_of(source), _name(source)


def _infos(program: TorchProgram) -> Iterator[TensorInfo]:
    for node, role in program.roles.items():
        if role is Role.INPUT:
            value = node.meta["val"]
            dtype = np.dtype(str(value.dtype).removeprefix("torch."))
            yield TensorInfo(node.name, tuple(value.shape), dtype, None)


def _name(node: Any) -> str:
    origin = origin_of(node, None, 0)
    return f"{node.name} in {origin.module}" if origin.module else node.name


def _with_normalisation(node: Any) -> Any:
    """Return the normalisation behind a convolution, if nothing else takes what it gives."""
    users = list(node.users)
    if len(users) != 1 or not kind_of(node).startswith(("aten.conv", "aten.linear")):
        return node
    (user,) = users
    if kind_of(user) not in NORMALISATIONS:
        return node
    items = [row for row in user.users if row.args[1:] == (0,)] if not _is_one(user) else [user]
    return items[0] if items else node


def _is_one(node: Any) -> bool:
    return is_tensor(node.meta.get("val"))


def _values(program: TorchProgram, wanted: set[Any], arrays: Sequence[Array]) -> dict[Any, Array]:
    found: dict[Any, list[Array]] = {node: [] for node in wanted}

    def exchange(node: Any, result: Any) -> Any:
        if node in found:
            found[node].append(result.detach().cpu().numpy())
        return result

    for index in range(len(arrays[0]) if arrays else 1):
        Interpreter(program).infer([array[index] for array in arrays], exchange)
    return {node: np.stack(rows) for node, rows in found.items()}
