"""The input of a kernel: loaded, upscaled, padded, seen through the sliding window."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from mizzen.targets.ethos_u.judge.sim.memory import MapView, Workspace
from mizzen.targets.ethos_u.judge.sim.operations import Kernel, Upscale

Array = npt.NDArray[Any]


class PaddedInput:
    """Loads images of a feature map as `[n, height, width, C]` of `dtype`, padding included.

    `extent` is the height and width that the window slides over, after upscaling and without
    padding. Elements have `zero_point` subtracted; padding then has the value `padding`.
    """

    def __init__(
        self,
        view: MapView,
        zero_point: int,
        kernel: Kernel,
        upscale: Upscale,
        extent: tuple[int, int],
        dtype: npt.DTypeLike,
        workspace: Workspace,
        padding: int = 0,
    ) -> None:
        self._view = view
        self._dtype = np.dtype(dtype)
        self._workspace = workspace
        self._padding = padding
        self._upscale = upscale
        self._zero_point = zero_point
        self._depth = view.shape[2]
        self._top, self._left = kernel.pad_top, kernel.pad_left
        self._inner = extent
        self.height = kernel.pad_top + extent[0] + kernel.pad_bottom
        self.width = kernel.pad_left + extent[1] + kernel.pad_right

    def load(self, start: int, stop: int) -> Array:
        """Return images `start:stop`; the array is the workspace's, valid until the next load."""
        images = self._view.load(start, stop)
        shape = (stop - start, self.height, self.width, self._depth)
        padded = self._workspace.take("padded", shape, self._dtype)
        inner = self._inner_of(padded)
        if inner.shape != padded.shape:
            self._fill_border(padded)
        match self._upscale:
            case Upscale.NONE:
                self._convert(images, inner)
            case Upscale.NEAREST:
                for y in range(2):
                    for x in range(2):
                        part = inner[:, y::2, x::2]
                        self._convert(images[:, : part.shape[1], : part.shape[2]], part)
            case Upscale.ZEROS:
                inner[...] = 0
                part = inner[:, ::2, ::2]
                self._convert(images[:, : part.shape[1], : part.shape[2]], part)
        return padded

    def _inner_of(self, padded: Array) -> Array:
        height, width = self._inner
        return padded[:, self._top : self._top + height, self._left : self._left + width]

    def _convert(self, images: Array, target: Array) -> None:
        np.copyto(target, images, casting="unsafe")
        if self._zero_point:
            np.subtract(target, self._zero_point, out=target)

    def _fill_border(self, padded: Array) -> None:
        bottom, right = self._top + self._inner[0], self._left + self._inner[1]
        padded[:, : self._top] = self._padding
        padded[:, bottom:] = self._padding
        padded[:, self._top : bottom, : self._left] = self._padding
        padded[:, self._top : bottom, right:] = self._padding


def extent(kernel: Kernel, height: int, width: int) -> tuple[int, int]:
    """Rows and columns that the window slides over for an output of `height` x `width`."""
    lines = (height - 1) * kernel.stride_y + kernel.dilated_height
    columns = (width - 1) * kernel.stride_x + kernel.dilated_width
    return (
        lines - kernel.pad_top - kernel.pad_bottom,
        columns - kernel.pad_left - kernel.pad_right,
    )


def windows(padded: Array, kernel: Kernel, height: int, width: int) -> Array:
    """View `padded` `[n, H, W, C]` as windows `[n, height, width, kh, kw, C]`, without a copy."""
    n, _, _, depth = padded.shape
    batch, row_bytes, column, element = padded.strides
    return as_strided(
        padded,
        (n, height, width, kernel.height, kernel.width, depth),
        (
            batch,
            row_bytes * kernel.stride_y,
            column * kernel.stride_x,
            row_bytes * kernel.dilation_y,
            column * kernel.dilation_x,
            element,
        ),
        writeable=False,
    )


def images_per_block(elements_per_image: int, budget: int = 1 << 15) -> int:
    """How many images to take at once so that a block of `budget` elements stays in the cache."""
    return max(1, budget // max(1, elements_per_image))
