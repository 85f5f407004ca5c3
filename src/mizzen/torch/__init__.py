"""PyTorch networks for Ethos-U: quantise, compile, run."""

from __future__ import annotations

from mizzen.torch.compilation import compile_converted

__all__ = ["compile_converted"]
