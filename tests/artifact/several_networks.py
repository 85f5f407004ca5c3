"""Networks of several subgraphs, put together of networks of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mizzen.flatbuffer import Record, read, write
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.package.tflite.builder import NetworkBuilder

MAP = (1, 8, 8, 4)
ROW = (1, 16)


def several(
    subgraphs: Sequence[tuple[str, bytes]], signatures: Mapping[str, int] | None = None
) -> bytes:
    """Join networks of one subgraph; operators name the others by their places here."""
    codes: list[Record] = []
    buffers: list[Record] = [{}]
    rows: list[Record] = []
    for name, data in subgraphs:
        record = read(data, SCHEMA, name)
        (main,) = record["subgraphs"]
        first_code, first_buffer = len(codes), len(buffers)
        codes += record["operator_codes"] or []
        buffers += record["buffers"]
        rows.append(
            {
                **main,
                "name": name,
                "tensors": [{**row, "buffer": row["buffer"] + first_buffer}
                            for row in main["tensors"]],
                "operators": [{**row, "opcode_index": row["opcode_index"] + first_code}
                              for row in main["operators"] or ()],
            }
        )  # fmt: skip
    named = [_signature(name, index, rows[index]) for name, index in (signatures or {}).items()]
    record = {
        "version": 3,
        "operator_codes": codes,
        "subgraphs": rows,
        "buffers": buffers,
        "signature_defs": named or None,
    }
    return write(record, SCHEMA)


def _signature(name: str, index: int, subgraph: Record) -> Record:
    def named(what: str) -> list[Record]:
        return [
            {"name": f"{what}_{place}", "tensor_index": int(tensor)}
            for place, tensor in enumerate(subgraph[what])
        ]

    return {
        "signature_key": name,
        "subgraph_index": index,
        "inputs": named("inputs"),
        "outputs": named("outputs"),
    }


class Net(NetworkBuilder):
    """A subgraph of layers on INT8 maps of one scale."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = np.random.default_rng(seed)

    def map(self, name: str, shape: Sequence[int] = MAP) -> int:
        return self.tensor(name, shape, "int8", 0.05, -2)

    def conv(self, x: int, name: str, shape: Sequence[int] = MAP) -> int:
        y = self.map(name, shape)
        channels = shape[-1]
        weights = self._random.integers(-90, 90, (channels, 3, 3, channels)).astype(np.int8)
        bias = self._random.integers(-300, 300, channels).astype(np.int32)
        w = self.constant(f"{name}_w", weights, 0.01)
        b = self.constant(f"{name}_b", bias, 0.0005)
        strides = {"padding": 0, "stride_w": 1, "stride_h": 1}
        dilation = {"dilation_w_factor": 1, "dilation_h_factor": 1}
        self.operator("CONV_2D", [x, w, b], [y], ("Conv2DOptions", {**strides, **dilation}),
                      version=3)  # fmt: skip
        return y

    def dense(self, x: int, name: str, shape: Sequence[int] = ROW) -> int:
        y = self.map(name, shape)
        weights = self._random.integers(-90, 90, (shape[-1], shape[-1])).astype(np.int8)
        bias = self._random.integers(-300, 300, shape[-1]).astype(np.int32)
        w, b = self.constant(f"{name}_w", weights, 0.01), self.constant(f"{name}_b", bias, 0.0005)
        self.operator("FULLY_CONNECTED", [x, w, b], [y], ("FullyConnectedOptions", {}), version=4)
        return y

    def add(self, x: int, other: int, name: str, shape: Sequence[int] = MAP) -> int:
        y = self.map(name, shape)
        self.operator("ADD", [x, other], [y], ("AddOptions", {}), version=2)
        return y

    def handle(self, name: str) -> int:
        found = self.resource(f"{name}_handle")
        self.operator("VAR_HANDLE", [], [found], ("VarHandleOptions", {"shared_name": name}))
        return found

    def taken(self, handle: int, name: str) -> int:
        y = self.map(name)
        self.operator("READ_VARIABLE", [handle], [y], ("ReadVariableOptions", {}))
        return y

    def assigned(self, handle: int, x: int) -> None:
        self.operator("ASSIGN_VARIABLE", [handle, x], [], ("AssignVariableOptions", {}))


def one_conv(seed: int) -> bytes:
    net = Net(seed)
    x = net.map("x")
    return net.finish([x], [net.conv(x, "y")])


