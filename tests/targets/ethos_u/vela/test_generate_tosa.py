"""Code from TOSA: what is known by index of operation, and which operations stop the compiler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from mizzen.compiler.ethos_u.vela.tosa_refusals import RefusedOperation, find_refused
from mizzen.targets.ethos_u.vela.defects import avoid_defects

from mizzen.artifact.steps import read_network as read
from mizzen.graph import DType, Graph, RoundingMode, TensorType, Value
from mizzen.ops import Builder
from mizzen.package.tosa import write
from mizzen.partition import extract_operations
from mizzen.reference import evaluate
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.system_config import resolve
from mizzen.targets.ethos_u.vela.generate import Cause, Compiled, NetworkForm, Stopped, generate

U55 = resolve("ethos-u55-128")
U85 = resolve("ethos-u85-256")
MAP = TensorType((1, 8, 8, 4), DType.INT8)


class Net:
    """A graph that is being built."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.b = Builder(self.graph)

    def input(self, type: TensorType = MAP, name: str = "") -> Value:
        return self.graph.add_input(type, name)

    def convolution(self, value: Value) -> Value:
        """[N,H,W,C] -> [N,H,W,4], of the same type."""
        b, source = self.b, value.dtype
        weights = b.constant(np.arange(36 * value.shape[3]).reshape(4, 3, 3, -1) % 7, DType.INT8)
        bias = b.constant([0] * 4, DType.INT48 if source is DType.INT16 else DType.INT32)
        zeros = b.constant([0], source), b.constant([0], DType.INT8)
        sums = b("CONV2D", value, weights, bias, *zeros, pad=(1, 1, 1, 1), stride=(1, 1))
        return self.rescale(sums, source)

    def rescale(self, value: Value, dtype: DType, shift: int = 37) -> Value:
        b, wide = self.b, value.dtype is not DType.INT48
        operands = (
            b.constant([1 << 30 if wide else 1 << 14], DType.INT32 if wide else DType.INT16),
            b.constant([shift if wide else 21], DType.INT8),
            b.constant([0], value.dtype),
            b.constant([0], dtype),
        )
        single = RoundingMode.SINGLE_ROUND
        return b("RESCALE", value, *operands, scale32=wide, rounding_mode=single, per_channel=False)

    def compare(self, value: Value) -> Value:
        """Do what no U55 does."""
        wide = self.b("CAST", value, dtype=DType.INT32)
        return self.b("CAST", self.b("GREATER", wide, wide), dtype=DType.INT8)

    def give(self, *values: Value) -> Graph:
        self.graph.set_outputs(values)
        return self.graph


def compiled(graph: Graph) -> Compiled:
    answer = generate(write(graph), U55, NetworkForm.TOSA)
    assert isinstance(answer, Compiled), answer
    return answer


def stopped(graph: Graph) -> Stopped:
    answer = generate(write(graph), U55, NetworkForm.TOSA)
    assert isinstance(answer, Stopped)
    return answer


def places(refused: tuple[RefusedOperation, ...]) -> list[tuple[int, str]]:
    return [(row.index, row.operation.kind) for row in refused]


def test_work_and_commands_are_known_by_index() -> None:
    net = Net()
    graph = net.give(net.b("MAX_POOL2D", net.convolution(net.input()), kernel=(2, 2),
                           stride=(2, 2), pad=(0, 0, 0, 0)))  # fmt: skip
    answer, kinds = compiled(graph), [operation.kind for operation in graph.sorted()]
    assert [kinds[row.operator or 0] for row in answer.work] == ["CONV2D", "MAX_POOL2D"]
    assert [kinds[row.operator or 0] for row in answer.commands] == ["CONV2D", "MAX_POOL2D"]
    # 8 x 8 results of 4 channels, each of 9 x 4 products
    assert answer.work[0].macs == 8 * 8 * 4 * 9 * 4


