"""Random networks of one function, or of two operands that no sum or product is made of."""

from __future__ import annotations

import numpy as np

from .networks import Draw


def squared_difference(seed: int, dtype: str) -> bytes:
    """SQUARED_DIFFERENCE of two inputs that broadcast, of scales of their own or of one."""
    d = Draw(seed, dtype)
    shape = d.shape(d.number(1, 4), 6)
    other = tuple(1 if d.number(0, 2) == 0 else extent for extent in shape)
    scale = d.scale()
    second = scale if d.number(0, 2) == 0 else scale * d.scale(0.1, 1.0)
    x, z = d.tensor(shape, scale), d.tensor(other, second)
    fine = 30000 if dtype == "int16" else 120
    y = d.tensor(shape, scale * scale * d.scale(0.5, 2.0) * fine)
    options = ("SquaredDifferenceOptions", {})
    d.net.operator("SQUARED_DIFFERENCE", [x, z] if d.number(0, 1) else [z, x], [y], options)
    return d.net.finish([x, z], [y])


def prelu(seed: int) -> bytes:
    """PRELU with a slope for each channel, row or element."""
    d = Draw(seed)
    shape = d.shape(4, 6)
    slopes = tuple(1 if d.number(0, 1) else extent for extent in shape[1:])
    scale = d.scale()
    x, y = d.tensor(shape, scale), d.tensor(shape, scale * d.scale(0.5, 2.0))
    alpha = d.net.constant("alpha", d.values(slopes), d.scale(0.002, 0.05), d.zero_point())
    return d.one("PRELU", [x, alpha], y, None)


def magnitude(seed: int) -> bytes:
    """ABS of 16 bits, in another scale or in the same."""
    d = Draw(seed, "int16")
    shape, scale = d.shape(3), d.scale()
    x = d.tensor(shape, scale)
    y = d.tensor(shape, scale if d.number(0, 1) else scale * d.scale(0.5, 2.0))
    return d.one("ABS", [x], y, None)


def leaky_relu(seed: int) -> bytes:
    """LEAKY_RELU of 16 bits of any slope, also of a negative one."""
    d = Draw(seed, "int16")
    shape, scale = d.shape(3), d.scale()
    x, y = d.tensor(shape, scale), d.tensor(shape, scale * d.scale(0.5, 2.0))
    alpha = float(np.float32(d.rng.uniform(-1, 2)))
    return d.one("LEAKY_RELU", [x], y, ("LeakyReluOptions", {"alpha": alpha}))


def of_lines(kind: str, seed: int) -> bytes:
    """EXP or LOG of all integers of 16 bits."""
    d = Draw(seed, "int16")
    x = d.tensor((1, 1 << 16), d.scale(0.00002, 0.0004))
    y = d.tensor((1, 1 << 16), d.scale(0.0001, 0.01))
    return d.one(kind, [x], y, None)
