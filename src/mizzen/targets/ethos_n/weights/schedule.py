"""When each chunk comes: weights and runs of zeros take turns so that neither runs ahead.

Ref: Ethos-N driver stack 23.02, `WeightEncoder.cpp` (`GRCCompressPackChunk`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.targets.ethos_n.weights.chunks import Chunks
from mizzen.targets.ethos_n.weights.symbols import Flags, Numbers, exclusive_sum


@dataclass(frozen=True, slots=True)
class Schedule:
    """The steps of several streams, one stream after another; the last has only remainders.

    counts         steps of each stream
    weights, runs  the step, over all streams, of each chunk
    """

    counts: Numbers
    weights: Numbers
    runs: Numbers


def schedule(weights: Chunks, runs: Chunks, half: int) -> Schedule:
    """Find the steps; a stream without chunks of runs has a chunk of weights in every step."""
    streams = len(weights.counts)
    both = np.flatnonzero(runs.counts)
    counts = weights.counts + 1
    turns = _take_turns(weights, runs, both, half)
    if turns is not None:
        counts[both] = turns.steps + 1
    starts = exclusive_sum(counts)
    step = np.arange(len(weights.cells)) - np.repeat(weights.starts, weights.counts)
    if turns is not None:
        step[np.repeat(np.isin(np.arange(streams), both), weights.counts)] = turns.weights
    weight_steps = step + np.repeat(starts, weights.counts)
    run_steps = np.zeros(0, np.int64)
    if turns is not None:
        run_steps = turns.runs + np.repeat(starts, runs.counts)
    return Schedule(counts, weight_steps, run_steps)


@dataclass(frozen=True, slots=True)
class _Turns:
    """For each stream its steps; for each chunk its step in the stream."""

    steps: Numbers
    weights: Numbers
    runs: Numbers


def _take_turns(weights: Chunks, runs: Chunks, both: Numbers, half: int) -> _Turns | None:
    """Go through the steps of all streams with runs at once."""
    if not len(both):
        return None
    weight_done, run_done = _done(weights), _done(runs)
    weight_at, run_at = weights.starts[both], runs.starts[both]
    # Behind each stream's last chunk `_done` has one more number, so streams are one apart.
    weight_at, run_at = weight_at + both, run_at + both
    weight_end, run_end = weight_at + weights.counts[both], run_at + runs.counts[both]
    weight_turns: list[Flags] = []
    run_turns: list[Flags] = []
    while True:
        lead = weight_done[weight_at] - run_done[run_at]
        takes_weights = (lead < half) & (weight_at < weight_end)
        takes_runs = (lead >= 0) & (run_at < run_end)
        if not (takes_weights | takes_runs).any():
            break
        weight_turns.append(takes_weights)
        run_turns.append(takes_runs)
        weight_at += takes_weights
        run_at += takes_runs
    of_weights, of_runs = np.array(weight_turns).T, np.array(run_turns).T
    steps = (of_weights | of_runs).sum(axis=1)
    return _Turns(steps, np.nonzero(of_weights)[1], np.nonzero(of_runs)[1])


def _done(chunks: Chunks) -> Numbers:
    """Return the symbols of a stream that ended before each of its chunks, and after the last."""
    done = np.zeros(len(chunks.counts) + len(chunks.ending), np.int64)
    ends = np.cumsum(chunks.counts) + np.arange(len(chunks.counts))
    inside = np.ones(len(done), np.bool_)
    inside[ends] = False
    done[inside] = chunks.ending
    total = exclusive_sum(done)
    begins = ends - chunks.counts
    return total - np.repeat(total[begins], chunks.counts + 1)
