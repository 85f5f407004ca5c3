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
    for found in maps.values():
        before = seen.get(found.key)
        if before is None or found.tally.share < before[0].share:
            seen[found.key] = found.tally, found.certain
    seen.update({key: (tally, True) for key, tally in tensors.items()})
    seen.update({key: (tally, True) for key, tally in bounded.items()})
    rows = [_seen(row, seen, bounds, bounded, rounded) for row in layers.rows]
    rows = [row or _unseen(layers, layer) for row, layer in zip(rows, layers.rows, strict=True)]
    found = _settled(layers, rows, seen, inside=inside)
    return tuple(_as_whole(layers, rows, row) if whole else row for row in found)


def _as_whole(
    layers: Layers, rows: Sequence[LayerComparison], row: LayerComparison
) -> LayerComparison:
    """Return what was found of a layer that is judged with those behind it, if nothing else was."""
    if row.outcome is not Outcome.UNSEEN or row.device is not Device.NPU:
        return row
    found = {other.index: other for other in rows}
    behind = sorted(_seen_behind(layers, layers.by_index[row.index], found))
    return replace(row, outcome=Outcome.WHOLE, into=behind[0]) if behind else row


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
    if any(row.differing for row in tallies):
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
        elements=sum(row.elements for row in tallies),
        differing=sum(row.differing for row in tallies),
        steps=max(row.steps for row in tallies),
        first=next((row.first for row in tallies if row.first is not None), None),
        bound_steps=max((bounds[key].steps for key in keys if key in bounds), default=0),
    )


def _unseen(layers: Layers, layer: Layer) -> LayerComparison:
    return LayerComparison(layer.index, layer.kind, layer.name, layer.device, Outcome.UNSEEN)


def _settled(
    layers: Layers,
    rows: Sequence[LayerComparison],
    seen: Mapping[Key, tuple[Tally, bool]],
    *,
    inside: bool,
) -> Iterator[LayerComparison]:
    """Say which differences are inherited, which maps are no tensors, what fused layers are in.

    inside  whether anything inside of NPU operators was seen
    """
    found = {row.index: row for row in rows}
    differs = {row.index for row in rows if row.outcome is Outcome.DIFFERS}
    for row in rows:
        layer = layers.by_index[row.index]
        if row.index in differs and _is_doubtful(layer, seen):
            behind = set(_seen_behind(layers, layer, found))
            if not behind & differs:
                found[row.index] = _unseen(layers, layer)
                differs.discard(row.index)
    unread = set(_unread(layers, rows, found))
    differs -= unread
    for row in found.values():
        layer = layers.by_index[row.index]
        if row.index in unread:
            yield replace(row, outcome=Outcome.UNREAD)
        elif row.index in differs and set(_seen_before(layers, layer, found)) & differs:
            yield replace(row, outcome=Outcome.INHERITED)
        elif row.outcome is Outcome.UNSEEN and not layer.gives and inside:
            # Assigning a variable gives no tensor: its state is what it takes, seen there.
            into = max(_seen_before(layers, layer, found), default=None)
            yield replace(row, outcome=Outcome.FUSED, into=into)
        elif row.outcome is Outcome.UNSEEN:
            into = next(iter(sorted(_seen_behind(layers, layer, found))), None)
            shown = inside or row.device is Device.CPU
            outcome = Outcome.FUSED if shown and into is not None else Outcome.UNSEEN
            into = into if shown else None
            yield replace(row, outcome=outcome, into=into)
        else:
            yield row


def _unread(
    layers: Layers, rows: Sequence[LayerComparison], found: Mapping[int, LayerComparison]
) -> Iterator[int]:
    """Return the layers on the CPU that differ in nothing that later ones read.

    Both sides compute them on the same kernels: what differs of equal inputs was never written.
    """
    unread = set[int]()
    for row in reversed(rows):
        layer = layers.by_index[row.index]
        if found[row.index].outcome is not Outcome.DIFFERS or row.device is not Device.CPU:
            continue
        behind = set(_seen_behind(layers, layer, found))
        wrong = {index for index in behind if found[index].outcome is not Outcome.EQUAL}
        if behind and wrong <= unread:
            unread.add(row.index)
            yield row.index


def _is_doubtful(layer: Layer, seen: Mapping[Key, tuple[Tally, bool]]) -> bool:
    return not any(seen[key][1] for key in layer.gives if key in seen)


def _seen_behind(
    layers: Layers, layer: Layer, found: Mapping[int, LayerComparison]
) -> Iterator[int]:
    """Return the nearest layers computed from one of which something was seen."""
    waiting, done = layers.users(layer), set[int]()
    while waiting:
        row = waiting.pop()
        if row.index in done:
            continue
        done.add(row.index)
        if found[row.index].outcome is Outcome.UNSEEN:
            waiting += layers.users(row)
        else:
            yield row.index


def _seen_before(
    layers: Layers, layer: Layer, found: Mapping[int, LayerComparison]
) -> Iterator[int]:
    """Return the nearest layers that one is computed from of which something was seen."""
    waiting, done = list(layer.takes), set[Key]()
    while waiting:
        key = waiting.pop()
        row = layers.maker.get(key)
        if key in done or row is None:
            continue
        done.add(key)
        if found[row.index].outcome is Outcome.UNSEEN:
            waiting += row.takes
        else:
            yield row.index


def outputs_of(
    names: Sequence[str],
    keys: Sequence[Key],
    tallies: Sequence[Tally],
    bounded: Mapping[Key, Tally],
    rounded: Container[Key] = (),
) -> tuple[OutputComparison, ...]:
    """Return what was found of the network's outputs."""
    rows: list[OutputComparison] = []
    for name, key, tally in zip(names, keys, tallies, strict=True):
        found = bounded.get(key, tally)
        outcome = Outcome.DIFFERS if found.differing else Outcome.EQUAL
        outcome = Outcome.BOUNDED if key in bounded else outcome
        outcome = Outcome.ROUNDED if key in rounded else outcome
        rows.append(OutputComparison(name, outcome, found.elements, found.differing, found.steps))
    return tuple(rows)
