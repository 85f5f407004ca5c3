"""Regions of a program under another setting of PyTorch's, as parts of the program itself.

`torch.export` makes a module of what runs under `torch.autocast` or `torch.no_grad`. What the
setting does is in its operators already: types are written out, and an artifact has no gradients.
"""

from __future__ import annotations

import operator
from typing import Any, cast

from torch.fx import GraphModule, Node

REGIONS = {"wrap_with_autocast": 4, "wrap_with_set_grad_enabled": 1}
"""Operators that call a region, and where their arguments have its module; operands follow."""


def inline_regions(module: GraphModule) -> None:
    """Put the nodes of every region in the place of the call, those within regions too."""
    inlined = False
    for node in cast("list[Node]", list(module.graph.nodes)):
        place = REGIONS.get(str(node.target)) if node.op == "call_function" else None
        if place is not None:
            _inline(module, node, place)
            inlined = True
    if inlined:
        module.graph.eliminate_dead_code()
        module.delete_all_unused_submodules()
        module.recompile()


def _inline(module: GraphModule, call: Node, place: int) -> None:
    reader, *operands = call.args[place:]
    assert isinstance(reader, Node)
    region: Any = module.get_submodule(str(reader.target))
    inline_regions(region)
    inputs = [node for node in region.graph.nodes if node.op == "placeholder"]
    made: dict[Node, Any] = dict(zip(inputs, operands, strict=True))
    with module.graph.inserting_before(call):
        results: Any = module.graph.graph_copy(region.graph, made)
    if isinstance(results, Node):
        call.replace_all_uses_with(results)
    else:
        for item in list(call.users):
            assert item.target is operator.getitem
            item.replace_all_uses_with(results[cast(int, item.args[1])])
            module.graph.erase_node(item)
    module.graph.erase_node(call)
