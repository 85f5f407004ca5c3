"""PyTorch: quantised by torchao's PT2E flow, as `mizzen.torch.compile` does, into a `.pt2` file."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mizzen.calibration.scheme import (
    Activations,
    Method,
    Scheme,
    already_quantised,
    no_such_node,
)
from mizzen.calibration.seen import Sample, Seen
from mizzen.calibration.source import FloatOperator, Made
from mizzen.diagnostics import Diagnostic

if TYPE_CHECKING:
    import torch

    from mizzen.analysis.evaluation.reference import PytorchProgram, Subject
    from mizzen.artifact.interface import TensorInfo
    from mizzen.compiler.torch.call import Call
    from mizzen.quantize import EthosUQuantizer
    from mizzen.report.precision import Precision

    Array = npt.NDArray[Any]

NEAR = 3
"""Names that may be meant, for one that there is not."""


class ExportedSource:
    """An exported PyTorch program, ready to be quantised."""

    form = "PyTorch"
    suffix = ".pt2"
    methods: tuple[Method, ...] = (Method.SEARCH,)

    def __init__(self, data: bytes, name: str, scheme: Scheme) -> None:
        """Read a program. E160 to E169 for what is not one, E165 without PyTorch, E198."""
        from mizzen.compiler.torch.exported import export, load_exported
        from mizzen.compiler.torch.placement import is_unquantized

        self.name = name
        program = load_exported(data, name)
        if not is_unquantized(program):
            raise already_quantised(name)
        self._module = _module(program)
        self._example = tuple(
            _zeros(node) for node in self._module.graph.nodes if node.op == "placeholder"
        )
        calls = [node for node in self._module.graph.nodes if node.op == "call_function"]
        self._kept = [self._node(calls, each, "--keep-float").name for each in scheme.keep_float]
        if scheme.cuts:
            _end(self._module, [self._node(calls, each, "--cut") for each in scheme.cuts])
            program = export(self._module, self._call(self._example), name)
        self._floating = data if not scheme.cuts else _saved(program)
        self.said: tuple[str, ...] = ()

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """What it takes."""
        return self._program(self._floating).inputs

    def seen(self, samples: Iterable[Sample], told: Callable[[int], None]) -> Seen:
        """Infer the samples, and return what every tensor was."""
        names = [node.name for node in self._module.graph.nodes if node.op == "placeholder"]
        seen = Seen(tuple(names))
        observer = _observer(self._module)
        for number, sample in enumerate(samples, 1):
            seen.add(sample, observer(sample))
            told(number)
        return seen

    def quantised(self, samples: Sequence[Sample], scheme: Scheme, seen: Seen) -> Made:
        """Return the quantised program."""
        import torch

        from mizzen.compiler.torch.exported import capture_lock, export
        from mizzen.torch.conversion import converted

        quantizer = self._quantizer(scheme)
        calls = [
            self._call(tuple(torch.as_tensor(np.array(array)) for array in sample))
            for sample in samples
        ]
        title = Path(self.name).stem
        with capture_lock():
            program = export(self._module, self._call(self._example), title)
            result, missing = converted(program, calls, quantizer, title)
        data = _saved(export(result, calls[0], title))
        floating = tuple(
            FloatOperator(index, node.operator, node.origin.name or "")
            for index, node in enumerate(quantizer.report())
        )
        # What single tensors lack of calibration is said of the data already.
        return Made(data, floating, tuple(said for said in missing if said.code == "W322"))

    def advice(self, made: Made, seen: Seen) -> Iterator[Diagnostic]:
        """Return where a tensor keeps few levels."""
        from mizzen.compiler.torch.exported import load_exported
        from mizzen.compiler.torch.levels import few_levels
        from mizzen.frontends.torch.narrowing import read

        yield from few_levels(read(load_exported(made.data, self.name), Path(self.name).stem))

    def precision(self, made: Made, arrays: Sequence[Array]) -> Precision:
        """Hold the quantised program against this one, layer by layer."""
        from mizzen.analysis.comparison.precision import Data, measured
        from mizzen.analysis.comparison.precision_torch import programs

        networks = programs(made.data, self.name, self._floating, self.name)
        return measured(networks, self.name, self.name, Data(arrays))

    def networks(self, made: Made) -> tuple[Subject, Subject]:
        """Return the quantised program and this one, to be judged by labels."""
        return self._program(made.data), self._program(self._floating)

    def _program(self, data: bytes) -> PytorchProgram:
        from mizzen.analysis.evaluation.reference import PytorchProgram

        return PytorchProgram(data, self.name)

    def _call(self, leaves: tuple[Any, ...]) -> Call:
        """Return arguments nested as the program takes them."""
        from torch.utils._pytree import tree_unflatten

        from mizzen.compiler.torch.call import Call

        nested: Any = getattr(self._module.graph, "_codegen", None)
        info = getattr(nested, "pytree_info", None)
        return Call(leaves) if info is None else Call(*tree_unflatten(leaves, info.in_spec))

    def _quantizer(self, scheme: Scheme) -> EthosUQuantizer:
        from mizzen.compiler.options import DEFAULT_ACCELERATOR
        from mizzen.quantize import (
            EthosUQuantizer,
            get_symmetric_a16w8_quantization_config,
            get_symmetric_quantization_config,
        )

        wide = scheme.activations is Activations.INT16
        quantizer = EthosUQuantizer(DEFAULT_ACCELERATOR)
        quantizer.set_global(
            get_symmetric_a16w8_quantization_config()
            if wide
            else get_symmetric_quantization_config()
        )
        for name in self._kept:
            quantizer.set_node_name(name, None)
        return quantizer

    def _node(self, calls: Sequence[Any], name: str, option: str) -> Any:
        by_name = {str(node.name): node for node in calls}
        if name in by_name:
            return by_name[name]
        if name.isdecimal() and int(name) < len(calls):
            return calls[int(name)]
        near = get_close_matches(name, by_name, n=NEAR)
        raise no_such_node(option, name, near, self.name)


def _module(program: Any) -> Any:
    module: Any = program.module(check_guards=False)
    for part in module.modules():
        part.training = False
    return module


def _zeros(node: Any) -> torch.Tensor:
    import torch

    value = node.meta["val"]
    return torch.zeros(tuple(int(extent) for extent in value.shape), dtype=value.dtype)


def _end(module: Any, nodes: Sequence[Any]) -> None:
    """Let a program give what some nodes do, and what does not need them."""
    from torch.fx.graph import CodeGen

    (output,) = (node for node in module.graph.nodes if node.op == "output")
    behind = set(nodes)
    for node in module.graph.nodes:
        if behind & set(node.all_input_nodes):
            behind.add(node)
    kept = [node for node in output.all_input_nodes if node not in behind]
    output.args = ((*nodes, *kept),)
    module.graph.set_codegen(CodeGen())
    module.graph.eliminate_dead_code()
    module.recompile()


def _saved(program: Any) -> bytes:
    import torch

    written = io.BytesIO()
    torch.export.save(program, written)
    return written.getvalue()


def _observer(module: Any) -> Callable[[Sample], dict[str, Array]]:
    """Return what infers a sample, and returns every tensor of floating-point numbers."""
    import torch
    from torch import fx

    class Observing(fx.Interpreter):
        def __init__(self) -> None:
            base: Any = super()
            base.__init__(module)
            self.tensors: dict[str, Array] = {}

        def run_node(self, n: fx.Node) -> Any:
            value = super().run_node(n)
            computed = n.op in ("placeholder", "call_function")
            if computed and isinstance(value, torch.Tensor) and value.is_floating_point():
                self.tensors[n.name] = value.detach().numpy()
            return value

    observing = Observing()

    def infer(sample: Sample) -> dict[str, Array]:
        observing.tensors = {}
        with torch.no_grad():
            observing.run(*(torch.as_tensor(np.array(array)) for array in sample))
        return dict(observing.tensors)

    return infer
