"""Updates in place, copies and conversions of types: what PyTorch computes, or a reason."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e

from mizzen.diagnostics import MizzenError
from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config
from mizzen.torch import compile

U85 = "ethos-u85-256"

Update = Callable[[torch.Tensor], torch.Tensor]


class _Net(nn.Module):
    """A convolution, and what a test does with its result."""

    def __init__(self, update: Update) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.update: Update = update

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.update(self.norm(self.conv(x)))


def _through_a_view(x: torch.Tensor) -> torch.Tensor:
    x.view(1, -1).add_(1)
    return x * 2


def _one_channel(x: torch.Tensor) -> torch.Tensor:
    x[:, 0] = 0
    return x


def _some_channels(x: torch.Tensor) -> torch.Tensor:
    x[:, :2].add_(1)
    return x * 2


def _block(x: torch.Tensor) -> torch.Tensor:
    x[:, 1] = x[:, 0] * 2
    x[:, :, 1:3, 1:3] = 0.5
    return x


def _of_views_of_itself(x: torch.Tensor) -> torch.Tensor:
    rows = x.view(1, 4, -1) * 2
    x[:, :, :, :] = rows.view(x.shape) + x.transpose(2, 3)
    return x.flatten(2) * 2


def _every_other(x: torch.Tensor) -> torch.Tensor:
    x[..., ::2].mul_(2)
    return x


def _transposed(x: torch.Tensor) -> torch.Tensor:
    x.permute(0, 2, 3, 1).relu_()
    return x


def _parts_of_an_empty_tensor(x: torch.Tensor) -> torch.Tensor:
    both = torch.empty(1, 8, 6, 6)
    both[:, :4] = x
    both[:, 4:] = -x
    return both


def _copied_part(x: torch.Tensor) -> torch.Tensor:
    x[:, 0].copy_(x[:, 1])
    return x


def _copied_parts(x: torch.Tensor) -> torch.Tensor:
    first, second = torch.ops.aten.split_copy.Tensor(x, 2, 1)
    return first * second


def _zeroed(x: torch.Tensor) -> torch.Tensor:
    return x.clone().zero_() + x


UPDATES: dict[str, Update] = {
    "float": lambda x: x.float() + 1,
    "to a type": lambda x: x.to(torch.float32) * 2,
    "to the CPU": lambda x: x.to("cpu") * 2,
    "to another's type": lambda x: x.to(x) * 2,
    "through a view": _through_a_view,
    "one channel": _one_channel,
    "some channels": _some_channels,
    "a block": _block,
    "through a transposed view": _transposed,
    "parts of an empty tensor": _parts_of_an_empty_tensor,
    "a copied part": _copied_part,
    "copied parts": _copied_parts,
    "zeroed": _zeroed,
    "of views of itself": _of_views_of_itself,
    "every other": _every_other,
}


def _off(update: Update) -> tuple[float, list[str]]:
    """Return the greatest error in steps of the output's range, and what is on the CPU."""
    torch.manual_seed(0)
    images = [torch.randn(1, 3, 8, 8) for _ in range(3)]
    model = _Net(update).eval()
    artifact = compile(model, (images[0],), U85, calibration=images, prove="off")
    with torch.no_grad():
        expected = [model(image.clone()).numpy() for image in images]
    found = [artifact.run(image.numpy()) for image in images]
    assert artifact.report is not None
    wrong = np.abs(np.array(found) - np.array(expected)).max()
    step = (max(map(np.max, expected)) - min(map(np.min, expected))) / 255
    return float(wrong / step), [row.kind or "" for row in artifact.report.on_cpu]


@pytest.mark.parametrize("name", UPDATES)
def test_what_is_written_in_place_is_what_pytorch_writes(name: str) -> None:
    """On the NPU, but for two steps for each of three layers, as 8 bits round."""
    off, on_cpu = _off(UPDATES[name])
    assert off <= 6
    assert on_cpu == []


def test_an_input_that_is_written_is_the_callers() -> None:
    """The artifact computes with what was written, and gives no more than the model does."""

    class Writes(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x[:, 0] = 0
            return torch.relu(x)

    row = torch.linspace(-1, 1, 12).reshape(3, 4)
    artifact = compile(Writes().eval(), (row.clone(),), U85, prove="off")
    found = artifact.run(row.flip(0).numpy())
    expected = Writes()(row.flip(0).clone()).numpy()
    assert np.abs(np.asarray(found) - expected).max() <= 2 / 255


@pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec")
def test_a_write_through_a_view_is_refused_in_the_published_steps() -> None:
    """With its line, and with the step that makes it explicit, which does."""
    model, image = _Net(_through_a_view).eval(), torch.randn(1, 3, 8, 8)
    exported = torch.export.export(model, (image,))
    with pytest.raises(MizzenError) as caught:
        prepare_pt2e(exported.module(check_guards=False), _quantizer())
    found = caught.value.diagnostic
    assert found.code == "E879"
    assert found.message == (
        "an update in place must not be seen through another tensor, and add_ writes to memory "
        "that is read under another name"
    )
    assert found.origin is not None
    assert (found.origin.source or "").startswith("test_in_place.py:")
    assert "run_decompositions({})" in (found.help or "")
    explicit = exported.run_decompositions({}).module(check_guards=False)
    prepared = prepare_pt2e(explicit, _quantizer())
    with torch.no_grad():
        assert torch.allclose(prepared(image), model(image), atol=1e-5)


def _quantizer() -> EthosUQuantizer:
    return EthosUQuantizer(U85).set_global(get_symmetric_quantization_config())
