"""Random networks of operators that only move or bound numbers: the NPU gives the graph's numbers.

They have whatever topology comes: branches, parts, joins, several outputs, changes of shape.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.graph import Value
from mizzen.reference import evaluate
from mizzen.targets.ethos_n.patterns import Generated, generate
from mizzen.targets.ethos_n.reference import evaluate as evaluate_network

from .graphs import FOUR_TOPS, Array, Net
from .test_compiled import run

Step = Callable[[Net, Value, st.DataObject], list[Value]]


def bounded(net: Net, x: Value, data: st.DataObject) -> list[Value]:
    """Keep a range that has 0: one that leaves nothing of another's is refused with a reason."""
    low, high = data.draw(st.integers(-128, 0)), data.draw(st.integers(0, 127))
    return [net.clamp(x, low, high)]


def pooled(net: Net, x: Value, data: st.DataObject) -> list[Value]:
    del data
    if x.type.rank != 4 or min(x.shape[1:3]) < 4 or x.shape[1] % 2 or x.shape[2] % 2:
        return []
    return [net.pool("MAX_POOL2D", x, (2, 2), (2, 2))]


def cut(net: Net, x: Value, data: st.DataObject) -> list[Value]:
    axis = data.draw(st.integers(1, 2))
    if x.type.rank <= axis or x.shape[axis] < 2:
        return []
    first = data.draw(st.integers(1, x.shape[axis] - 1))
    return net.split(x, (first, x.shape[axis] - first), axis)


def joined(net: Net, x: Value, data: st.DataObject) -> list[Value]:
    axis = data.draw(st.integers(1, 2))
    return [net.concat(x, x, axis=axis)] if x.type.rank > axis else []


def flattened(net: Net, x: Value, data: st.DataObject) -> list[Value]:
    del data
    return [net.reshape(x, 1, x.type.elements)] if x.type.rank > 2 else []


def stacked(net: Net, x: Value, data: st.DataObject) -> list[Value]:
    del data
    whole = x.type.rank == 2 and x.type.elements % 64 == 0
    return [net.reshape(x, 1, 4, x.type.elements // 64, 16)] if whole else []


def doubled(net: Net, x: Value, data: st.DataObject) -> list[Value]:
    del data
    return [net.doubled(x)] if x.type.rank == 4 and x.type.elements < 4096 else []


STEPS: tuple[Step, ...] = (bounded, pooled, cut, joined, flattened, stacked, doubled)


def drawn(data: st.DataObject) -> Net:
    net = Net()
    values = [net.clamp(net.input(1, 8, 8, 16), -120, 120)]
    if data.draw(st.booleans()):
        values.append(net.clamp(net.input(1, 6, 16, 16), -90, 90))
    for _ in range(data.draw(st.integers(1, 7))):
        source = data.draw(st.sampled_from(values))
        values += data.draw(st.sampled_from(STEPS))(net, source, data)
    unused = [value for value in values if not value.uses]
    more = data.draw(st.lists(st.sampled_from(values), max_size=2))
    return net.outputs(*dict.fromkeys((*unused, *more)))


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_numbers_are_the_graphs(data: st.DataObject) -> None:
    net = drawn(data)
    inputs = net.inputs()
    wanted = evaluate(net.graph, inputs)
    generated = generate(net.graph, FOUR_TOPS)
    for operand, users in generated.network.users().items():
        assert users, operand
    arrays = given_to(generated, inputs)
    for found in (evaluate_network(generated.network, arrays), run(generated, FOUR_TOPS, arrays)):
        for place, array in zip(generated.output_order, wanted, strict=True):
            np.testing.assert_array_equal(found[place].reshape(array.shape), array)


def given_to(generated: Generated, inputs: list[Array]) -> list[Array]:
    """Return a region's inputs in the order and the shapes of its network."""
    return [
        inputs[place].reshape(generated.inputs[place].info.shape) for place in generated.input_order
    ]
