"""Machines of which a part does not work."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from mizzen.mesh.machine.machine import Machine


def without(machine: Machine, elements: Iterable[int] = (), links: Iterable[int] = ()) -> Machine:
    """Return a machine with some more elements and links dead."""
    dead_elements, dead_links = machine.element_dead.copy(), machine.link_dead.copy()
    dead_elements[list(elements)] = True
    dead_links[list(links)] = True
    state = machine.digest.encode() + dead_elements.tobytes() + dead_links.tobytes()
    digest = hashlib.sha256(state).hexdigest()
    return replace(machine, element_dead=dead_elements, link_dead=dead_links, digest=digest)


def without_chip(machine: Machine, chip: int) -> Machine:
    """Return a machine with a chip's elements and all its links dead."""
    elements = np.flatnonzero(machine.element_chip == chip)
    ends = machine.router_chip[machine.link_source], machine.router_chip[machine.link_target]
    links = np.flatnonzero((ends[0] == chip) | (ends[1] == chip))
    return without(machine, elements.tolist(), links.tolist())


def damaged(machine: Machine, share: float, seed: int) -> Machine:
    """Return a machine with a share of its elements and links dead, chosen by a seed.

    A link is dead in both directions. `share` is at least 0 and below 1; rounded to whole ones.
    """
    random = np.random.default_rng(seed)
    alive = np.flatnonzero(~machine.element_dead)
    elements = random.choice(alive, round(share * len(alive)), replace=False)
    forward = np.flatnonzero((machine.link_source < machine.link_target) & ~machine.link_dead)
    chosen = random.choice(forward, round(share * len(forward)), replace=False)
    back = [
        machine.links_of[int(machine.link_target[link]), int(machine.link_source[link])]
        for link in chosen
    ]
    return without(machine, elements.tolist(), [*chosen.tolist(), *back])