def passes(shape: Sequence[int] = MAP) -> bytes:
    net = Net(0)
    x = net.map("x", shape)
    return net.finish([x], [x])


def chosen(then: int, otherwise: int, around: bool) -> bytes:
    """IF on a flag, with layers in front and behind or without."""
    net = Net(3)
    flag, x = net.tensor("flag", (1,), "bool"), net.map("x")
    given = net.conv(x, "before") if around else x
    y = net.map("branch")
    options = {"then_subgraph_index": then, "else_subgraph_index": otherwise}
    net.operator("IF", [flag, given], [y], ("IfOptions", options))
    return net.finish([flag, x], [net.conv(y, "after") if around else y])


def counted(shape: Sequence[int], body: int, behind: bool) -> bytes:
    """WHILE from a number that is an input, to the limit of the condition."""
    net = Net(4)
    start, x = net.tensor("start", (1,), "int32"), net.map("x", shape)
    count, y = net.tensor("count", (1,), "int32"), net.map("y", shape)
    options = {"cond_subgraph_index": 1, "body_subgraph_index": body}
    net.operator("WHILE", [start, x], [count, y], ("WhileOptions", options))
    return net.finish([start, x], [count, net.dense(y, "z", shape) if behind else y])


def below(limit: int, shape: Sequence[int]) -> bytes:
    net = Net(0)
    number, x = net.tensor("i", (1,), "int32"), net.map("x", shape)
    most, answer = net.constant("k", np.array([limit], np.int32)), net.tensor("goes", (1,), "bool")
    net.operator("LESS", [number, most], [answer], ("LessOptions", {}))
    return net.finish([number, x], [answer])


def next_number(net: Net) -> tuple[int, int]:
    number, made = net.tensor("i", (1,), "int32"), net.tensor("i2", (1,), "int32")
    one = net.constant("one", np.array([1], np.int32))
    net.operator("ADD", [number, one], [made], ("AddOptions", {}))
    return number, made


def stepping() -> bytes:
    net = Net(5)
    number, made = next_number(net)
    x = net.map("x", ROW)
    return net.finish([number, x], [made, net.dense(net.dense(x, "h", ROW), "y", ROW)])


def stepping_by_choice(then: int, otherwise: int) -> bytes:
    """A body that goes one way in its first steps and another one later."""
    net = Net(6)
    number, made = next_number(net)
    x, y = net.map("x", MAP), net.map("y", MAP)
    two, early = net.constant("two", np.array([2], np.int32)), net.tensor("early", (1,), "bool")
    net.operator("LESS", [number, two], [early], ("LessOptions", {}))
    options = {"then_subgraph_index": then, "else_subgraph_index": otherwise}
    net.operator("IF", [early, net.conv(x, "c")], [y], ("IfOptions", options))
    return net.finish([number, x], [made, y])


def stepping_with_variable() -> bytes:
    """A body that adds to a variable, and gives what it holds."""
    net = Net(7)
    number, made = next_number(net)
    x, total = net.map("x"), net.handle("total")
    after = net.add(net.taken(total, "held"), net.conv(x, "c"), "after")
    net.assigned(total, after)
    return net.finish([number, x], [made, after])


def adding(seed: int) -> bytes:
    net = Net(seed)
    x, total = net.map("x"), net.handle("total")
    after = net.add(net.taken(total, "held"), net.conv(x, "c"), "after")
    net.assigned(total, after)
    return net.finish([x], [net.conv(after, "y")])


def asking() -> bytes:
    net = Net(9)
    total = net.handle("total")
    return net.finish([], [net.conv(net.taken(total, "held"), "y")])


def composed() -> bytes:
    net = Net(10)
    x, y = net.map("x"), net.map("made")
    attributes = np.frombuffer(b"\x00\x24\x01", np.uint8)  # FlexBuffers: none
    options = {"name": "test.composite", "decomposition_subgraph_index": 1, "version": 1,
               "composite_attributes": attributes}  # fmt: skip
    net.operator("STABLEHLO_COMPOSITE", [net.conv(x, "before")], [y],
                 ("StableHLOCompositeOptions", options))  # fmt: skip
    return net.finish([x], [net.conv(y, "after")])


