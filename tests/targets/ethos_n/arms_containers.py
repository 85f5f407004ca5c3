"""Networks with the digest of what Arm's library, release 23.02, makes of each.

They are drawn at random, but for a ResNet-50 of a sixteenth of the channels. Together they use
every kind of pass, strategy, kernel, block, format and variant that there is. Constants are made by
a rule from their shapes, `numbers`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_n.commands_values import Strategy
from mizzen.targets.ethos_n.config import (
    BLOCK_CONFIGS,
    CHOOSABLE_STRATEGIES,
    CompilationOptions,
    VariantConfiguration,
    find_variant,
)
from mizzen.targets.ethos_n.network import Network

from .network_text import parse_network

FILE = Path(__file__).with_suffix(".json")


@dataclass(frozen=True)
class Answer:
    """A network, what it is compiled for, and the SHA-256 of Arm's container."""

    name: str
    lines: tuple[str, ...]
    configuration: VariantConfiguration
    sha256: str

    def __str__(self) -> str:
        return self.name

    @property
    def network(self) -> Network:
        """The network."""
        constants = [line.split() for line in self.lines if line.startswith("const")]
        arrays = {words[1]: numbers(words[2:]) for words in constants}
        return parse_network("\n".join(self.lines), arrays)


def numbers(words: Sequence[str]) -> npt.NDArray[Any]:
    """Make a constant's numbers from its description: weights around 120 or 0, small biases."""
    shape = tuple(map(int, words[:4]))
    index = np.arange(math.prod(shape), dtype=np.int64)
    spread = (index * 7919 + index // 5 * 104729) % 61 - (index * 31 + index // 7) % 29
    match words[4]:
        case "u8":
            return (spread + 110).astype(np.uint8).reshape(shape)
        case "s8":
            return spread.astype(np.int8).reshape(shape)
        case _:
            return (spread * 37).astype(np.int32).reshape(shape)


def options(words: Sequence[str]) -> CompilationOptions:
    """Read options: what is switched off, `name=0`, and `strict=1`."""
    off = {word.removesuffix("=0") for word in words}
    strategies = (row for row in CHOOSABLE_STRATEGIES if f"strategy{row.name[-1]}" not in off)
    return CompilationOptions(
        strategies=frozenset[Strategy](strategies),
        block_configs=frozenset(row for row in BLOCK_CONFIGS if str(row) not in off),
        intermediate_compression="compression" not in off,
        winograd="winograd" not in off,
        strict_precision="strict=1" in off,
    )


def answers() -> list[Answer]:
    """Return all networks with their digests."""
    return [
        Answer(
            row["name"],
            tuple(row["network"]),
            VariantConfiguration(
                find_variant(row["variant"]), row["sram_bytes"], options(row["options"])
            ),
            row["sha256"],
        )
        for row in json.loads(FILE.read_text())
    ]
