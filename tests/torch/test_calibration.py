"""What users calibrate with: loaders with labels, larger batches, single samples, arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from mizzen.compiler.torch.call import Call
from mizzen.diagnostics import MizzenError
from mizzen.torch import compile
from mizzen.torch.calibration import calls_of

EXAMPLE = Call((torch.zeros(1, 3, 4, 4),), parameters=("image",))

ROWS: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
    "a tensor": (torch.zeros(1, 3, 4, 4), [(1, 3, 4, 4)]),
    "a tensor and a label": ((torch.zeros(1, 3, 4, 4), torch.zeros(1)), [(1, 3, 4, 4)]),
    "a list, as loaders give": ([torch.zeros(2, 3, 4, 4), torch.zeros(2)], [(1, 3, 4, 4)] * 2),
    "a sample of a data set": ((torch.zeros(3, 4, 4), 7), [(1, 3, 4, 4)]),
    "named": ({"image": torch.zeros(1, 3, 4, 4), "label": 7}, [(1, 3, 4, 4)]),
    "an array of float64": (np.zeros((1, 3, 4, 4)), [(1, 3, 4, 4)]),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_become_calls(name: str) -> None:
    row, shapes = ROWS[name]
    calls = list(calls_of(EXAMPLE, [row]))
    assert [tuple(call.positional[0].shape) for call in calls] == shapes
    assert all(len(call.leaves) == 1 for call in calls)
    assert all(call.leaves[0].dtype is torch.float32 for call in calls)


def test_a_batch_that_does_not_divide_leaves_its_rest_out() -> None:
    example = Call((torch.zeros(2, 3), torch.zeros(2, 1)))
    rows = [(torch.arange(15.0).reshape(5, 3), torch.arange(5.0).reshape(5, 1))]
    calls = list(calls_of(example, rows))
    assert [call.positional[0][0, 0].item() for call in calls] == [0, 6]
    assert [call.positional[1][0, 0].item() for call in calls] == [0, 2]


WRONG: dict[str, tuple[Any, str]] = {
    "another shape": (torch.zeros(1, 3, 5, 4), "of shape (1, 3, 4, 4), and (1, 3, 5, 4) came"),
    "another type": (torch.zeros(1, 3, 4, 4, dtype=torch.uint8), "torch.float32, and torch.uint8"),
    "a dictionary": ({"x": torch.zeros(1, 3, 4, 4)}, "called image, and x came"),
    "words": (("x",), "tensors, and a str came"),
}


@pytest.mark.parametrize("name", WRONG)
def test_rows_that_are_no_calls_are_refused(name: str) -> None:
    row, text = WRONG[name]
    with pytest.raises(MizzenError) as caught:
        list(calls_of(EXAMPLE, [EXAMPLE.positional, row]))
    found = caught.value.diagnostic
    assert found.code == "E880"
    assert found.message.startswith("calibration's row 1 must be arguments like the example's: ")
    assert text in found.message
    assert "labels may follow" in (found.help or "")


def test_a_loader_calibrates_a_function_and_a_dynamic_program() -> None:
    """Whatever is compiled takes the sizes of the example."""
    torch.manual_seed(0)
    images = torch.rand(6, 3, 8, 8) * 2 - 1
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten()).eval()
    dims = ({0: torch.export.Dim("n", min=1, max=8)},)
    program = torch.export.export(model, (images[:2],), dynamic_shapes=dims)
    loader = DataLoader(TensorDataset(images, torch.arange(6)), batch_size=3)

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) * 2

    for given, reference in ((program, model), (function, function)):
        artifact = compile(
            given, images[:1], "ethos-u55-128", calibration=loader, prove="off"
        )  # fmt: skip
        with torch.no_grad():
            expected = reference(images[3:4]).numpy()
        found = np.asarray(artifact.run(images[3:4].numpy()))
        assert np.abs(found - expected).max() <= 6 * 2 / 255
        assert artifact.report is not None
        assert not artifact.report.on_cpu
