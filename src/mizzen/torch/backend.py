"""The backend of `torch.compile`: calibrate on the first calls, then run on the simulated NPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mizzen.artifact.artifact import Artifact
from mizzen.torch.compilation import compile

CALIBRATION_CALLS = 8
"""Calls that PyTorch answers itself while ranges are observed."""


def mizzen(
    graph_module: Any,
    example_inputs: Sequence[Any],
    *,
    options: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile a graph that `torch.compile(model, backend="mizzen")` captured.

    options  accelerator and whatever else `mizzen.torch.compile` takes; calibration_calls
    """
    settings = dict(options or {})
    calls = int(settings.pop("calibration_calls", CALIBRATION_CALLS))
    return _Calibrating(graph_module, example_inputs, calls, settings)


class _Calibrating:
    """Answers with PyTorch while it gathers inputs, then with the artifact."""

    def __init__(
        self, graph_module: Any, example: Sequence[Any], calls: int, settings: dict[str, Any]
    ) -> None:
        self.module, self.given = bound(graph_module, example)
        self.calls = max(calls, 1)
        self.settings = settings
        self.seen: list[tuple[Any, ...]] = []
        self.artifact: Artifact | None = None

    def __call__(self, *arguments: Any) -> Any:
        import torch

        inputs = tuple(arguments[index] for index in self.given)
        if self.artifact is None and len(self.seen) < self.calls:
            self.seen.append(tuple(value.detach().clone() for value in inputs))
            return self.module(*inputs)
        if self.artifact is None:
            self.artifact = compile(
                self.module, self.seen[0], calibration=self.seen, **self.settings
            )
        outputs = self.artifact.run(*(value.detach().numpy() for value in inputs))
        arrays = outputs if isinstance(outputs, tuple) else (outputs,)
        return tuple(torch.as_tensor(array) for array in arrays)


def bound(graph_module: Any, example: Sequence[Any]) -> tuple[Any, tuple[int, ...]]:
    """Return a module that holds the parameters among a graph's inputs, and that are the others."""
    import torch

    given = tuple(
        index
        for index, (value, node) in enumerate(
            zip(example, _placeholders(graph_module), strict=True)
        )
        if not isinstance(value, torch.nn.Parameter) and not _is_attribute(node)
    )

    class Bound(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.graph_module = graph_module
            for index, value in enumerate(example):
                if index not in given:
                    self.register_buffer(f"held_{index}", value.detach().clone())

        def forward(self, *inputs: Any) -> Any:
            remaining = iter(inputs)
            arguments = [
                next(remaining) if index in given else getattr(self, f"held_{index}")
                for index in range(len(example))
            ]
            return self.graph_module(*arguments)

    return Bound().eval(), given


def _placeholders(graph_module: Any) -> list[Any]:
    return [node for node in graph_module.graph.nodes if node.op == "placeholder"]


def _is_attribute(node: Any) -> bool:
    """Whether an input of a captured graph is a parameter or buffer of the model."""
    return any(
        word in node.name for word in ("l_self_modules_", "l_self_parameters_", "l_self_buffers_")
    )
