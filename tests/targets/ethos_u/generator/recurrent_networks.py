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
