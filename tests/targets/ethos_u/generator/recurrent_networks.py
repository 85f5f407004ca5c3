"""Random networks of one operator that keeps state in variable tensors."""

from __future__ import annotations

import numpy as np

from mizzen.package.tflite.builder import NetworkBuilder

ABSENT = -1


def lstm(seed: int) -> bytes:
    """UNIDIRECTIONAL_SEQUENCE_LSTM of any sizes, of bytes or of 16 bits, time first or not."""
    rng, net = np.random.default_rng(seed), NetworkBuilder("lstm")
    batch, steps, inputs, cells = (int(rng.integers(1, most)) for most in (4, 5, 12, 20))
    wide, time_major = bool(seed % 2), bool(seed // 2 % 2)
    dtype = "int16" if wide else "int8"
    shape = (steps, batch) if time_major else (batch, steps)
    x_scale = 0.0002 if wide else 0.03
    x = net.tensor("x", (*shape, inputs), dtype, x_scale, 0 if wide else 11)
    scales = rng.uniform(0.004, 0.02, 8)

    def weights(place: int, columns: int) -> int:
        data = rng.integers(-127, 128, (cells, columns)).astype(np.int8)
        return net.constant(f"w{place}", data, float(scales[place]))

    layers = [weights(place, inputs if place < 4 else cells) for place in range(8)]
    biases = [
        net.constant(
            f"b{gate}",
            rng.integers(-2000, 2000, cells).astype(np.int64 if wide else np.int32),
            float(scales[gate]) * x_scale,
        )
        for gate in range(4)
    ]
    hidden_q = (1 / 32768, 0) if wide else (float(rng.uniform(0.006, 0.009)), -9)
    hidden = net.tensor("hidden", (batch, cells), dtype, *hidden_q, variable=True)
    power = int(rng.integers(-14, -8))
    cell = net.tensor("cell", (batch, cells), "int16", 2.0**power, 0, variable=True)
    y = net.tensor("y", (*shape, cells), dtype, *hidden_q)
    order = [x, *layers, *(ABSENT,) * 3, *biases, *(ABSENT,) * 2, hidden, cell, *(ABSENT,) * 4]
    options = {
        "fused_activation_function": 4,
        "cell_clip": float(rng.choice([0.0, 1.5, 8.0])),
        "time_major": time_major,
    }
    between = [net.tensor(f"i{gate}", (0,), "int16", 2.0**-12) for gate in range(4)]
    between.append(net.tensor("i4", (0,), "int8", *hidden_q))
    table = "UnidirectionalSequenceLSTMOptions", options
    net.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", order, [y], table, intermediates=between)
    return net.finish([x], [y])


def started(seed: int) -> bytes:
    """Sums of the input and what was kept of it, which starts with any numbers, of any type.

    One variable is read and never written, one keeps what it has, one is written and never read.
    """
    rng, net = np.random.default_rng(seed), NetworkBuilder("started")
    dtype = ("int8", "int16", "int32")[seed % 3]
    shape = 1, int(rng.integers(1, 5)), int(rng.integers(1, 20))
    zero = -3 if dtype == "int8" else 0
    info = np.iinfo(dtype if dtype != "int32" else "int16")

    def tensor(name: str) -> int:
        return net.tensor(name, shape, dtype, 0.1, zero)

    def variable(name: str) -> int:
        handle = net.resource(name)
        net.operator("VAR_HANDLE", [], [handle], ("VarHandleOptions", {"shared_name": name}))
        first = rng.integers(info.min, info.max, shape, endpoint=True).astype(dtype)
        net.initial(name, first, 0.1, zero)
        return handle

    def read(handle: int, name: str) -> int:
        found = tensor(name)
        net.operator("READ_VARIABLE", [handle], [found], ("ReadVariableOptions", {}))
        return found

    def assign(handle: int, value: int) -> None:
        net.operator("ASSIGN_VARIABLE", [handle, value], [], ("AssignVariableOptions", {}))

    def greater(one: int, other: int) -> int:
        found = tensor("greater")
        net.operator("MAXIMUM", [one, other], [found], ("MaximumMinimumOptions", {}))
        return found

    x = tensor("x")
    before, same, kept, given = (variable(name) for name in ("before", "same", "kept", "given"))
    last, held = read(before, "last"), read(kept, "held")
    assign(before, x)
    assign(kept, held)
    assign(given, x)
    result = greater(x, greater(last, greater(read(same, "constant"), held)))
    return net.finish([x], [result, last])
