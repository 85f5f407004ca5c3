"""Operators that must be known before a file of PyTorch's is read."""

from __future__ import annotations

from importlib import import_module


def register_operators() -> None:
    """Make PyTorch know the operators of quantised programs, which files name."""
    import_module("torch.ao.quantization.fx._decomposed")
    import_module("mizzen.quantize.recurrence")
