"""The backend of `torch.compile`: calibrate on the first calls, then run on the simulated NPU.

PyTorch hands over a graph whose inputs are the model's parameters and buffers too, and numbers,
such as the extents of a dynamic shape. There is one artifact for the shapes and numbers of a call;
parameters are constants of it, and a buffer that the graph changes goes in and comes out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mizzen.artifact.artifact import Artifact
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.options import SystemKeywords, options_of
from mizzen.compiler.torch.exported import capture_lock
from mizzen.diagnostics import MizzenError
from mizzen.torch.compilation import compile

CALIBRATION_CALLS = 8
"""Calls that PyTorch answers itself while ranges are observed, for each kind of call."""

COMPILED_WITH = ("accelerator", "quantization", "name", "on_progress")
"""Parameters of `mizzen.torch.compile` that are options here."""

KINDS_OF_CALLS = 64
"""The most artifacts of one graph: PyTorch answers calls of further shapes and numbers itself."""


def mizzen(
    graph_module: Any,
    example_inputs: Sequence[Any],
    *,
    options: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile a graph that `torch.compile(model, backend="mizzen")` captured.

    options  accelerator and whatever else `mizzen.torch.compile` takes; calibration_calls

    The first call raises E877 for a model in training mode, and E2xx for options that cannot be;
    once there are enough calls, one raises what `mizzen.torch.compile` does.
    """
    from mizzen.torch.captured import require_inference

    settings = dict(options or {})
    calls = int(settings.pop("calibration_calls", CALIBRATION_CALLS))
    try:
        _require_possible(settings)
        require_inference(graph_module)
    except MizzenError as error:
        return _refusing(error)
    return _Calibrating(graph_module, example_inputs, calls, settings)


def _require_possible(settings: dict[str, Any]) -> None:
    others = {name: value for name, value in settings.items() if name not in COMPILED_WITH}
    accelerator = settings.get("accelerator")
    resolve_target(options_of(accelerator, others, SystemKeywords, compile))


def _refusing(error: MizzenError) -> Callable[..., Any]:
    """Return what raises an error when it is called: from a backend's own, PyTorch would make
    another one with all that it knows of the graph.
    """

    def refuse(*arguments: Any) -> Any:
        raise error

    return refuse


@dataclass
class _Variant:
    """What is known of the calls of some shapes and numbers.

    seen      all inputs of the calls so far
    results   what follows from shapes and numbers alone; None where there is a tensor
    tensors   the shapes of the results that are tensors, by index
    changed   the inputs that the graph changes
    versions  the state of the constants that the artifact was made of
    """

    seen: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    results: tuple[Any, ...] = ()
    tensors: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    changed: tuple[int, ...] = ()
    artifact: Artifact | None = None
    versions: tuple[Any, ...] = ()


class _Calibrating:
    """Answers with PyTorch while it gathers inputs, then with the artifact."""

    def __init__(
        self, graph_module: Any, example: Sequence[Any], calls: int, settings: dict[str, Any]
    ) -> None:
        from mizzen.torch.captured import Kind, kinds_of

        kinds = kinds_of(graph_module, example)
        self.graph_module = graph_module
        self.given, self.held, self.numbers = (
            tuple(index for index, own in enumerate(kinds) if own is kind)
            for kind in (Kind.GIVEN, Kind.HELD, Kind.NUMBER)
        )
        self.calls = max(calls, 1)
        self.settings = settings
        self.variants: dict[Any, _Variant] = {}
        self.turn = threading.RLock()

    def __call__(self, *arguments: Any) -> Any:
        with self.turn:
            variant = self._variant(arguments)
            if variant is None:
                return self.graph_module(*arguments)
            if len(variant.seen) < self.calls:
                return self._observed(variant, arguments)
            versions = self._versions(variant, arguments)
            if variant.artifact is None or variant.versions != versions:
                with capture_lock():
                    variant.artifact = self._compiled(variant, arguments)
                variant.versions = self._versions(variant, arguments)
            return self._answered(variant, variant.artifact, arguments)

    def _variant(self, arguments: tuple[Any, ...]) -> _Variant | None:
        """Return the variant for calls like this one; None where there are too many kinds."""
        shapes = tuple(tuple(map(int, arguments[index].shape)) for index in self.given)
        key = (shapes, tuple(_number(arguments[index]) for index in self.numbers))
        if key not in self.variants and len(self.variants) >= KINDS_OF_CALLS:
            return None
        return self.variants.setdefault(key, _Variant())

    def _observed(self, variant: _Variant, arguments: tuple[Any, ...]) -> Any:
        import torch

        variant.seen.append(
            tuple(
                value if index in self.numbers or isinstance(value, torch.nn.Parameter)
                else value.detach().clone()
                for index, value in enumerate(arguments)
            )
        )  # fmt: skip
        results = self.graph_module(*arguments)
        variant.results = tuple(
            None if isinstance(result, torch.Tensor) else result for result in results
        )
        variant.tensors = {
            index: tuple(result.shape)
            for index, result in enumerate(results)
            if isinstance(result, torch.Tensor)
        }
        return results

    def _compiled(self, variant: _Variant, arguments: tuple[Any, ...]) -> Artifact:
        """Compile for the calls that were seen, with the constants as they are at this one."""
        from mizzen.torch.captured import Binding, changed_inputs, with_numbers

        numbers = {index: _number(arguments[index]) for index in self.numbers}
        graph_module = with_numbers(self.graph_module, numbers)
        held = {index: arguments[index] for index in self.held}
        tensors = tuple(variant.tensors)
        plain = Binding(graph_module, held, self.given, (), tensors)
        variant.changed = changed_inputs(plain, tuple(variant.seen[0][i] for i in self.given))
        taken = tuple(sorted({*self.given, *variant.changed}))
        constant = {index: held[index] for index in self.held if index not in variant.changed}
        module = Binding(graph_module, constant, taken, variant.changed, tensors).module()
        calls = [tuple(call[index] for index in taken) for call in variant.seen]
        return compile(module, calls[0], calibration=calls, **self.settings)

    def _versions(self, variant: _Variant, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return versions that change with constants; inference tensors have none."""
        return tuple(
            (arguments[index].data_ptr(), arguments[index]._version)
            for index in self.held
            if index not in variant.changed and not arguments[index].is_inference()
        )

    def _answered(
        self, variant: _Variant, artifact: Artifact, arguments: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        import torch

        taken = sorted({*self.given, *variant.changed})
        outputs = artifact.run(*(arguments[index].detach().numpy() for index in taken))
        arrays = outputs if isinstance(outputs, tuple) else (outputs,)
        results = list(variant.results)
        count = len(variant.tensors)
        for (index, shape), array in zip(variant.tensors.items(), arrays[:count], strict=True):
            results[index] = torch.as_tensor(array).reshape(shape)
        with torch.no_grad():
            for index, array in zip(variant.changed, arrays[count:], strict=True):
                arguments[index].copy_(torch.as_tensor(array).reshape(arguments[index].shape))
        return tuple(results)


def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
