"""Dividing the work graph into passes, with repairs until it can be.

What is changed of a graph that could not be divided is of two severities; grave changes, most of
which add a stage, are made only where no light one is possible.

Ref: Ethos-N driver stack 23.02, how the Support Library prepares its graph.
"""

from __future__ import annotations

from enum import Enum

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.config import Capabilities, CompilationOptions
from mizzen.targets.ethos_n.lower.lowering import identity_after
from mizzen.targets.ethos_n.lower.rewrites import rewrite
from mizzen.targets.ethos_n.lower.work_graph import (
    Clamp,
    Concat,
    Copy,
    Extract,
    FusedPle,
    Graph,
    Layout,
    LonePle,
    Mce,
    Node,
    Relabel,
    Relayout,
    Requantise,
    Sink,
    nearest,
)
from mizzen.targets.ethos_n.schedule.attempt import Attempt, Sram
from mizzen.targets.ethos_n.schedule.mce_pass import form_mce_pass
from mizzen.targets.ethos_n.schedule.ple_and_convert_passes import form_convert_pass, form_ple_pass


class Severity(Enum):
    """How much a change costs."""

    LIGHT = 0
    GRAVE = 1


def is_prepared(node: Node, attempt: Attempt) -> bool:
    """Say whether an attempt has done what a node needs."""
    match node.work:
        case Relabel():
            return not attempt.compressed(node.source)
        case Concat():
            return all(
                attempt.in_dram(source) and not attempt.compressed(source) for source in node.inputs
            )
        case Sink():
            source = node.source
            usable = attempt.in_dram(source) and not attempt.compressed(source)
            return usable and len(source.users) == 1 and _passes_before(node, attempt)
        case _:
            return attempt.needs_no_pass(node) or attempt.of(node).made_by is not None


def _passes_before(node: Node, attempt: Attempt) -> bool:
    return nearest(node, lambda found: attempt.of(found).made_by is not None) is not None


def repair(graph: Graph, node: Node, attempt: Attempt, severity: Severity) -> bool:
    """Change what kept a node from being prepared; say whether that may help."""
    if isinstance(node.work, Extract):
        _give_stage_behind(graph, node, attempt)
        return False
    changed = _grant(graph, node)
    left_out = attempt.of(node).made_by is None
    match node.work:
        case Mce():
            if left_out and node.wishes.direct and not node.demands.direct:
                node.demands.direct, node.wishes.direct = True, False
                changed = True
        case Clamp():
            changed |= left_out and _give_stage_before(graph, node)
        case FusedPle():
            if left_out and node.wishes.identity_before:
                graph.insert_before(node, 0, identity_after(node.source))
                node.wishes.identity_before = False
                changed = True
            else:
                changed |= left_out and _give_stage_before(graph, node)
        case Requantise():
            grave = severity is Severity.GRAVE
            # Of several in a row the first gets a stage, which the others ride on too.
            rides = isinstance(node.source.work, Requantise) and len(node.source.users) == 1
            changed |= grave and left_out and not rides and _give_stage_before(graph, node)
        case _:
            changed |= _repair_movement(graph, node, attempt, severity)
    return changed


def _repair_movement(graph: Graph, node: Node, attempt: Attempt, severity: Severity) -> bool:
    """Do as `repair` for nodes that have no part in computing."""
    left_out = attempt.of(node).made_by is None
    match node.work:
        case LonePle() if left_out and len(node.inputs) > 1:
            changes = [_demand_dram(source) for source in node.inputs]
            return any(changes)
        case Relayout() if left_out:
            changed = _demand_dram(node.source)
            if attempt.compressed(node.source):
                changed |= _demand_uncompressed(node.source)
            return changed
        case Relabel():
            return _demand_uncompressed(node.source)
        case Concat():
            changes = [
                _demand_dram(source) | _demand_uncompressed(source) for source in node.inputs
            ]
            return any(changes)
        case Copy() if left_out and attempt.in_sram(node.source):
            return _demand_dram(node.source)
        case Sink():
            changed = _demand_dram(node.source) | _demand_uncompressed(node.source)
            if severity is Severity.GRAVE:
                changed |= _give_own_buffer(graph, node, attempt)
            return changed
        case _:
            return False


def _demand_dram(node: Node) -> bool:
    changed, node.demands.dram = not node.demands.dram, True
    return changed


def _demand_uncompressed(node: Node) -> bool:
    changed, node.demands.uncompressed = not node.demands.uncompressed, True
    return changed


