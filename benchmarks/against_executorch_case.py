"""What both sides of the benchmark share: a network with its weights and inputs, and a stopwatch.

Runs in the interpreter of each side, so it imports PyTorch and the zoo, nothing else.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@dataclass(frozen=True)
class Case:
    """A network for inference, the arguments of a call, and those of the calls to calibrate by."""

    name: str
    module: Any
    example: tuple[Any, ...]
    calibration: list[tuple[Any, ...]]


class Stopwatch:
    """Seconds of each stage, in the order in which they ran."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def _zoo() -> Any:
    sys.path.insert(0, str(EXAMPLES))
    return import_module("zoo")


def names() -> list[str]:
    """Return the names of all networks."""
    return list(_zoo().NETWORKS)


def write(name: str, path: Path) -> None:
    """Put a network's weights and inputs into a file, for both sides to load."""
    import torch

    entry = _zoo().NETWORKS[name]
    parts = (entry.build().state_dict(), entry.example_inputs(), entry.calibration())
    torch.save(parts, path)


def load(name: str, path: Path) -> Case:
    """Make the network, with the weights and inputs of a file that `write` wrote."""
    import torch

    state, example, calibration = torch.load(path, weights_only=True)
    module = _zoo().NETWORKS[name].network()
    module.load_state_dict(state)
    return Case(name, module.eval(), tuple(example), [tuple(inputs) for inputs in calibration])


def peak_memory_bytes() -> int:
    """Return this process's largest resident set so far. Linux counts it in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
