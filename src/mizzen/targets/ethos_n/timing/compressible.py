"""Weights that can be compressed by a given part, in place of a network's own.

Ref: Ethos-N driver stack 23.02, `MceEstimationUtils.cpp` (`GenerateCompressibleData`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_n.network import (
    Array,
    Constant,
    Convolution,
    DepthwiseConvolution,
    FullyConnected,
    Input,
    Network,
    Operand,
    Output,
)

SEED = 5489
"""That of C++'s default Mersenne Twister."""
WORD = 2.0**32
WEIGHTS = 2
"""The place of the weights among the inputs of an operation."""


def compressible(count: int, saving: float, zero_point: int) -> npt.NDArray[np.uint8]:
    """Return random weights, `saving` of which are the zero point, as the library draws them.

    One word of the generator is taken for each weight, then two for each choice.
    """
    # The one generator of NumPy's that is seeded as C++'s is.
    generator = np.random.RandomState(SEED)
    words = generator.randint(0, 1 << 32, 3 * count, np.uint32)
    weights = words[:count].astype(np.uint8)
    low, high = words[count:].reshape(count, 2).astype(np.float64).T
    is_kept = (low + high * WORD) / WORD**2 < float(np.float32(1) - np.float32(saving))
    return np.where(is_kept, weights, np.uint8(zero_point % 256))


def with_compressible_weights(network: Network, saving: float) -> Network:
    """Return the same network with weights that can be compressed by a part, 0 to 1.

    Those of transpose convolutions stay as they are, as they do in the library.
    """
    made = Network()
    known: dict[Operand, Operand] = {}
    replaced = {
        node.inputs[WEIGHTS]
        for node in network
        if isinstance(node.operation, Convolution | DepthwiseConvolution | FullyConnected)
    }
    for node in network:
        match node.operation:
            case Input(info):
                known[node.operand] = made.add_input(info, node.origin)
            case Constant(info):
                data = network.data_of(node.operand)
                assert data is not None
                if node.operand in replaced:
                    data = _drawn(node.operand, saving, data)
                known[node.operand] = made.add_constant(info, data, node.origin)
            case Output(format):
                made.add_output(known[node.inputs[0]], format, node.origin)
            case operation:
                inputs = [known[operand] for operand in node.inputs]
                copy = made.add(operation, *inputs, origin=node.origin)
                known.update(zip(node.outputs, copy.outputs, strict=True))
    return made


def _drawn(operand: Operand, saving: float, data: Array) -> Array:
    zero_point = operand.info.quantization.zero_point
    return compressible(data.size, saving, zero_point).view(data.dtype).reshape(data.shape)
