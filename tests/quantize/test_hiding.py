"""What a mask hides has no weight, however far the scores lie apart, and takes no steps of them.

Scores lie in [-30, 30], and the least of them is the only one that is visible in the first row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e

from mizzen.quantize import (
    EthosUQuantizer,
    get_symmetric_a16w8_quantization_config,
    get_symmetric_quantization_config,
)
from mizzen.quantize.nodes import FAR
from mizzen.torch import compile_converted

SIZE, SPAN = 6, 60.0
LEAST = torch.finfo(torch.float32).min
SHOWN = torch.ones(SIZE, SIZE).tril().bool()
NONE = torch.where(SHOWN, 0.0, -torch.inf)
SLOPES = -0.5 * torch.arange(SIZE).flip(0)
Function = Callable[..., Any]


def _scores(seed: int) -> Tensor:
    numbers = torch.rand(1, SIZE, SIZE, generator=torch.Generator().manual_seed(seed))
    scores = (numbers - 0.5) * SPAN
    scores[0, 0] = SPAN / 2
    scores[0, 0, 0] = -SPAN / 2
    return scores


CALLS = [_scores(seed) for seed in range(8)]


def _tolerance(bits: int) -> float:
    """Return how far a weight may be off: scores are rounded three times before they are one.

    Moving scores by e moves the odds of one against the others by a factor of e**(2e), and a weight
    by at most tanh(e) / 2. Exponentials and reciprocals are off by a step for each of a row, and
    in 16 bits are lines over 1/16: by (1/16)**2 / 8 of themselves, twice.
    """
    steps = 1 << bits
    widest = 2 * (SPAN / 2 + 3 + FAR[16]) if bits == 16 else SPAN + 3 + FAR[8]
    moved = (SPAN + widest) / 2 / (steps - 2) + 8.0 / steps
    lines = 2 * (1 / 16) ** 2 / 8 if bits == 16 else 0.0
    return math.tanh(moved) / 2 + (SIZE + 2) / (1 << min(bits, 15)) + lines


def _soft(scores: Tensor) -> Tensor:
    return torch.softmax(scores, -1)


ONE: dict[str, Callable[[Tensor], Tensor]] = {
    "masked_fill": lambda x: _soft(x.masked_fill(~SHOWN, -torch.inf)),
    "where": lambda x: _soft(torch.where(SHOWN, x, -1e9)),
    "sum": lambda x: _soft(x + NONE),
    "difference": lambda x: _soft(x - (~SHOWN).float() * 1e9),
    "before a factor": lambda x: _soft((8 * x + NONE) * 0.125),
    "before slopes": lambda x: _soft(x + NONE + SLOPES),
    "with slopes": lambda x: _soft(x + (NONE + SLOPES)),
    "before a shape": lambda x: _soft((x + NONE).view(1, 1, SIZE, SIZE) + SLOPES)[0],
    "beside a column": lambda x: _soft(torch.cat([x + NONE, x[..., :1]], -1))[..., :SIZE],
    "at least the least": lambda x: _soft(torch.maximum(x + NONE, torch.tensor(LEAST))),
}
"""Ways to hide by a constant."""

TWO: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Tensor]] = {
    "truths": (lambda x, m: _soft(x.masked_fill(~m, -torch.inf)), SHOWN),
    "truths, where": (lambda x, m: _soft(torch.where(m, x, -torch.inf)), SHOWN),
    "truths, a sum": (lambda x, m: _soft(x + torch.where(m, 0.0, -torch.inf)), SHOWN),
    "infinities": (lambda x, m: _soft(x + m), NONE),
    "slopes with infinities": (lambda x, m: _soft(x + m), NONE + SLOPES),
    "ones": (lambda x, m: _soft(x + (1.0 - m) * -1e9), SHOWN.float()),
    "zeros": (lambda x, m: _soft(x.masked_fill(m == 0, -torch.inf)), SHOWN.float()),
}
"""Ways to hide by an input, and that input."""


def _way(name: str) -> tuple[Function, tuple[Tensor, ...]]:
    """Return the function of that way, and what it takes beside scores."""
    if name in ONE:
        return ONE[name], ()
    function, mask = TWO[name]
    return function, (mask,)


SHOWN_IN_CALIBRATION = ("truths", "truths, where", "truths, a sum", "infinities")


class _Computes(torch.nn.Module):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.function(*inputs)


def _converted(
    function: Function, calls: list[tuple[Tensor, ...]], bits: int, target: str = "ethos-u85-256"
) -> torch.nn.Module:
    """Return the published steps' result."""
    config = {8: get_symmetric_quantization_config, 16: get_symmetric_a16w8_quantization_config}
    quantizer = EthosUQuantizer(target).set_global(config[bits]())
    program = torch.export.export(_Computes(function).eval(), calls[0]).module(check_guards=False)
    prepared = prepare_pt2e(program, quantizer)
    for call in calls:
        prepared(*call)
    return convert_pt2e(prepared)