def _give_stage_before(graph: Graph, node: Node) -> bool:
    """Put a stage of the compute engines before what must ride on one and has none of its own."""
    source = node.source
    if isinstance(source.work, Mce) and len(source.users) == 1:
        return False
    graph.insert_before(node, 0, identity_after(source))
    return True


def _give_stage_behind(graph: Graph, node: Node, attempt: Attempt) -> None:
    """Put a stage behind an extraction, which a pass of the compute engines must begin with."""
    followed = len(node.users) == 1 and isinstance(node.users[0].work, Mce)
    if attempt.of(node).made_by is not None or followed:
        return
    stage = graph.insert_after(node, identity_after(node))
    if stage.layout is not node.layout:
        graph.insert_after(stage, _relayout(stage, node.layout))


def _relayout(node: Node, layout: Layout) -> Node:
    ids = set(node.operation_ids)
    return Node(Relayout(), node.shape, node.data_type, node.quantization, layout, ids)


def _give_own_buffer(graph: Graph, node: Node, attempt: Attempt) -> bool:
    """Copy what an inference gives if it is also an intermediate map, or what the inference takes.

    A buffer is only one of these.
    """
    source = node.source
    if len(source.users) == 1 and _passes_before(node, attempt):
        return False
    ids = set(source.operation_ids)
    copy = Node(Copy(), source.shape, source.data_type, source.quantization, source.layout, ids)
    graph.insert_before(node, 0, copy)
    return True


def _grant(graph: Graph, node: Node) -> bool:
    """Grant the wishes that passes left at a node; say whether one was new."""
    changed = False
    demands, wishes = node.demands, node.wishes
    if wishes.dram and not demands.dram:
        demands.dram, wishes.dram = True, False
        changed = True
    if wishes.uncompressed and not demands.uncompressed:
        demands.uncompressed, wishes.uncompressed = True, False
        changed = True
    if wishes.output_layout is not None and len(node.users) == 1:
        changed |= _change_layout(graph, node, wishes.output_layout)
    return changed


def _change_layout(graph: Graph, node: Node, layout: Layout) -> bool:
    """Change the layout of a node's map to the wished one and back, for passes to divide between.

    The second change keeps the layout that the user was made for.
    """
    user = node.users[0]
    if isinstance(user.work, Relayout) and user.layout is layout:
        return False
    first = graph.insert_before(user, user.inputs.index(node), _relayout(node, layout))
    first.demands.stays = True
    graph.insert_before(user, user.inputs.index(first), _relayout(node, node.layout))
    node.wishes.output_layout = None
    return True


ATTEMPTS_PER_NODE = 10
"""A graph that is not prepared after so many attempts for each of its nodes will never be."""


def schedule(graph: Graph, capabilities: Capabilities, options: CompilationOptions) -> Attempt:
    """Divide a graph into passes; the graph is rewritten and repaired on the way.

    E972 if it cannot be divided; the message names the operations that are left.
    """
    attempts_left = ATTEMPTS_PER_NODE * len(graph.nodes)
    while True:
        rewrite(graph)
        attempt = _attempt(graph, capabilities, options)
        if all(is_prepared(node, attempt) for node in graph.nodes):
            return attempt
        attempts_left -= 1
        if not _repair(graph, attempt) or attempts_left < 0:
            raise _unprepared(graph, attempt)


def _attempt(graph: Graph, capabilities: Capabilities, options: CompilationOptions) -> Attempt:
    """Form passes, each as long as can be, in the order of the nodes."""
    bank_bytes = capabilities.sram_bytes // capabilities.srams
    attempt = Attempt(capabilities, Sram[Node](((0, bank_bytes),)))
    for node in graph.sorted():
        if attempt.of(node).made_by is None and not attempt.needs_no_pass(node):
            _ = (
                form_mce_pass(node, attempt, options)
                or form_ple_pass(node, attempt)
                or form_convert_pass(node, attempt)
            )
        attempt.settle(node)
    return attempt


def _repair(graph: Graph, attempt: Attempt) -> bool:
    nodes = graph.sorted()
    for severity in Severity:
        changes = [repair(graph, node, attempt, severity) for node in nodes]
        if any(changes):
            return True
    return False


def _unprepared(graph: Graph, attempt: Attempt) -> Exception:
    left = [node for node in graph.sorted() if not is_prepared(node, attempt)]
    ids = sorted({number for node in left for number in node.operation_ids})
    return fail(
        "E972",
        f"every operation must fit into {attempt.capabilities.sram_bytes} bytes of SRAM with a "
        f"strategy that is allowed; there is none for operations {', '.join(map(str, ids))}",
        help="take a variant with more SRAM, allow all strategies and block configurations, or "
        "leave the operations to the CPU",
    )
