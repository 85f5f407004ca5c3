"""Rows of a table by index. Ref: TOSA 1.0, 2.8.1 GATHER."""

from __future__ import annotations

from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.context import Call, Result, lowers


@lowers("aten.embedding.default", "aten.index_select.default", "aten.gather.default")
def rows(call: Call) -> Result:
    """Look rows up: PyTorch does it, for its indices have 64 bits."""
    raise RefusedError(
        "its indices have 64 bits, which no NPU takes",
        "look up on the host, and give the model the rows",
    )
