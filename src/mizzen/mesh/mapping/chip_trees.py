"""Which flows of a template go from chip to chip, and over which links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.mesh.mapping.chip_net import Demand, Step, TreeRouter
from mizzen.mesh.mapping.splits import Floats
from mizzen.mesh.mapping.template import Template

Key = tuple[int, tuple[int, ...]]
"""The part of the template that sends, and those that receive."""

SHARE_BYTES = 1024
"""Flows of the same parts go over the same links in shares of at least so many bytes."""
MOST_SHARES = 24


@dataclass(frozen=True, slots=True)
class Share:
    """Flows, by index, that go from a part to others over the same links."""

    key: Key
    flows: tuple[int, ...]
    size_bytes: int


def shares_of(template: Template, parts: list[int]) -> list[Share]:
    """Return the flows that leave their part, in shares that may take different ways."""
    keyed: dict[Key, list[int]] = {}
    for index, flow in enumerate(template.flows):
        own = parts[template.tiles[flow.source].element]
        others = {parts[template.tiles[target].element] for target in flow.targets} - {own}
        if others:
            keyed.setdefault((own, tuple(sorted(others))), []).append(index)
    shares: list[Share] = []
    for key, flows in sorted(keyed.items()):
        shares += _divided(template, key, flows)
    return shares


def _divided(template: Template, key: Key, flows: list[int]) -> list[Share]:
    """Divide flows into shares of about the same bytes, the largest flows first."""
    sizes = [template.flows[flow].size_bytes for flow in flows]
    count = max(1, min(len(flows), MOST_SHARES, sum(sizes) // SHARE_BYTES))
    filled = [0] * count
    members: list[list[int]] = [[] for _ in range(count)]
    for at in sorted(range(len(flows)), key=lambda at: (-sizes[at], at)):
        least = min(range(count), key=filled.__getitem__)
        filled[least] += sizes[at]
        members[least].append(flows[at])
    return [Share(key, tuple(m), size) for m, size in zip(members, filled, strict=True)]


def bytes_between(shares: list[Share], parts: int) -> Floats:
    """Return ``[parts, parts]``: bytes of an image; what several get is shared by them."""
    between = np.zeros((parts, parts))
    for share in shares:
        source, targets = share.key
        for target in targets:
            between[source, target] += share.size_bytes / len(targets) ** 0.5
    return between


def demands_of(shares: list[Share], chips: list[int]) -> list[Demand]:
    """Return the demands of parts on chips on the links."""
    return [
        Demand(chips[share.key[0]], tuple(chips[part] for part in share.key[1]), share.size_bytes)
        for share in shares
    ]


def routed(router: TreeRouter, demands: list[Demand], rounds: int) -> list[tuple[Step, ...]]:
    """Return a tree for each demand."""
    return router.route(demands, rounds)
