"""Between PyTorch's tensors and NumPy's arrays; PyTorch's types end here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def tensor_of(array: Array) -> Any:
    """Return an array as a tensor that shares its memory where it can."""
    import torch

    torch_: Any = torch
    return torch_.from_numpy(np.ascontiguousarray(array))


def is_tensor(value: object) -> bool:
    """Whether a value is a tensor of PyTorch's, made up ones too."""
    import torch

    return isinstance(value, torch.Tensor)


def mapped(arguments: Any, function: Callable[[Any], Any]) -> Any:
    """Replace the nodes among arguments, however deep in lists."""
    import torch.fx

    fx: Any = torch.fx
    return fx.node.map_arg(arguments, function)


def without_gradient(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call a function of PyTorch's for its result only."""
    import torch

    with torch.no_grad():
        return function(*arguments, **named)


def results_of(node: Any) -> tuple[Any, ...]:
    """Return what export knows of a node's results: one, or those of a tuple."""
    value: Any = node.meta.get("val")
    return tuple(value) if type(value) in (tuple, list) else (value,)


def zeros_like(made_up: Any) -> Any:
    """Return zeros of the shape and type of a tensor that export made up."""
    import torch

    torch_: Any = torch
    return torch_.zeros(tuple(made_up.shape), dtype=made_up.dtype)


def operator_of(name: str) -> Any:
    """Return ATen's operator of a name with overload, ``aten.relu.default``."""
    import torch

    _, operator, overload = name.split(".")
    return getattr(getattr(torch.ops.aten, operator), overload)
