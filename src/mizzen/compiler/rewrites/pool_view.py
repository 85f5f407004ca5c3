"""View the map of a global average pool so that it fills the MAC array.

A pool over H x W positions of C channels is one over H*W rows of k columns with C/k channels each:
the same bytes, the same sums. With a few columns the array has work for its whole width.

Conditions: an AVERAGE_POOL_2D over the whole map without pads, at most 256 positions, as many as a
window may have rows; k divides C. It divides by the same count: exact.
"""

from __future__ import annotations

from mizzen.compiler.rewrites.draft import Draft, Step
from mizzen.flatbuffer.tflite import Padding, TensorType

MOST_POSITIONS = 256
"""Height of a window. Ref: Vela 5.2, SUPPORTED_OPS.md, AVERAGE_POOL_2D."""


def view_pools(draft: Draft, columns: int) -> bool:
    """View the maps of all such pools in `columns` columns; False without one."""
    pools = [step for step in draft.steps if _fits(step, columns)]
    for step in pools:
        _view(draft, step, columns)
    return bool(pools)


def _fits(step: Step, columns: int) -> bool:
    if step.kind != "AVERAGE_POOL_2D" or step.data.type is not TensorType.INT8:
        return False
    batch, height, width, channels = step.data.shape
    window = (int(step.fields["filter_height"]), int(step.fields["filter_width"]))
    whole = window == (height, width) and step.result.shape[1:3] == (1, 1)
    positions = height * width
    return whole and batch == 1 and 1 < positions <= MOST_POSITIONS and channels % columns == 0


def _view(draft: Draft, step: Step, columns: int) -> None:
    batch, height, width, channels = step.data.shape
    each = channels // columns
    data = draft.like(step.data, "rows", (batch, height * width, columns, each))
    result = draft.like(step.result, "rows", (batch, 1, columns, each))
    draft.before(step, draft.view(step.source, step.data, data))
    draft.after(step, draft.view(step.source, result, step.result))
    step.inputs[0], step.outputs[0] = data, result
    step.fields |= {
        "filter_height": height * width,
        "filter_width": 1,
        "stride_h": 1,
        "stride_w": 1,
        "padding": int(Padding.VALID),
    }
