"""How much less the busiest link carries than with the same tiles in plain places.

Run ``python benchmarks/mesh_placements.py`` for a table, with ``--json`` for the figures:
microseconds that the busiest link of the 48-chip board needs for an image of every replica of
MobileNetV2 placed by the search (`searched_us`), along a Hilbert curve (`hilbert_us`), or anywhere
(the best of ten, `random_us`).
"""

from __future__ import annotations

import argparse
import json

from mizzen.mesh.machine import find_machine
from mizzen.mesh.mapping import MappingOptions, Placement, map_network
from mizzen.mesh.mapping.plain import link_seconds
from mizzen.mesh.network.shapes import mobilenet_v2

BOARD = "spinnaker2-48"
RANDOM_SEEDS = 10
REPLICAS = 8
MICRO = 1e6


def busiest_us(placement: Placement, seed: int = 0) -> float:
    """Return the time of the busiest link for an image of every replica, in microseconds."""
    options = MappingOptions(replicas=REPLICAS, placement=placement, seed=seed)
    mapping = map_network(mobilenet_v2(), find_machine(BOARD), options)
    return float(link_seconds(mapping).max()) * MICRO


def main() -> None:
    """Measure, and print a table or the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    found = {
        "searched_us": busiest_us(Placement.SEARCHED),
        "hilbert_us": busiest_us(Placement.HILBERT),
        "random_us": min(busiest_us(Placement.RANDOM, seed) for seed in range(RANDOM_SEEDS)),
    }
    if as_json:
        print(json.dumps({"figures": found}))
        return
    for name, value in found.items():
        print(f"{name:12}{value:10.1f}")


if __name__ == "__main__":
    main()
