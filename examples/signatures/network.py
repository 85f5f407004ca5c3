"""Write a network with two signatures: `step`, a layer, and `settle`, a loop over layers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from mizzen.flatbuffer import read, write
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.package.tflite.builder import NetworkBuilder

SHAPE = (1, 32)
STEPS = 6


class Layers(NetworkBuilder):
    """Dense layers on maps of one scale."""

    def dense(self, x: int, name: str) -> int:
        """Add a layer; returns what it gives."""
        random = np.random.default_rng(len(name))
        weights = random.integers(-60, 60, (SHAPE[1], SHAPE[1])).astype(np.int8)
        w = self.constant(f"{name}_weights", weights, 0.004)
        b = self.constant(f"{name}_bias", np.zeros(SHAPE[1], np.int32), 0.0002)
        y = self.tensor(name, SHAPE, "int8", 0.05)
        self.operator("FULLY_CONNECTED", [x, w, b], [y], ("FullyConnectedOptions", {}), version=4)
        return y


def step() -> bytes:
    """Return the network of one layer."""
    net = Layers()
    x = net.tensor("x", SHAPE, "int8", 0.05)
    return net.finish([x], [net.dense(x, "y")])


def settle() -> bytes:
    """Return the network that loops: subgraph 2 is the condition, 3 the body."""
    net = Layers()
    x, y = (net.tensor(name, SHAPE, "int8", 0.05) for name in ("start", "settled"))
    zero, count = net.constant("zero", np.zeros(1, np.int32)), net.tensor("count", (1,), "int32")
    subgraphs = {"cond_subgraph_index": 2, "body_subgraph_index": 3}
    net.operator("WHILE", [zero, x], [count, y], ("WhileOptions", subgraphs))
    return net.finish([x], [y])


def condition() -> bytes:
    """Return the network that says whether the loop goes on."""
    net = Layers()
    count, x = net.tensor("count", (1,), "int32"), net.tensor("x", SHAPE, "int8", 0.05)
    most, goes = (
        net.constant("steps", np.full(1, STEPS, np.int32)),
        net.tensor("goes", (1,), "bool"),
    )
    net.operator("LESS", [count, most], [goes], ("LessOptions", {}))
    return net.finish([count, x], [goes])


def body() -> bytes:
    """Return the network of one turn of the loop."""
    net = Layers()
    count, x = net.tensor("count", (1,), "int32"), net.tensor("x", SHAPE, "int8", 0.05)
    one, more = net.constant("one", np.ones(1, np.int32)), net.tensor("more", (1,), "int32")
    net.operator("ADD", [count, one], [more], ("AddOptions", {}))
    return net.finish([count, x], [more, net.dense(net.dense(x, "hidden"), "next")])


def joined(networks: dict[str, bytes], signatures: dict[str, int]) -> bytes:
    """Return the file of all networks as subgraphs, those of signatures with their names."""
    codes: list[Any] = []
    buffers: list[Any] = []
    subgraphs: list[Any] = []
    for name, data in networks.items():
        record = read(data, SCHEMA, name)
        (main,) = record["subgraphs"]
        for row in main["tensors"]:
            row["buffer"] += len(buffers)
        for row in main["operators"]:
            row["opcode_index"] += len(codes)
        codes += record["operator_codes"]
        buffers += record["buffers"]
        subgraphs.append({**main, "name": name})
    return write(
        {
            "version": 3,
            "operator_codes": codes,
            "subgraphs": subgraphs,
            "buffers": buffers,
            "signature_defs": [
                {
                    "signature_key": name,
                    "subgraph_index": index,
                    **{
                        side: [
                            {"name": subgraphs[index]["tensors"][place]["name"],
                             "tensor_index": int(place)}
                            for place in subgraphs[index][side]
                        ]
                        for side in ("inputs", "outputs")
                    },
                }
                for name, index in signatures.items()
            ],
        },
        SCHEMA,
    )  # fmt: skip


NETWORKS = {"step": step(), "settle": settle(), "settle_cond": condition(), "settle_body": body()}

if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(joined(NETWORKS, {"step": 0, "settle": 1}))
