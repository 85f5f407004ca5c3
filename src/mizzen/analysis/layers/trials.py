"""Advice by trial: changes that would make a network cheaper, each compiled before it is told.

Two kinds are tried. Where an inference waits for flash or DRAM, the network is compiled for other
memory modes. Where the shape of a layer leaves the array idle, that layer is compiled by itself
with fewer channels. Nothing is proved, and what does not help is not told.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from mizzen.analysis.checking.budget import Again, other_modes, sram_of
from mizzen.analysis.layers.cliffs import alone, candidates, neighbours
from mizzen.analysis.layers.neighbours import Form, channels_of, forms_of
from mizzen.analysis.memory import memory_report
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import read_network
from mizzen.compiler.backend import ResolvedTarget
from mizzen.compiler.compile import TFLITE, front_end_of
from mizzen.compiler.source import Source
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite import Model, Operator
from mizzen.report.advice import Advice, Measured
from mizzen.report.cliffs import Neighbour
from mizzen.report.cost import Bound, added
from mizzen.report.layers import Layer

SECONDS = 10.0
"""No trial begins after this time."""
MOST_LAYERS = 3
"""Layers that are compiled with fewer channels, the dear ones."""
LEAST_WAITING = 0.1
"""Share of an inference that must wait for flash or DRAM for memory modes to be tried."""
LEAST_IDLE = 0.2
"""Share of a layer's time in which its shape leaves the array idle for it to be tried."""
LEAST_SAVED = 0.02
"""Share of an inference that a change must save to be told."""
STEPS = (8, 16)
"""Numbers of channels at multiples of which arrays are full."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What was compiled, and how parts of it are compiled again.

    compile_again  compiles the network with other options
    modes          memory modes that may be tried; None for all that the NPU has
    model, target  of a TFLite network, whose layers can be compiled alone; else None
    """

    artifact: Artifact
    layers: Sequence[Layer]
    compile_again: Again
    modes: Collection[str] | None = None
    model: Model | None = None
    target: ResolvedTarget | None = None


def advice(subject: Subject, on_trial: Callable[[str], None] = lambda what: None) -> list[Advice]:
    """Try what may help, and return what does, the most valuable first.

    on_trial  is told what is tried next
    """
    report = subject.artifact.report
    if report is None or not report.cycles:
        return []
    end = time.monotonic() + SECONDS
    least = LEAST_SAVED * report.cycles
    told: list[Advice] = []
    for trial in (*_memory_trials(subject), *_channel_trials(subject)):
        if time.monotonic() > end:
            break
        on_trial(trial.what)
        told += [found for found in trial.advice() if found.saved_cycles >= least]
    best_mode = max((each for each in told if each.layer is None), key=_saved, default=None)
    kept = [each for each in told if each.layer is not None or each is best_mode]
    return sorted(kept, key=_saved, reverse=True)


def _saved(advice: Advice) -> int:
    return advice.saved_cycles


@dataclass(frozen=True, slots=True)
class _Trial:
    what: str
    advice: Callable[[], Iterator[Advice]]


def _memory_trials(subject: Subject) -> Iterator[_Trial]:
    """Yield a trial for each other memory mode, where the network waits for flash or DRAM."""
    report = subject.artifact.report
    causes = added(layer.causes for layer in subject.layers)
    waiting = causes.get(Bound.FLASH, 0) + causes.get(Bound.DRAM, 0)
    if report is None or waiting < LEAST_WAITING * report.cycles:
        return
    for mode in other_modes(report):
        if subject.modes is None or mode in subject.modes:
            words = f"--memory-mode {mode}"
            yield _Trial(words, lambda mode=mode, words=words: _with_mode(subject, mode, words))


def _with_mode(subject: Subject, mode: str, words: str) -> Iterator[Advice]:
    try:
        changed = subject.compile_again(memory_mode=mode)
    except MizzenError:
        return  # a mode that the network cannot have is no advice
    before, after = _measured(subject.artifact), _measured(changed)
    yield Advice(words, None, "", before, after)


def _measured(artifact: Artifact) -> Measured:
    report, memory = artifact.report, memory_report(artifact)
    assert report is not None, "a compilation always reports"
    flash = sum(
        area.used_bytes for area in report.areas if area.name == "constants" and not area.is_sram
    )
    return Measured(report.cycles, sram_of(report, memory), flash)


def _channel_trials(subject: Subject) -> Iterator[_Trial]:
    """Yield a trial for dear layers whose channels do not fill the array."""
    if subject.model is None or subject.target is None:
        return
    model = subject.model
    idle = [layer for layer in subject.layers if _is_idle(layer)]
    for operator in candidates(model, idle)[:MOST_LAYERS]:
        for form in forms_of(model, operator):
            if counts := _fewer(channels_of(model, operator, form)):
                what = f"layer {operator.index} with fewer {form.axis.value}"
                yield _Trial(
                    what,
                    lambda operator=operator, form=form, counts=counts: _with_channels(
                        subject, model, operator, form, counts
                    ),
                )


def _is_idle(layer: Layer) -> bool:
    idle = layer.causes.get(Bound.ROUNDING, 0)
    return bool(layer.cycles) and idle >= LEAST_IDLE * layer.cycles


def _fewer(channels: int) -> list[int]:
    """Return fewer channels that fill an array, where these do not."""
    return sorted({channels // step * step for step in STEPS if channels % step} - {0})


def _with_channels(
    subject: Subject, model: Model, operator: Operator, form: Form, counts: Sequence[int]
) -> Iterator[Advice]:
    """Yield the trial that saves most, of those that save more than their channels are."""
    assert subject.target is not None, "a trial of channels has a target"
    now = channels_of(model, operator, form)
    target = alone(subject.target)
    tried = {
        each.channels: each for each in neighbours(model, operator, form, target, (*counts, now))
    }
    own = tried.pop(now, None)
    better = [
        each
        for each in tried.values()
        if own is not None and each.cycles * own.channels < own.cycles * each.channels
    ]
    if own is not None and better:
        best = min(better, key=lambda each: each.cycles)
        what = f"{best.channels} {form.axis.value} instead of {now}"
        yield Advice(what, operator.index, operator.kind, _of(own), _of(best))


def _of(neighbour: Neighbour) -> Measured:
    return Measured(neighbour.cycles, neighbour.sram_bytes, neighbour.flash_bytes)


def network_of(source: Source) -> Model | None:
    """Return the network of a TFLite file, whose layers can be compiled alone; None of others."""
    is_tflite = front_end_of(source) is TFLITE
    return read_network(source.data, source.name) if is_tflite else None
