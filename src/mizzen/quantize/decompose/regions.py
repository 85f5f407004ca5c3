"""Regions of a program under another setting of PyTorch's, as parts of the program itself.

`torch.export` makes a module of what runs under `torch.autocast` or `torch.no_grad`. What the
setting does is in its operators already: types are written out, and an artifact has no gradients.

The branches of `torch.cond` are modules too. Both are computed, and the condition chooses: an NPU
has no branches, and calibration sees both.
"""

from __future__ import annotations

import operator
from typing import Any, cast

import torch
from torch.fx import GraphModule, Node

REGIONS = {"wrap_with_autocast": 4, "wrap_with_set_grad_enabled": 1}
"""Operators that call a region, and where their arguments have its module; operands follow."""


def inline_regions(module: GraphModule) -> None:
    """Put the nodes of every region in the place of the call, those within regions too."""
    inlined = False
    for node in cast("list[Node]", list(module.graph.nodes)):
        name = str(node.target) if node.op == "call_function" else ""
        if name in REGIONS:
            reader, *operands = node.args[REGIONS[name] :]
            _replace(module, node, _inlined(module, node, reader, operands))
        elif name == "cond":
            _replace(module, node, _chosen(module, node))
        inlined = inlined or name in REGIONS or name == "cond"
    if inlined:
        module.graph.eliminate_dead_code()
        module.delete_all_unused_submodules()
        module.recompile()


def _inlined(module: GraphModule, call: Node, reader: Any, operands: Any) -> Any:
    """Insert what a region computes of operands before a call; return its results."""
    region: Any = module.get_submodule(str(reader.target))
    inline_regions(region)
    inputs = [node for node in region.graph.nodes if node.op == "placeholder"]
    made: dict[Node, Any] = dict(zip(inputs, operands, strict=True))
    with module.graph.inserting_before(call):
        return module.graph.graph_copy(region.graph, made)


def _chosen(module: GraphModule, call: Node) -> Any:
    """Insert both branches of a condition, and the choice of each result."""
    condition: Any = call.args[0]
    one, other = (_inlined(module, call, branch, call.args[3]) for branch in call.args[1:3])
    results: list[Any] = []
    for pair in zip(one, other, strict=True):
        with module.graph.inserting_before(call):
            where = module.graph.call_function(torch.ops.aten.where.self, (condition, *pair))
        where.meta |= {key: value for key, value in call.meta.items() if key != "val"}
        where.meta["val"] = pair[0].meta["val"]
        results.append(where)
    return results


def _replace(module: GraphModule, call: Node, results: Any) -> None:
    if isinstance(results, Node):
        call.replace_all_uses_with(results)
    else:
        for item in list(call.users):
            assert item.target is operator.getitem
            item.replace_all_uses_with(results[cast(int, item.args[1])])
            module.graph.erase_node(item)
    module.graph.erase_node(call)