def _hides(found: Tensor, expected: Tensor, bits: int) -> None:
    assert (found[expected == 0] == 0).all()
    assert float((found - expected).abs().max()) <= _tolerance(bits)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("way", [*ONE, *TWO])
def test_hidden_scores_have_no_weight(way: str, bits: int) -> None:
    function, masks = _way(way)
    calls = [(call, *masks) for call in CALLS]
    converted = _converted(function, calls, bits)
    for call in calls:
        _hides(converted(*call), function(*call), bits)


SHARED: dict[str, tuple[Callable[[Tensor], Tensor], Tensor]] = {
    "truths": (lambda m: torch.where(m, 0.0, LEAST)[None], SHOWN),
    "truths of several": (lambda m: torch.where(m, 0.0, LEAST) + NONE, SHOWN),
    "ones": (lambda m: (1.0 - m)[None] * LEAST, SHOWN.float()),
    "infinities": (lambda m: m + NONE, NONE),
}


@pytest.mark.parametrize("way", SHARED)
def test_layers_that_share_a_mask(way: str) -> None:
    maker, mask = SHARED[way]

    def function(x: Tensor, m: Tensor) -> tuple[Tensor, Tensor]:
        added = maker(m)
        return _soft(x + added), _soft(x * 0.5 + added)

    calls = [(call, mask) for call in CALLS]
    converted = _converted(function, calls, 8)
    for call in calls:
        for found, expected in zip(converted(*call), function(*call), strict=True):
            _hides(found, expected, 8)


@pytest.mark.parametrize("way", SHOWN_IN_CALIBRATION)
def test_a_mask_that_hid_nothing_in_calibration_hides(way: str) -> None:
    function, mask = TWO[way]
    nothing = torch.ones_like(mask) if mask.dtype == torch.bool else torch.zeros_like(mask)
    converted = _converted(function, [(call, nothing) for call in CALLS], 8)
    for call in CALLS:
        _hides(converted(call, mask), function(call, mask), 8)


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u85-256"])
@pytest.mark.parametrize("way", ["masked_fill", "truths", "slopes with infinities", "ones"])
@pytest.mark.parametrize("bits", [8, 16])
def test_an_artifact_hides_them(way: str, target: str, bits: int) -> None:
    function, masks = _way(way)
    calls = [(call, *masks) for call in CALLS]
    converted = _converted(function, calls, bits, target)
    exported: Any = torch.export.export(converted, calls[0])
    artifact = compile_converted(exported, target)
    for call in calls[:2]:
        found = torch.from_numpy(np.asarray(artifact.run(*[each.numpy() for each in call])))
        _hides(found.reshape(1, SIZE, SIZE), function(*call), bits)


def test_a_row_that_is_hidden_altogether_has_equal_weights() -> None:
    """PyTorch has NaN there."""
    mask = SHOWN & (torch.arange(SIZE) != 2)[:, None]
    function, _ = TWO["truths"]
    converted = _converted(function, [(call, SHOWN) for call in CALLS], 8)
    found = converted(CALLS[0], mask)
    assert torch.isfinite(found).all()
    assert (found[0, 2] == found[0, 2, 0]).all()
    _hides(found[:, 3:], function(CALLS[0], SHOWN)[:, 3:], 8)


def test_logarithms_of_visible_weights_keep_their_steps() -> None:
    def function(x: Tensor) -> Tensor:
        return torch.log_softmax(x + NONE, -1)

    converted = _converted(function, [(call,) for call in CALLS], 8)
    for call in CALLS:
        found, expected = converted(call), function(call)
        visible = expected > -torch.inf
        # Four roundings of numbers that lie in [-60, 0] or in twice that, and room to hide.
        assert float((found - expected)[visible].abs().max()) <= 4 * (2 * SPAN + 8) / 255 / 2


@pytest.mark.parametrize("way", ["masked_fill", "truths", "infinities"])
def test_masks_hide_in_training(way: str) -> None:
    function, masks = _way(way)
    # Ranges follow slowly, which is no error of masks: all calls are the same.
    calls = [(CALLS[0], *masks)] * 3
    config = get_symmetric_quantization_config(is_qat=True)
    quantizer = EthosUQuantizer("ethos-u85-256").set_global(config)
    program = torch.export.export(_Computes(function), calls[0]).module(check_guards=False)
    prepared = prepare_qat_pt2e(program, quantizer)
    for call in calls:
        _hides(prepared(*call), function(*call), 8)
    converted = convert_pt2e(prepared)
    for call in calls:
        _hides(converted(*call), function(*call), 8)
