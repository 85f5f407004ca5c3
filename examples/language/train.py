"""Train a language model on the documentation that comes with Python, in minutes on a CPU.

The text is `pydoc_data.topics`, 450 kB under Python's licence.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from pydoc_data import topics

import torch
from decoder import Decoder, Shape
from torch import Tensor
from torch.nn import functional


def text() -> Tensor:
    """Return the bytes of the text, which has nothing but ASCII: int64 [bytes]."""
    joined = "\n".join(topics.topics.values())
    return torch.tensor([*joined.encode("ascii", "replace")])


def parts(data: Tensor) -> tuple[Tensor, Tensor]:
    """Return what is trained on, and the last twentieth, which is not."""
    cut = len(data) * 19 // 20
    return data[:cut], data[cut:]


def perplexity(model: Decoder, data: Tensor) -> float:
    """Return the perplexity of a text, cut into pieces of the context's length."""
    length = model.shape.context
    pieces = data[: len(data) // length * length].view(-1, length)
    with torch.no_grad():
        scores = model(pieces[:, :-1])
    return math.exp(functional.cross_entropy(scores.flatten(0, 1), pieces[:, 1:].flatten()))


def train(shape: Shape, steps: int, batch: int = 12, rate: float = 2e-3) -> Decoder:
    """Train a decoder, and print its loss from time to time."""
    torch.manual_seed(0)
    model, (data, _) = Decoder(shape), parts(text())
    for parameter in model.parameters():
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.02)
    optimizer = torch.optim.AdamW(model.parameters(), rate, (0.9, 0.95), weight_decay=0.05)
    begun = time.perf_counter()
    for step in range(steps):
        warm, slow = min(1, (step + 1) / 50), 0.5 + 0.5 * math.cos(math.pi * step / steps)
        optimizer.param_groups[0]["lr"] = rate * warm * (0.05 + 0.95 * slow)
        starts = torch.randint(0, len(data) - shape.context - 1, (batch,)).tolist()
        pieces = torch.stack([data[start : start + shape.context + 1] for start in starts])
        scores = model(pieces[:, :-1])
        loss = functional.cross_entropy(scores.flatten(0, 1), pieces[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 0 or step == steps - 1:
            print(f"step {step}, loss {loss.item():.3f}, {time.perf_counter() - begun:.0f} s")
    return model.eval().requires_grad_(requires_grad=False)


def main() -> None:
    """Train, and write the parameters."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path, help="file .pt for the parameters")
    parser.add_argument("--steps", type=int, default=700)
    options = parser.parse_args()
    model = train(Shape(), options.steps)
    torch.save(model.state_dict(), options.output)
    print(f"perplexity of the text that was held back: {perplexity(model, parts(text())[1]):.3f}")


if __name__ == "__main__":
    main()
