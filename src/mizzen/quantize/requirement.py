"""What must be installed for PyTorch's networks."""

from __future__ import annotations

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
