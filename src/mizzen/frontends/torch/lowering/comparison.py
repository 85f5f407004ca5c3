"""Comparisons and choices."""

from __future__ import annotations

from mizzen.frontends.torch.context import Call, RefusedError, Result, lowers


@lowers("aten.argmax.default", "aten.argmin.default")
def index_of_extreme(call: Call) -> Result:
    """The index of an extreme: PyTorch finds it, for an index has 64 bits."""
    raise RefusedError(
        "its result has 64 bits, which no NPU gives",
        "take the index on the host: it costs one pass over the outputs",
    )
