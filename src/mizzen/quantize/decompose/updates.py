"""Updates in place that cannot be followed, and programs in which they were made explicit."""

from __future__ import annotations

from typing import cast

import torch
from torch.fx import GraphModule, Node

from mizzen.diagnostics import fail
from mizzen.frontends.torch.operators.effects import shared_writes
from mizzen.quantize.decompose.rewriting import aten, written_attributes
from mizzen.quantize.nodes import channel_axis, operator_name, origin_of


def normalize_functional(module: GraphModule) -> None:
    """Give batch norms their one operator, which functional programs have three results of.

    So they join the convolutions before them as in any other program.
    """
    for node in cast("list[Node]", list(module.graph.nodes)):
        if str(node.target) != "aten._native_batch_norm_legit_no_training.default":
            continue
        items = [user for user in node.users if user.args[1] == 0]
        if len(items) != len(node.users):
            continue
        for item in items:
            with module.graph.inserting_before(item):
                arguments = (*node.args[:5], False, *node.args[5:7], False)
                norm = module.graph.call_function(aten.batch_norm.default, arguments)
            norm.meta = {**item.meta}
            item.replace_all_uses_with(norm)
            module.graph.erase_node(item)
        module.graph.erase_node(node)
    module.recompile()


def hold_weights(module: GraphModule) -> None:
    """Make parameters of the weights that are buffers: torchao replaces parameters alone."""
    for node in cast("list[Node]", list(module.graph.nodes)):
        if channel_axis(node) is None:
            continue
        for operand in node.args[1:3]:
            if isinstance(operand, Node) and operand.op == "get_attr":
                _make_parameter(module, str(operand.target))


def _make_parameter(module: GraphModule, path: str) -> None:
    owner, name = module.get_submodule(path.rpartition(".")[0]), path.rpartition(".")[2]
    value = dict(owner.named_buffers(recurse=False)).get(name)
    if value is None or not value.is_floating_point() or path in written_attributes(module):
        return
    delattr(owner, name)
    owner.register_parameter(name, torch.nn.Parameter(value, requires_grad=False))


def refuse_shared_writes(module: GraphModule) -> None:
    """Raise E879 where an update in place reaches another tensor by way of shared memory."""
    for node in shared_writes(module.graph):
        raise fail(
            "E879",
            "an update in place must not be seen through another tensor, and "
            f"{operator_name(node)}_ writes to memory that is read under another name",
            origin=origin_of(node),
            help="export with `exported = exported.run_decompositions({})` before .module(), as "
            "mizzen.torch.compile() does, or write `y = y + 1` in place of `y += 1`",
        )