def repeated(model: bytes) -> bytes:
    """A model as the body of a loop: what it gives is what it takes next."""
    record = read(model, SCHEMA, "model")
    (main,) = record["subgraphs"]
    net = Net(0)
    next_number(net)
    extra = read(net.finish([], []), SCHEMA, "extra")
    (counting,) = extra["subgraphs"]
    tensors, codes = len(main["tensors"]), len(record["operator_codes"])
    buffers = len(record["buffers"])
    main["tensors"] += [{**row, "buffer": row["buffer"] + buffers} for row in counting["tensors"]]
    record["buffers"] += extra["buffers"]
    record["operator_codes"] += extra["operator_codes"]
    main["operators"] += [
        {**row, "opcode_index": row["opcode_index"] + codes,
         "inputs": row["inputs"] + tensors, "outputs": row["outputs"] + tensors}
        for row in counting["operators"]
    ]  # fmt: skip
    main["inputs"] = np.array([tensors, *main["inputs"]], np.int32)
    main["outputs"] = np.array([tensors + 1, *main["outputs"]], np.int32)
    return write({**record, "metadata": None, "signature_defs": None}, SCHEMA)


def looping_over(shape: Sequence[int], quantization: Any) -> bytes:
    """WHILE of a body whose maps have a quantisation of their own."""
    net = Net(0)
    scale, zero = quantization
    start, count = net.tensor("start", (1,), "int32"), net.tensor("count", (1,), "int32")
    x, y = (net.tensor(name, shape, "int8", scale, zero) for name in "xy")
    options = {"cond_subgraph_index": 1, "body_subgraph_index": 2}
    net.operator("WHILE", [start, x], [count, y], ("WhileOptions", options))
    return net.finish([start, x], [count, y])


@dataclass(frozen=True)
class Case:
    """A network by its name; `model` is a public one that it is made of."""

    name: str
    build: Callable[[Sequence[bytes]], bytes]
    models: tuple[str, ...] = ()


def _two(models: Sequence[bytes]) -> bytes:
    return several([("first", models[0]), ("second", models[1])], {"one": 0, "other": 1})


def _stepped(models: Sequence[bytes]) -> bytes:
    shape, quantization = (1, 1), (0.05, 0)
    main, condition = looping_over(shape, quantization), below(4, shape)
    return several([("main", main), ("cond", condition), ("body", repeated(models[0]))])


CASES = (
    Case("two layers", lambda _: several(
        [("encode", one_conv(1)), ("decode", one_conv(2))], {"encode": 0, "decode": 1})),
    Case("a branch", lambda _: several(
        [("main", chosen(1, 2, False)), ("then", one_conv(1)), ("else", one_conv(2))])),
    Case("a branch between layers", lambda _: several(
        [("main", chosen(1, 2, True)), ("then", one_conv(1)), ("else", passes())])),
    Case("a loop", lambda _: several(
        [("main", counted(ROW, 2, False)), ("cond", below(5, ROW)), ("body", stepping())])),
    Case("a loop before a layer", lambda _: several(
        [("main", counted(ROW, 2, True)), ("cond", below(3, ROW)), ("body", stepping())])),
    Case("a branch in a loop", lambda _: several(
        [("main", counted(MAP, 2, False)), ("cond", below(5, MAP)),
         ("body", stepping_by_choice(3, 4)), ("then", one_conv(3)), ("else", passes())])),
    Case("signatures that share branches", lambda _: several(
        [("main", chosen(1, 2, True)), ("then", one_conv(1)), ("else", one_conv(2)),
         ("bare", chosen(2, 1, False))], {"whole": 0, "branch": 3})),
    Case("a composite", lambda _: several([("main", composed()), ("inside", one_conv(4))])),
    Case("a variable in a loop", lambda _: several(
        [("main", counted(MAP, 2, False)), ("cond", below(4, MAP)),
         ("body", stepping_with_variable())])),
    Case("a variable of two signatures", lambda _: several(
        [("add", adding(8)), ("ask", asking())], {"add": 0, "ask": 1})),
    Case("two public models", _two, ("kws_ref_model", "ad01_int8")),
    Case("two public models of images", _two, ("vww_96_int8", "person_detect")),
    Case("a public model in a loop", _stepped, ("hello_world_int8",)),
)  # fmt: skip


def built(case: Case, folder: Path) -> bytes:
    return case.build([(folder / f"{name}.tflite").read_bytes() for name in case.models])
