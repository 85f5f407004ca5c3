"""Which form inputs have, and outputs then."""

from __future__ import annotations

import numpy as np
import pytest

from mizzen.artifact.batching import Form, arrange, batch_of
from mizzen.artifact.interface import TensorInfo


def _info(name: str, *shape: int) -> TensorInfo:
    return TensorInfo(name, shape, np.dtype(np.float32), None)


ROWS, ROW = _info("rows", 6, 8), _info("row", 1, 8)

GIVEN = {
    "one beside a row": ((6, 8), (1, 8), Form.ONE, (6, 8)),
    "one stacked beside a row": ((1, 6, 8), (1, 8), Form.STACKED, (1, 6, 8)),
    "two beside two rows": ((2, 6, 8), (2, 8), Form.MERGED, (2, 6, 8)),
    "one stacked": ((1, 6, 8), (1, 1, 8), Form.STACKED, (1, 6, 8)),
}


@pytest.mark.parametrize("name", GIVEN)
def test_outputs_come_in_the_form_of_the_inputs(name: str) -> None:
    """Where each has the model's own shape, it is one inference, and no axis counts any."""
    rows, row, form, expected = GIVEN[name]
    arrays = (np.zeros(rows, np.float32), np.zeros(row, np.float32))
    batch = batch_of(arrays, (ROWS, ROW))
    (output,) = arrange([np.zeros((batch.size, 6, 8), np.float32)], [ROWS], batch)
    assert output.shape == expected
    assert batch.form is form


@pytest.mark.parametrize("shape", [(), (2,), (2, 4), (1, 4)])
def test_one_inference_has_outputs_of_the_models_own_shapes(shape: tuple[int, ...]) -> None:
    """Even of inputs whose first extent, 1, might count inferences."""
    batch = batch_of((np.zeros((1, 8), np.float32),), (ROW,))
    result = np.zeros((1, *shape), np.float32)
    assert arrange([result], [_info("result", *shape)], batch)[0].shape == shape
