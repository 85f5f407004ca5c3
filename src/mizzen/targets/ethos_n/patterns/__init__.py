"""What of a tensor graph an Ethos-N78 takes: patterns, checks, conversions, networks of regions.

The table of patterns says which operations of a graph become one of the Support Library's, or a
few; a row is taken only where the library, asked about it, supports what comes of it. So a
refusal always has a rule or the nearest pattern as its reason, and `mizzen check` needs no compiler
to say it. The steps from a graph to networks::

    prepare(graph)  # where channels are not last yet
    covering = Covering(graph, configuration)
    found = partition(graph, legality(covering))
    found = partition(graph, legality(covering), refused=unprofitable(found, covering))
    for region in found.regions:
        if region.device is Device.NPU:
            generated = generate_part(covering, extract(graph, region.groups))

Where that raises RegionRefusedError, its groups go to the CPU too, and the graph is placed again.
`generate` does the same for the graph of a region that was not covered as part of a whole.

It judges what compilers emit and simulators run, so it must know neither: it ends at a network.
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
from mizzen.targets.ethos_n.patterns.generation import (
    Generated,
    RegionRefusedError,
    generate,
    generate_part,
)
from mizzen.targets.ethos_n.patterns.graph_preparation import prepare
from mizzen.targets.ethos_n.patterns.graph_values import accumulated

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
    "generate_part",
    "legality",
    "prepare",
    "unprofitable",
]
