"""What was seen and what must come, put together: the outcome of each layer."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace

from mizzen.analysis.comparison.layers import Key, Layer, Layers
from mizzen.analysis.comparison.matching import Found, Place
from mizzen.analysis.comparison.tally import Tally
from mizzen.diagnostics import Device
from mizzen.report.comparison import LayerComparison, Outcome, OutputComparison
from mizzen.targets.bounds import Bound

Bounds = Mapping[Key, Bound]


def judged(
    layers: Layers,
    tensors: Mapping[Key, Tally],
    maps: Mapping[Place, Found],
    bounds: Bounds,
    bounded: Mapping[Key, Tally],
    rounded: Container[Key] = (),
    *,
    inside: bool,
    whole: bool = False,
) -> tuple[LayerComparison, ...]:
    """Return the outcome of each layer.

    tensors  those between steps, whose identity is certain
    maps     what was seen inside of NPU operators
    bounded  tensors that differ within their bound, and how; the others are compared with what the
             reference makes of these
    rounded  those of `bounded` that are what the NPU's own roundings give, bit for bit
    inside   whether anything inside of NPU operators was seen
    whole    whether what NPU operators give is judged by what they take, whatever is inside
    """
    seen: dict[Key, tuple[Tally, bool]] = {}
    for match in maps.values():
        before = seen.get(match.key)
        if before is None or match.tally.share < before[0].share:
            seen[match.key] = match.tally, match.certain
    seen.update({key: (tally, True) for key, tally in tensors.items()})
    seen.update({key: (tally, True) for key, tally in bounded.items()})
    comparisons = [_seen(layer, seen, bounds, bounded, rounded) for layer in layers.rows]
    comparisons = [
        comparison or _unseen(layers, layer)
        for comparison, layer in zip(comparisons, layers.rows, strict=True)
    ]
    settled = _settled(layers, comparisons, seen, inside=inside)
    return tuple(
        _as_whole(layers, comparisons, comparison) if whole else comparison
        for comparison in settled
    )


def _as_whole(
    layers: Layers, comparisons: Sequence[LayerComparison], comparison: LayerComparison
) -> LayerComparison:
    """Return the comparison of a layer that is judged with those after it, if nothing else was."""
    if comparison.outcome is not Outcome.UNSEEN or comparison.device is not Device.NPU:
        return comparison
    by_index = {other.index: other for other in comparisons}
    behind = sorted(_seen_behind(layers, layers.by_index[comparison.index], by_index))
    return replace(comparison, outcome=Outcome.WHOLE, into=behind[0]) if behind else comparison


def _seen(
    layer: Layer,
    seen: Mapping[Key, tuple[Tally, bool]],
    bounds: Bounds,
    bounded: Mapping[Key, Tally],
    rounded: Container[Key],
) -> LayerComparison | None:
    keys = [key for key in layer.gives if key in seen]
    if not keys:
        return None
    tallies = [seen[key][0] for key in keys]
    outcome = Outcome.EQUAL
    if any(tally.differing for tally in tallies):
        within = all(key in bounded for key in keys if seen[key][0].differing)
        outcome = Outcome.BOUNDED if within else Outcome.DIFFERS
        if within and any(key in rounded for key in keys):
            outcome = Outcome.ROUNDED
    return LayerComparison(
        layer.index,
        layer.kind,
        layer.name,
        layer.device,
        outcome,
        elements=sum(tally.elements for tally in tallies),
        differing=sum(tally.differing for tally in tallies),
        steps=max(tally.steps for tally in tallies),
        first=next((tally.first for tally in tallies if tally.first is not None), None),
        bound_steps=max((bounds[key].steps for key in keys if key in bounds), default=0),
    )


def _unseen(layers: Layers, layer: Layer) -> LayerComparison:
    return LayerComparison(layer.index, layer.kind, layer.name, layer.device, Outcome.UNSEEN)


def _settled(
    layers: Layers,
    comparisons: Sequence[LayerComparison],
    seen: Mapping[Key, tuple[Tally, bool]],
    *,
    inside: bool,
) -> Iterator[LayerComparison]:
    """Say which differences are inherited, which maps are no tensors, what fused layers are in.

    inside  whether anything inside of NPU operators was seen
    """
    by_index = {each.index: each for each in comparisons}
    differs = {each.index for each in comparisons if each.outcome is Outcome.DIFFERS}
    # The last first: a doubtful one is no reason to believe the doubtful ones before it.
    for comparison in reversed(comparisons):
        layer = layers.by_index[comparison.index]
        if comparison.index in differs and _is_doubtful(layer, seen):
            behind = set(_seen_behind(layers, layer, by_index))
            if not behind & differs:
                by_index[comparison.index] = _unseen(layers, layer)
                differs.discard(comparison.index)
    unread = set(_unread(layers, comparisons, by_index))
    differs -= unread
    for comparison in by_index.values():
        layer = layers.by_index[comparison.index]
        if comparison.index in unread:
            yield replace(comparison, outcome=Outcome.UNREAD)
        elif comparison.index in differs and set(_seen_before(layers, layer, by_index)) & differs:
            yield replace(comparison, outcome=Outcome.INHERITED)
        elif comparison.outcome is Outcome.UNSEEN and not layer.gives and inside:
            # Assigning a variable gives no tensor: its state is what it takes, seen there.
            into = max(_seen_before(layers, layer, by_index), default=None)
            yield replace(comparison, outcome=Outcome.FUSED, into=into)
        elif comparison.outcome is Outcome.UNSEEN:
            into = next(iter(sorted(_seen_behind(layers, layer, by_index))), None)
            shown = inside or comparison.device is Device.CPU
            outcome = Outcome.FUSED if shown and into is not None else Outcome.UNSEEN
            into = into if shown else None
            yield replace(comparison, outcome=outcome, into=into)
        else:
            yield comparison


def _unread(
    layers: Layers, comparisons: Sequence[LayerComparison], by_index: Mapping[int, LayerComparison]
) -> Iterator[int]:
    """Return the layers on the CPU that differ in nothing that later ones read.

    Both sides compute them on the same kernels: what differs of equal inputs was never written.
    """
    unread = set[int]()
    for comparison in reversed(comparisons):
        layer = layers.by_index[comparison.index]
        if (
            by_index[comparison.index].outcome is not Outcome.DIFFERS
            or comparison.device is not Device.CPU
        ):
            continue
        behind = set(_seen_behind(layers, layer, by_index))
        wrong = {index for index in behind if by_index[index].outcome is not Outcome.EQUAL}
        if behind and wrong <= unread:
            unread.add(comparison.index)
            yield comparison.index


def _is_doubtful(layer: Layer, seen: Mapping[Key, tuple[Tally, bool]]) -> bool:
    return not any(seen[key][1] for key in layer.gives if key in seen)


def _seen_behind(
    layers: Layers, layer: Layer, by_index: Mapping[int, LayerComparison]
) -> Iterator[int]:
    """Return the nearest layers computed from one of which something was seen."""
    waiting, done = layers.users(layer), set[int]()
    while waiting:
        user = waiting.pop()
        if user.index in done:
            continue
        done.add(user.index)
        if by_index[user.index].outcome is Outcome.UNSEEN:
            waiting += layers.users(user)
        else:
            yield user.index


def _seen_before(
    layers: Layers, layer: Layer, by_index: Mapping[int, LayerComparison]
) -> Iterator[int]:
    """Return the nearest layers that one is computed from of which something was seen."""
    waiting, done = list(layer.takes), set[Key]()
    while waiting:
        key = waiting.pop()
        maker = layers.maker.get(key)
        if key in done or maker is None:
            continue
        done.add(key)
        if by_index[maker.index].outcome is Outcome.UNSEEN:
            waiting += maker.takes
        else:
            yield maker.index


def outputs_of(
    names: Sequence[str],
    keys: Sequence[Key],
    tallies: Sequence[Tally],
    bounded: Mapping[Key, Tally],
    rounded: Container[Key] = (),
) -> tuple[OutputComparison, ...]:
    """Return the comparisons of the network's outputs."""
    outputs: list[OutputComparison] = []
    for name, key, tally in zip(names, keys, tallies, strict=True):
        counted = bounded.get(key, tally)
        outcome = Outcome.DIFFERS if counted.differing else Outcome.EQUAL
        outcome = Outcome.BOUNDED if key in bounded else outcome
        outcome = Outcome.ROUNDED if key in rounded else outcome
        outputs.append(
            OutputComparison(name, outcome, counted.elements, counted.differing, counted.steps)
        )
    return tuple(outputs)
