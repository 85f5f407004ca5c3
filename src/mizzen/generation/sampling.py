"""How the next token is chosen of its scores."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mizzen.artifact.decoding import greedy
from mizzen.artifact.interface import Array
from mizzen.diagnostics import fail


@dataclass(frozen=True, slots=True)
class Sampling:
    """Draws from the best `top_k` tokens by their scores; the same seed draws the same.

    temperature  what scores are divided by: below 1 the best are likelier, 0 always takes the best

    Raises E733 for what cannot be drawn from.
    """

    top_k: int = 1
    temperature: float = 1.0
    seed: int = 0
    _draws: np.random.Generator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.top_k < 1 or not 0 <= self.temperature < np.inf or self.seed < 0:
            raise fail(
                "E733",
                "sampling takes a top_k of 1 or more, a temperature and a seed of 0 or more, and "
                f"not {self.top_k}, {self.temperature} and {self.seed}",
                help="--top-k 40 --temperature 0.8 --seed 1",
            )
        object.__setattr__(self, "_draws", np.random.default_rng(self.seed))

    def __call__(self, scores: Array) -> Array:
        """Choose a token of each stream: float32 [streams, vocabulary] to int64 [streams]."""
        if self.top_k == 1 or not self.temperature:
            return greedy(scores)
        top = min(self.top_k, scores.shape[-1])
        best = np.argsort(-scores, axis=-1, kind="stable")[:, :top]
        kept = np.take_along_axis(scores, best, -1).astype(np.float64) / self.temperature
        weights = np.exp(kept - kept.max(-1, keepdims=True))
        bounds = np.cumsum(weights, -1)
        drawn = self._draws.random((len(scores), 1)) * bounds[:, -1:]
        places = (bounds <= drawn).sum(-1, keepdims=True)
        return np.take_along_axis(best, np.minimum(places, top - 1), -1)[:, 0]