def test_inputs_and_outputs_keep_order_and_names() -> None:
    net = Net()
    first, unused, last = (net.input(name=name) for name in ("z", "unused", "a"))
    one, other = net.convolution(first), net.b("CLAMP", last, min_val=0, max_val=5)
    one.name, other.name = "one", "other"
    network = read(compiled(net.give(other, one, other)).network, "x").main
    assert unused in net.graph.inputs
    assert [network.tensors[index].name for index in network.inputs] == ["z", "unused", "a"]
    assert [network.tensors[index].name for index in network.outputs] == ["other", "one", "other"]


def test_all_operations_of_the_type_that_is_named_are_found() -> None:
    net = Net()
    value = net.convolution(net.input())
    value = net.convolution(net.compare(value))
    graph = net.give(net.convolution(net.compare(value)))
    found = find_refused(graph, write, U55, stopped(graph))
    kinds = [operation.kind for operation in graph.sorted()]
    assert places(found) == [(i, kind) for i, kind in enumerate(kinds) if kind == "GREATER"]
    assert len(found) == 2
    assert {row.cause for row in found} == {Cause.CANNOT_FALL_BACK}
    assert found[0].said == "Non-passthrough operation (Greater) could not run on NPU"


def test_the_operation_is_found_where_none_is_named() -> None:
    net = Net()
    value = net.convolution(net.compare(net.convolution(net.input())))
    graph = net.give(value)
    silent = replace(stopped(graph), said="signal SIGSEGV")
    assert [kind for _, kind in places(find_refused(graph, write, U55, silent))] == ["GREATER"]


def test_types_that_the_npu_does_not_have_are_found() -> None:
    net = Net()
    value = net.input(TensorType((2, 3), DType.FP32))
    graph = net.give(net.b("ADD", value, value), net.convolution(net.input()))
    found = find_refused(graph, write, U55, stopped(graph))
    assert places(found) == [(0, "ADD")]
    assert found[0].cause is Cause.REFUSED


def test_sums_of_48_bits_are_not_blamed() -> None:
    """U55 takes them only together with their rescale, so a part must not end between."""
    net = Net()
    wide = TensorType((1, 8, 8, 4), DType.INT16)
    value = net.convolution(net.convolution(net.input(wide)))
    table = net.b("BITWISE_AND", value, value)
    graph = net.give(net.convolution(table))
    for said in (stopped(graph).said, "signal SIGSEGV", "Validation error: Conv2D:"):
        why = replace(stopped(graph), said=said)
        assert [kind for _, kind in places(find_refused(graph, write, U55, why))] == ["BITWISE_AND"]


def test_nobody_is_blamed_if_the_graph_compiles() -> None:
    net = Net()
    graph = net.give(net.convolution(net.input()))
    assert find_refused(graph, write, U85, _crash()) == ()
    assert find_refused(Net().give(), write, U85, _crash()) == ()


def _crash() -> Stopped:
    return Stopped(Cause.CRASHED, "it crashed", "signal SIGSEGV", (), "")


def test_a_part_gives_what_others_take() -> None:
    net = Net()
    first = net.convolution(net.input())
    second = net.b("CLAMP", first, min_val=0, max_val=5)
    graph = net.give(net.b("CLAMP", second, min_val=1, max_val=4), first)
    operations = [
        operation for operation in graph.sorted() if not operation.kind.startswith("CONST")
    ]
    middle = extract_operations(graph, operations[1:3]).graph
    assert [operation.kind for operation in middle.sorted() if operation.operands] == [
        "RESCALE",
        "CLAMP",
    ]
    assert [value.dtype for value in middle.inputs] == [DType.INT32]
    assert len(middle.outputs) == 2


def _transposed_convolution(net: Net) -> Value:
    b, zero = net.b, net.b.constant([0], DType.INT8)
    weights = b.constant(np.arange(64).reshape(4, 2, 2, 4) % 7, DType.INT8)
    bias = b.constant([0] * 4, DType.INT32)
    operands = (net.input(), weights, bias, zero, zero)
    return net.rescale(
        b("TRANSPOSE_CONV2D", *operands, out_pad=(0, 0, 0, 0), stride=(2, 2)), DType.INT8
    )


