"""A small convolutional network for 8x8 images of digits, and its training, in NumPy.

Images are [N, 8, 8, 1] with values 0..1. Kernels are [height, width, input, output], those of the
depthwise layer [height, width, channel].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

Array = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]

CLASSES = 10


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution and its ReLU; SAME padding as TFLite defines it.

    weight  [KH, KW, IC, OC], or [KH, KW, C] when depthwise
    """

    weight: Array
    bias: Array
    stride: int = 1

    @property
    def depthwise(self) -> bool:
        """Whether every channel has a kernel of its own."""
        return self.weight.ndim == 3

    def columns(self, x: Array) -> Array:
        """Return what each output sees, [N, OH, OW, IC, KH, KW], of x [N, H, W, IC]."""
        size = self.weight.shape[0]
        padded = np.pad(x, ((0, 0), *(same_padding(x.shape[1], size, self.stride),) * 2, (0, 0)))
        windows = sliding_window_view(padded, (size, size), axis=(1, 2))
        return windows[:, :: self.stride, :: self.stride]

    def forward(self, x: Array) -> Array:
        """Return the activations [N, OH, OW, OC] of x [N, H, W, IC]."""
        equation = "nyxcij,ijc->nyxc" if self.depthwise else "nyxcij,ijco->nyxo"
        sums = np.einsum(equation, self.columns(x), self.weight, optimize=True)
        return np.maximum(sums + self.bias, 0).astype(np.float32)

    def backward(self, x: Array, y: Array, dy: Array) -> tuple[Array, Array, Array]:
        """Return the gradients of weight, bias and x, from the activations y and their gradient."""
        dy = dy * (y > 0)
        equation = "nyxcij,nyxc->ijc" if self.depthwise else "nyxcij,nyxo->ijco"
        d_weight = np.einsum(equation, self.columns(x), dy, optimize=True)
        return d_weight, dy.sum(axis=(0, 1, 2)), self._backward_input(x.shape, dy)

    def _backward_input(self, shape: tuple[int, ...], dy: Array) -> Array:
        size, stride = self.weight.shape[0], self.stride
        before, after = same_padding(shape[1], size, stride)
        side = shape[1] + before + after
        padded = np.zeros((shape[0], side, side, shape[3]), np.float32)
        for i in range(size):
            for j in range(size):
                taps = self.weight[i, j]
                part = dy * taps if self.depthwise else dy @ taps.T
                rows = slice(i, i + stride * dy.shape[1], stride)
                padded[:, rows, j : j + stride * dy.shape[2] : stride] += part
        return padded[:, before : side - after, before : side - after]


@dataclass(frozen=True, slots=True)
class Network:
    """Convolutions, one 2x2 maximum pooling, one dense layer that gives scores [N, 10]."""

    convolutions: tuple[Convolution, ...]
    dense_weight: Array
    dense_bias: Array

    def activations(self, x: Array) -> list[Array]:
        """Return the images, every layer's output in order, and the scores last."""
        values = [x]
        for layer in self.convolutions:
            values.append(layer.forward(values[-1]))
        pooled = pool(values[-1])
        scores = pooled.reshape(len(x), -1) @ self.dense_weight + self.dense_bias
        return [*values, pooled, scores]

    def classify(self, x: Array) -> Labels:
        """Return the digit of every image."""
        return self.activations(x)[-1].argmax(axis=1)

    def parameters(self) -> list[Array]:
        """Return every array that training changes, in the order of `gradients`."""
        layers = [array for layer in self.convolutions for array in (layer.weight, layer.bias)]
        return [*layers, self.dense_weight, self.dense_bias]

    def gradients(self, x: Array, labels: Labels) -> list[Array]:
        """Return the gradients of the mean cross-entropy of a batch."""
        values = self.activations(x)
        *values, last, pooled, scores = values
        d_scores = softmax(scores)
        d_scores[np.arange(len(x)), labels] -= 1
        d_scores /= len(x)
        flat = pooled.reshape(len(x), -1)
        found = [flat.T @ d_scores, d_scores.sum(axis=0)]
        d_pooled = (d_scores @ self.dense_weight.T).reshape(pooled.shape)
        y, dy = last, pool_backward(last, pooled, d_pooled)
        for layer, before in zip(reversed(self.convolutions), reversed(values), strict=True):
            d_weight, d_bias, dy_before = layer.backward(before, y, dy)
            found = [d_weight, d_bias, *found]
            y, dy = before, dy_before
        return found


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Return TFLite's SAME padding before and after an axis of `size` elements."""
    outputs = -(-size // stride)
    total = max((outputs - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


def pool(x: Array) -> Array:
    """Return the maximum of each 2x2 square, [N, H/2, W/2, C] of [N, H, W, C]."""
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c).max(axis=(2, 4))


def pool_backward(x: Array, y: Array, dy: Array) -> Array:
    """Return the gradient of x: every maximum of its square gets the square's gradient."""
    up = np.ones((1, 2, 2, 1), np.float32)
    return np.kron(dy, up) * (x == np.kron(y, up))


def softmax(scores: Array) -> Array:
    """Return probabilities [N, 10] of scores [N, 10]."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def make_network(seed: int) -> Network:
    """Make an untrained network: two convolutions, a depthwise one, a pointwise one, dense."""
    random = np.random.default_rng(seed)

    def weights(*shape: int, inputs: int) -> Array:
        return (random.standard_normal(shape) * np.sqrt(2 / inputs)).astype(np.float32)

    def bias(size: int) -> Array:
        return np.zeros(size, np.float32)

    convolutions = (
        Convolution(weights(3, 3, 1, 16, inputs=9), bias(16)),
        Convolution(weights(3, 3, 16, 32, inputs=144), bias(32), stride=2),
        Convolution(weights(3, 3, 32, inputs=9), bias(32)),
        Convolution(weights(1, 1, 32, 32, inputs=32), bias(32)),
    )
    return Network(convolutions, weights(128, CLASSES, inputs=128), bias(CLASSES))


def shifted(images: Array, random: np.random.Generator) -> Array:
    """Return the images, each moved by up to one pixel to a side: a digit stays the same digit."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    n, h, w, _ = images.shape
    dy, dx = random.choice(3, (2, n), p=(0.15, 0.7, 0.15))
    rows = (np.arange(h) + dy[:, None])[:, :, None]
    return padded[np.arange(n)[:, None, None], rows, (np.arange(w) + dx[:, None])[:, None, :]]


def train(
    network: Network, images: Array, labels: Labels, *, epochs: int = 30, seed: int = 1
) -> None:
    """Train in place with Adam on batches of 32, the step falling to zero in a line."""
    random = np.random.default_rng(seed)
    parameters = network.parameters()
    means = [np.zeros_like(array) for array in parameters]
    squares = [np.zeros_like(array) for array in parameters]
    batches = [
        batch
        for _ in range(epochs)
        for batch in np.array_split(random.permutation(len(images)), len(images) // 32)
    ]
    for step, batch in enumerate(batches, start=1):
        rate = 0.004 * (1 - (step - 1) / len(batches))
        gradients = network.gradients(shifted(images[batch], random), labels[batch])
        for array, gradient, mean, square in zip(
            parameters, gradients, means, squares, strict=True
        ):
            mean[...] += 0.1 * (gradient - mean)
            square[...] += 0.001 * (gradient**2 - square)
            corrected = np.sqrt(square / (1 - 0.999**step)) + 1e-8
            array[...] -= rate * (mean / (1 - 0.9**step)) / corrected
