"""Compare the perplexity of a compiled language model with that of the one it was made of."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
import torch
from decoder import Decoder, Shape
from torch import Tensor
from train import parts, perplexity, text

import mizzen
from mizzen.artifact.artifact import Artifact


def compiled_perplexity(artifact: Artifact, data: Tensor, length: int) -> float:
    """Return the perplexity of a text on the simulated NPU, piece by piece."""
    pieces = data[: len(data) // length * length].view(-1, length).numpy()
    session, losses = artifact.session(len(pieces)), list[float]()
    for place in range(length - 1):
        scores = np.asarray(
            session.run(pieces[:, place, None], np.full(len(pieces), place)), np.float64
        ).reshape(len(pieces), -1)
        best = scores.max(1, keepdims=True)
        totals = np.log(np.exp(scores - best).sum(1)) + best[:, 0]
        losses += (totals - scores[np.arange(len(pieces)), pieces[:, place + 1]]).tolist()
    return math.exp(float(np.mean(losses)))


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parameters", type=Path, help="what train.py wrote")
    parser.add_argument("artifact", type=Path, help="what compile.py wrote")
    parser.add_argument("--texts", type=int, default=16, help="pieces of the text to read")
    options = parser.parse_args()
    model = Decoder(Shape())
    model.load_state_dict(torch.load(options.parameters))
    data = parts(text())[1][: options.texts * model.shape.context]
    print(f"float     {perplexity(model.eval(), data):.4f}")
    artifact = mizzen.load(options.artifact)
    print(f"compiled  {compiled_perplexity(artifact, data, model.shape.context):.4f}")


if __name__ == "__main__":
    main()
