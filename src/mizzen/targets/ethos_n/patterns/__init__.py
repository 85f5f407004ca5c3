"""What of a tensor graph an Ethos-N78 takes: patterns, checks, conversions, networks of regions.

The steps from a graph to networks of the Support Library::

    prepare(graph)
    covering = Covering(graph, configuration)
    found = partition(graph, legality(covering))
    found = partition(graph, legality(covering), refused=unworthy(found, covering))
    for region in found.regions:
        if region.place is Place.NPU:
            generated = generate(extract(graph, region.groups).graph, configuration)

Where `generate` raises RegionRefusedError, its groups go to the CPU too, and the graph is placed
again.
"""

from mizzen.targets.ethos_n.patterns.covering import (
    COMPUTE_INTENSIVE,
    INLINED,
    TABLE,
    Composite,
    Covering,
    legality,
    unprofitable,
)
from mizzen.targets.ethos_n.patterns.generation import Generated, RegionRefusedError, generate
from mizzen.targets.ethos_n.patterns.graph_values import accumulated
from mizzen.targets.ethos_n.patterns.preparation import prepare

__all__ = [
    "COMPUTE_INTENSIVE",
    "INLINED",
    "TABLE",
    "Composite",
    "Covering",
    "Generated",
    "RegionRefusedError",
    "accumulated",
    "generate",
    "legality",
    "prepare",
    "unprofitable",
]
