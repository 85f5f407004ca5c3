"""Quantise a trained language model, and compile it for an Ethos-U85."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import torch
from decoder import Decoder, Shape
from torch import Tensor
from train import parts, text

import mizzen.torch


def calls(data: Tensor, context: int, count: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the calls of a decoder that reads texts: a token [1, 1] and its position [1]."""
    for start in range(0, count * context, context):
        for place, token in enumerate(data[start : start + context]):
            yield token.view(1, 1), torch.tensor([place])


def main() -> None:
    """Compile, and write the artifact."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parameters", type=Path, help="what train.py wrote")
    parser.add_argument("output", type=Path, help="folder for the artifact")
    parser.add_argument("--accelerator-config", default="ethos-u85-256")
    parser.add_argument("--texts", type=int, default=4, help="texts to quantise with")
    options = parser.parse_args()
    model = Decoder(Shape())
    model.load_state_dict(torch.load(options.parameters))
    samples = list(calls(parts(text())[0], model.shape.context, options.texts))
    artifact = mizzen.torch.compile(
        model.eval(), samples[0], options.accelerator_config, calibration=samples
    )
    options.output.mkdir(parents=True, exist_ok=True)
    artifact.save(options.output / artifact.name)
    print(f"wrote {options.output / artifact.name}")


if __name__ == "__main__":
    main()