def _maximum(net: Net) -> Value:
    return net.b("REDUCE_MAX", net.input(), axis=1)


def _joined(net: Net, value: Value) -> Value:
    return net.b("CONCAT", net.input(value.type), value, axis=3)


def _reshaped(net: Net, value: Value) -> Value:
    flat = net.b("RESHAPE", value, net.b.shape([1, 1, value.type.elements, 1]))
    return net.b("CONCAT", flat, flat, axis=1)


def _padded(net: Net, value: Value) -> Value:
    return net.b(
        "PAD", value, net.b.shape([0, 0, 1, 0, 0, 0, 0, 0]), net.b.constant([3], value.dtype)
    )


@pytest.mark.parametrize("make", [_transposed_convolution, _maximum])
@pytest.mark.parametrize("use", [_joined, _reshaped, _padded])
def test_a_clamp_parts_what_the_compiler_would_misplace(
    make: Callable[[Net], Value], use: Callable[[Net, Value], Value]
) -> None:
    net = Net()
    value = make(net)
    value.name = "kept"
    graph = net.give(use(net, value))
    avoid_defects(graph, Arch.U55)
    (clamp,) = [operation for operation in graph if operation.kind == "CLAMP"]
    assert clamp.operands[0] is value
    assert (clamp["min_val"], clamp["max_val"]) == (-128, 127)
    assert clamp.result.name == "kept"
    assert not value.name
    compiled(graph)


def _joined_first(net: Net, value: Value) -> Value:
    return net.b("CONCAT", value, net.input(value.type), axis=3)


def test_what_joined_channels_begin_with_is_in_its_place() -> None:
    net = Net()
    graph = net.give(net.convolution(_joined_first(net, _transposed_convolution(net))))
    avoid_defects(graph, Arch.U55)
    assert not any(operation.kind == "CLAMP" for operation in graph)


def _as_it_is(net: Net) -> tuple[Value, ...]:
    return (_joined_first(net, _transposed_convolution(net)),)


def _joined_again(net: Net) -> tuple[Value, ...]:
    whole = _joined_first(net, _transposed_convolution(net))
    return (net.convolution(net.b("CONCAT", net.input(whole.type), whole, axis=3)),)


def _joined_rows(net: Net) -> tuple[Value, ...]:
    value = _transposed_convolution(net)
    return (net.convolution(net.b("CONCAT", value, net.input(value.type), axis=1)),)


def _given_too(net: Net) -> tuple[Value, ...]:
    value = _transposed_convolution(net)
    return (net.convolution(_joined_first(net, value)), value)


@pytest.mark.parametrize("make", [_as_it_is, _joined_again, _joined_rows, _given_too])
def test_what_begins_otherwise_is_parted(make: Callable[[Net], tuple[Value, ...]]) -> None:
    net = Net()
    graph = net.give(*make(net))
    avoid_defects(graph, Arch.U55)
    assert sum(operation.kind == "CLAMP" for operation in graph) == 1


def test_nothing_is_clamped_that_is_no_part() -> None:
    net = Net()
    graph = net.give(_maximum(net), _joined(net, net.convolution(net.input())))
    before = len(graph)
    avoid_defects(graph, Arch.U55)
    assert len(graph) == before


COLUMN, ROW = (1, 4, 1, 3), (1, 1, 5, 3)
"""Both broadcast to (1, 4, 5, 3)."""


def _broadcast(net: Net, *shapes: tuple[int, ...], kind: str = "ADD") -> Graph:
    values = [net.rescale(net.input(MAP.with_shape(row)), DType.INT32, 30) for row in shapes]
    return net.give(net.rescale(net.b(kind, *values), DType.INT8, 31))


