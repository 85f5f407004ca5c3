"""Why a network does not fit: by how many bytes, where, and what would make it fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mizzen.diagnostics import MizzenError, fail
from mizzen.mesh.machine.machine import Machine
from mizzen.mesh.mapping.stages import Problem
from mizzen.mesh.network.network import Network


def does_not_fit(
    network: Network, machine: Machine, problem: Problem, elements: Sequence[int] | None = None
) -> MizzenError:
    """Return E510: the layer whose smallest tile is too large, or all layers together.

    `elements` are those that there are, all that are usable by default.
    """
    which = machine.usable.tolist() if elements is None else list(elements)
    too_large = _layer_too_large(network, machine, problem)
    return too_large or _all_too_large(network, machine, problem, which)


def _layer_too_large(network: Network, machine: Machine, problem: Problem) -> MizzenError | None:
    largest = max(kind.data_bytes for kind in machine.kinds)
    for layer, choices in zip(network.layers, problem.choices, strict=True):
        least = int(np.minimum(choices.held, choices.alone).min())
        if least > largest:
            at = int(np.argmin(np.minimum(choices.held, choices.alone)))
            return fail(
                "E510",
                f"the smallest tile of layer {layer.name} must fit the {largest:,} bytes of data"
                f" memory of an element of {machine.name}, but has {least:,},"
                f" {least - largest:,} too many, when it is split into {choices.tiles[at]}",
                origin=layer.origin,
                help=f"take elements with {least:,} bytes, or a network with a smaller layer",
            )
    return None


def _all_too_large(
    network: Network, machine: Machine, problem: Problem, which: Sequence[int]
) -> MizzenError:
    needed = [
        int((choices.tiles * np.minimum(choices.held, choices.alone)).min())
        for choices in problem.choices
    ]
    held = [machine.kind_of(int(element)).data_bytes for element in which]
    most = int(np.argmax(needed))
    elements = -(-sum(needed) * len(held) // max(1, sum(held)))
    short = sum(needed) - sum(held)
    by = f", {short:,} too many" if short > 0 else " in tiles that do not fill them up"
    return fail(
        "E510",
        f"{network.name} must fit the {sum(held):,} bytes of data memory of the {len(held)}"
        f" elements of {machine.name}, but needs at least {sum(needed):,}{by}; layer"
        f" {network.layers[most].name} has the most, {needed[most]:,}",
        help=f"take more than {max(elements, len(held))} such elements, or a smaller network",
    )
