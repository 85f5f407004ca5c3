"""Dividing the work graph into passes, with repairs until it can be.

Ref: Ethos-N driver stack 23.02, how the Support Library prepares its graph.
"""

from __future__ import annotations

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.config import Capabilities, CompilationOptions
from mizzen.targets.ethos_n.lower.graph import Graph, Node
from mizzen.targets.ethos_n.lower.rewrite import rewrite
from mizzen.targets.ethos_n.schedule.attempt import Attempt
from mizzen.targets.ethos_n.schedule.convert_pass import form_convert_pass
from mizzen.targets.ethos_n.schedule.mce_pass import form_mce_pass
from mizzen.targets.ethos_n.schedule.ple_pass import form_ple_pass
from mizzen.targets.ethos_n.schedule.repairs import Severity, is_prepared, repair
from mizzen.targets.ethos_n.schedule.sram import Sram

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
