"""Observers of scores of which a mask hides some, and of masks.

What is hidden has no range of its own: it becomes the lowest integer, which stands for a score so
far below the least visible one that its weight is no step.
"""

from __future__ import annotations

from typing import Any

import torch

from mizzen.quantize.nodes import FAR, HIDDEN, MASKED
from mizzen.quantize.observers import ActivationFakeQuantize, Parameters, RangeObserver


def _far(observer: Any) -> float:
    """Return how far below the greatest a score of an observer's integers has no weight."""
    return FAR[torch.iinfo(observer.dtype).bits]


class HidingObserver(RangeObserver):
    """The range of scores after a mask was added: the visible ones, and room for the others."""

    is_judged = False

    def __init__(self, times: float = 1.0, **arguments: Any) -> None:
        base: Any = super()
        base.__init__(**arguments)
        self.below = times * _far(self)

    def forward(self, x_orig: torch.Tensor) -> torch.Tensor:
        """Widen the range to the visible values of `x_orig`, and return it."""
        visible = x_orig[~(x_orig <= HIDDEN)]
        if visible.numel():
            super().forward(visible)
            super().forward(visible.min() - self.below)
        return x_orig


class MaskObserver(RangeObserver):
    """The range of an input that hides scores, which computes on with numbers that have a place.

    scores  the observers of what the mask is added to
    """

    is_judged = False

    def __init__(self, **arguments: Any) -> None:
        base: Any = super()
        base.__init__(**arguments)
        self.scores: list[Any] = []
        self.hides = False

    def forward(self, x_orig: torch.Tensor) -> torch.Tensor:
        """Widen the range to the values of `x_orig` that hide nothing, and bound the others."""
        hidden = x_orig <= HIDDEN
        self.hides |= bool(hidden.any())
        super().forward(torch.where(hidden, 0.0, x_orig))
        return torch.where(hidden, MASKED, x_orig)

    def calculate_qparams(self) -> Parameters:
        """Return scale and zero point; what hides is below all that scores may be.

        A mask that was all zeros in calibration hides at other times. E870 without data.
        """
        parameters = super().calculate_qparams()
        if not self.hides and bool(self.max_val > self.min_val):
            return parameters
        spans = [self._span(observer) for observer in self.scores]
        least = self.min_val - (sum(spans) + _far(self) if spans else -MASKED)
        return self._calculate_qparams(least, self.max_val)

    def _span(self, observer: Any) -> float:
        """Return how far apart two numbers may lie that have been quantised."""
        own: Any = self
        limits = torch.iinfo(own.dtype)
        scale, _ = observer.calculate_qparams()
        return float(scale) * (limits.max - limits.min)


class HidingFakeQuantize(ActivationFakeQuantize):
    """Quantisation of masked scores simulated in training."""

    def __init__(self, times: float = 1.0, **arguments: Any) -> None:
        base: Any = super()
        base.__init__(**arguments)
        self.below = times * _far(self)

    def forward(self, X: torch.Tensor) -> torch.Tensor:  # noqa: N803 - torchao's name
        """Follow the range of what is visible in `X`, and round; what is hidden is the lowest."""
        hidden = X <= HIDDEN
        visible = X.detach()[~hidden]
        least = visible.min() if visible.numel() else X.new_zeros(())
        return super().forward(torch.where(hidden, least - self.below, X))


class MaskFakeQuantize(ActivationFakeQuantize):
    """Quantisation of a mask that is an input simulated in training."""

    def forward(self, X: torch.Tensor) -> torch.Tensor:  # noqa: N803 - torchao's name
        """Follow the range of `X`, minus infinity bounded, and round."""
        return super().forward(torch.where(X <= HIDDEN, MASKED, X))
