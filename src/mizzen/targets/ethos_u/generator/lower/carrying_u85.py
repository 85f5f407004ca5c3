"""What carries a finish on U85: what every Ethos-U has, and conversions of truths."""

from __future__ import annotations

from mizzen.graph import DType
from mizzen.ops.type_conversion import Cast
from mizzen.targets.ethos_u.generator.lower.carrying import carried
from mizzen.targets.ethos_u.generator.lower.context import Node
from mizzen.targets.ethos_u.generator.lower.planning import Site
from mizzen.targets.ethos_u.generator.lower.truths_u85 import converted


def carried_on_u85(site: Site) -> Node:
    """Return the node that reads the root from memory and does the steps."""
    first = site.steps[0]
    if isinstance(first, Cast) and DType.BOOL in (first.input.dtype, first.result.dtype):
        return converted(site)
    return carried(site)
