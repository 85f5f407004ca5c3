"""What must be installed for PyTorch's networks."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from mizzen.diagnostics import fail


def require_torch() -> None:
    """Raise E165 unless PyTorch and torchao are installed."""
    missing = [name for name in ("torch", "torchao") if find_spec(name) is None]
    if missing:
        raise fail(
            "E165",
            f"{' and '.join(missing)} must be installed for PyTorch networks",
            help="pip install 'mizzen[torch]'",
        )


def register_operators() -> None:
    """Make PyTorch know the operators of quantised programs, which files name."""
    import_module("torch.ao.quantization.fx._decomposed")
    import_module("mizzen.quantize.recurrence")
