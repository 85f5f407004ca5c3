"""What is seen inside of a stream, whatever the network around it."""

from __future__ import annotations

import sys

from mizzen.compiler.ethos_u.inside import Inside

from .test_witness import Made, logistic


def test_a_network_may_be_as_deep_as_it_likes() -> None:
    """What an operand follows from is known without going through all that is before it."""
    made = Made(logistic())
    graph, operations = made.code.part.graph, list(made.code.operations)
    result, deep = graph.outputs[0], graph.inputs[0]
    assert result.producer in operations
    for _ in range(2 * sys.getrecursionlimit()):
        operations.append(graph.add("IDENTITY", [deep], [deep.type]))
        deep = operations[-1].results[0]
    operations.append(graph.add("MAXIMUM", [result, deep], [result.type]))
    Inside(made.witness, made.step.simulator.plan, operations, made.proof._reference)
