"""Stages of several layers, for machines with few elements for the layers of a network."""

from __future__ import annotations

import itertools

import numpy as np

from mizzen.mesh.mapping.memory import aligned
from mizzen.mesh.mapping.splits import Choices, Floats, Ints
from mizzen.mesh.mapping.stages import Problem, Stage, Stages
from mizzen.mesh.network.network import Layer

MEMORY_WEIGHTS = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 30.0)
"""What memory is worth against time: with each, every layer takes the split that costs least."""

Run = tuple[int, int, int]
Used = tuple[int, ...]


class SharedStages:
    """What each run of layers needs on so many elements of each kind: time, or infinity."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.seconds: dict[Run, Floats] = {}
        self.weights: dict[Run, Ints] = {}
        self.picks = [self._picks_of(kind) for kind in range(len(problem.kinds))]
        self.kinds = [kind for kind, count in enumerate(problem.elements) if count]
        for kind, first in itertools.product(self.kinds, range(len(problem.choices))):
            self._weigh(kind, first)

    def least(self) -> float:
        """Return a period that is too short."""
        return min(float(seconds.min()) for seconds in self.seconds.values()) / 2

    def most(self) -> float:
        """Return a period that is long enough where any is."""
        finite = [seconds[np.isfinite(seconds)] for seconds in self.seconds.values()]
        return max((float(times.max()) for times in finite if len(times)), default=1.0)

    def stages(self, period_s: float) -> Stages | None:
        """Return stages that keep a period with the fewest elements, the first kinds first."""
        layers = len(self.problem.choices)
        none: Used = (0,) * len(self.problem.kinds)
        reached: list[dict[Used, tuple[Used, Run, int] | None]] = [{} for _ in range(layers + 1)]
        reached[0][none] = None
        for first in range(layers):
            for used in _least(list(reached[first])):
                for kind, last in itertools.product(self.kinds, range(first + 1, layers + 1)):
                    count = self._fewest((kind, first, last), period_s)
                    if count is None or used[kind] + count > self.problem.elements[kind]:
                        continue
                    now = tuple(u + count * (k == kind) for k, u in enumerate(used))
                    reached[last].setdefault(now, (used, (kind, first, last), count))
        if not reached[layers]:
            return None
        return self._traced(reached, min(reached[layers], key=lambda used: (sum(used), used)))

    def _traced(
        self, reached: list[dict[Used, tuple[Used, Run, int] | None]], used: Used
    ) -> Stages:
        stages: list[Stage] = []
        at, slowest = len(reached) - 1, 0.0
        while (step := reached[at][used]) is not None:
            used, run, count = step
            stages.append(self.stage(run, count))
            slowest = max(slowest, float(self.seconds[run][count]))
            at = run[1]
        return Stages(tuple(reversed(stages)), slowest)

    def stage(self, run: Run, count: int) -> Stage:
        """Return a run on so many elements; the one of least memory where none fits."""
        kind, first, last = run
        weight = int(self.weights[run][count])
        if not np.isfinite(self.seconds[run][count]):
            weight = len(MEMORY_WEIGHTS) - 1
        choices = self.problem.choices
        splits = tuple(
            choices[layer].splits[int(self.picks[kind][layer][weight][count])]
            for layer in range(first, last)
        )
        return Stage(first, last, kind, count, splits)

    def _fewest(self, run: Run, period_s: float) -> int | None:
        enough = np.flatnonzero(self.seconds[run] <= period_s)
        return int(enough[0]) if len(enough) else None

    def _picks_of(self, kind: int) -> list[Ints]:
        return [self._picks_of_layer(kind, choices) for choices in self.problem.choices]

    def _picks_of_layer(self, kind: int, choices: Choices) -> Ints:
        """Return for each weight and count of elements the best split, by index; -1 for none."""
        count = self.problem.elements[kind]
        usual = sum(float(one.seconds[kind].max()) for one in self.problem.choices)
        usual /= max(count, 1)
        picks: list[Ints] = []
        for weight in MEMORY_WEIGHTS:
            held = choices.held / self.problem.kinds[kind].data_bytes
            cost = choices.seconds[kind] / usual + weight * held
            best = np.full(count + 1, -1, np.int64)
            for elements in range(1, count + 1):
                few = np.flatnonzero(choices.tiles <= elements)
                if len(few):
                    best[elements] = few[np.argmin(cost[few])]
            picks.append(best)
        return np.array(picks)

    def _weigh(self, kind: int, first: int) -> None:
        """Weigh all runs of layers that begin with one."""
        count, choices = self.problem.elements[kind], self.problem.choices
        shape = (len(MEMORY_WEIGHTS), count + 1)
        time, held = np.zeros(shape), np.zeros(shape)
        for last in range(first + 1, len(choices) + 1):
            picks = self.picks[kind][last - 1]
            seconds = choices[last - 1].seconds[kind][picks]
            time = time + np.where(picks < 0, np.inf, seconds)
            held = held + choices[last - 1].held[picks]
            held_alone = self._alone_bytes(kind, first, last)
            together = held.copy()
            together[:, 1] = held_alone
            fits = together <= self.problem.kinds[kind].data_bytes
            weighed = np.where(fits, time, np.inf)
            weighed[:, 0] = np.inf
            self.weights[kind, first, last] = np.argmin(weighed, axis=0)
            self.seconds[kind, first, last] = weighed.min(axis=0)

    def _alone_bytes(self, kind: int, first: int, last: int) -> Ints:
        """Return the bytes of a run on one element: only its first inputs come as messages."""
        network = self.problem.network
        inside = {network.layers[layer].output for layer in range(first, last)}
        total = np.zeros(len(MEMORY_WEIGHTS), np.int64)
        for layer in range(first, last):
            choices = self.problem.choices[layer]
            total += choices.alone[self.picks[kind][layer][:, 1]]
            total += self._message_bytes(network.layers[layer], inside, range(first, last))
        return total

    def _message_bytes(self, layer: Layer, inside: set[int], run: range) -> int:
        network, again = self.problem.network, int(self.problem.buffering) - 1
        more = 0
        for tensor in dict.fromkeys(layer.inputs):
            if tensor in network.producer and tensor not in inside:
                depth = max(0, run.start - network.producer[tensor] - 1)
                more += aligned(network.tensors[tensor].size_bytes) * (depth + again)
        if any(consumer not in run for consumer in network.consumers[layer.output]):
            more += aligned(network.tensors[layer.output].size_bytes) * again
        return more


def _least(states: list[Used]) -> list[Used]:
    """Return the states that no other has fewer elements of every kind than."""
    return [
        one
        for one in states
        if not any(
            other != one and all(a <= b for a, b in zip(other, one, strict=True))
            for other in states
        )
    ]