@pytest.mark.parametrize("kind", ["ADD", "SUB", "MAXIMUM"])
@pytest.mark.parametrize("arch", [Arch.U55, Arch.U65])
def test_one_of_two_operands_that_broadcast_is_repeated(kind: str, arch: Arch) -> None:
    net = Net()
    graph = _broadcast(net, COLUMN, ROW, kind=kind)
    values = [np.arange(-6, 6).reshape(COLUMN), np.arange(-7, 8).reshape(ROW)]
    inputs = [row.astype(np.int8) for row in values]
    before = evaluate(graph, inputs)
    avoid_defects(graph, arch)
    (tile,) = [operation for operation in graph if operation.kind == "TILE"]
    assert tile.operands[0] is graph.inputs[1], "the larger, and before it is rescaled"
    np.testing.assert_array_equal(evaluate(graph, inputs)[0], before[0])


@pytest.mark.parametrize(
    ("shapes", "arch"),
    [((COLUMN, ROW), Arch.U85), ((COLUMN, (1, 4, 5, 3)), Arch.U55), ((ROW, ROW), Arch.U55)],
    ids=["what the machine can do", "one operand only", "neither"],
)
def test_operands_are_not_repeated_for_nothing(shapes: tuple[Any, Any], arch: Arch) -> None:
    net = Net()
    graph = _broadcast(net, *shapes)
    avoid_defects(graph, arch)
    assert not any(operation.kind == "TILE" for operation in graph)


def _dense(
    net: Net, value: Value, weights: np.ndarray[Any, Any], bias: int, shift: int = 37
) -> Value:
    b, zero = net.b, net.b.constant([0], DType.INT8)
    operands = (value, b.constant(weights, DType.INT8), b.constant([bias] * 4, DType.INT32))
    sums = b("CONV2D", *operands, zero, zero, pad=(0, 0, 0, 0), stride=(1, 1))
    return net.rescale(sums, DType.INT8, shift)


def _weights(least: int, greatest: int) -> np.ndarray[Any, Any]:
    return np.linspace(least, greatest, 16).astype(np.int8).reshape(4, 1, 1, 4)


def _zero_points(graph: Graph) -> list[int]:
    """Return those of the weights, and check that the weights are what they were."""
    found: list[int] = []
    for operation in graph:
        if operation.kind == "CONV2D":
            weights, zero_point = operation.operands[1].constant, operation.operands[4].constant
            assert weights is not None
            assert zero_point is not None
            found.append(int(zero_point[0]))
            assert (weights.astype(int) - found[-1]).ravel()[0] == -120
    return found


def test_weights_of_other_biases_are_made_different() -> None:
    net, weights = Net(), _weights(-120, 126)
    value = net.input()
    graph = net.give(*(_dense(net, value, weights, bias) for bias in (1, 2, 1, 3, 2)))
    assert avoid_defects(graph, Arch.U55) == ()
    assert _zero_points(graph) == [0, -1, 0, 1, -1]


def test_operations_stay_wrong_where_there_is_no_room() -> None:
    net, weights = Net(), _weights(-120, 127)
    value = net.input()
    graph = net.give(*(_dense(net, value, weights, bias) for bias in range(12)))
    (*_, tenth, eleventh, twelfth) = [op for op in graph if op.kind == "CONV2D"]
    assert avoid_defects(graph, Arch.U55) == (tenth, eleventh, twelfth)
    assert _zero_points(graph) == [0, -1, -2, -3, -4, -5, -6, -7, -8, 0, 0, 0]


def test_weights_of_other_scales_are_different_already() -> None:
    net, weights = Net(), _weights(-120, 126)
    value = net.input()
    graph = net.give(*(_dense(net, value, weights, shift, shift) for shift in (36, 37, 38)))
    assert avoid_defects(graph, Arch.U55) == ()
    assert _zero_points(graph) == [0, 0, 0]
