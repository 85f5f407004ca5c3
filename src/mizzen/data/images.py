"""Images: PNG, JPEG and what else Pillow reads, as an input's numbers."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mizzen.artifact.fitting import scale_of
from mizzen.data.forms import Channels, ImageForm, Layout, Resize
from mizzen.diagnostics import fail, install_extra

if TYPE_CHECKING:
    import numpy.typing as npt

    from mizzen.artifact.interface import TensorInfo

    Array = npt.NDArray[Any]

WHITE = 255
PIXEL = np.dtype(np.uint8)
CHANNELS = {1: Channels.GREY, 3: Channels.RGB}
MODES = {Channels.GREY: "L", Channels.RGB: "RGB", Channels.BGR: "RGB"}
FORMATS = ("PNG", "JPEG", "BMP", "PPM")
"""Those of the names; Pillow would start a program for others, whatever a file is called."""
MOST_SIDE, MOST_PIXELS = 1 << 15, 1 << 26
"""Of an image that is read; a small file may say that it has many more."""
EIGHT_BITS = frozenset(("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBa", "La", "CMYK", "YCbCr"))
"""Modes whose channels have at most 8 bits. Ref: Pillow, Handbook, Concepts, Modes."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """What images of an input are like."""

    height: int
    width: int
    channels: Channels
    layout: Layout


@dataclass(frozen=True, slots=True)
class ImageReader:
    """Reads images for an input.

    The mean and the deviation go by the channels' order in the input.
    """

    info: TensorInfo
    form: ImageForm

    def __call__(self, path: Path) -> Array:
        """Return an image as one inference, `[1, *shape]`. E245, E246, E249."""
        geometry = geometry_of(self.info, self.form)
        pixels = _decoded(path, geometry, self.form.resize)
        if geometry.channels is Channels.BGR:
            pixels = pixels[..., ::-1]
        numbers = as_numbers(pixels, self.info, self.form)
        if geometry.layout is Layout.FIRST:
            numbers = np.moveaxis(numbers, -1, 0)
        return numbers.reshape(1, *self.info.shape)


def geometry_of(info: TensorInfo, form: ImageForm) -> Geometry:
    """Return the geometry of an input's images. E246 for an input that takes none."""
    shape = info.shape[1:] if len(info.shape) == 4 and info.shape[0] == 1 else info.shape
    layout = form.layout
    if layout is None:
        first = len(shape) == 3 and shape[0] in CHANNELS and shape[2] not in CHANNELS
        layout = Layout.FIRST if first else Layout.LAST
    number = shape[0 if layout is Layout.FIRST else -1] if len(shape) == 3 else 0
    if number not in CHANNELS:
        raise fail(
            "E246",
            f"the input {info.name} must have the shape of an image, one or three channels last "
            f"or, with --layout NCHW, first, not {list(info.shape)}",
            help="give it arrays, .npy or .bin",
        )
    channels = form.channels or CHANNELS[number]
    if (channels is Channels.GREY) != (number == 1):
        raise fail(
            "E246",
            f"the input {info.name} must take {channels.value} images, and has {number} "
            f"{'channel' if number == 1 else 'channels'}",
        )
    axis = 1 if layout is Layout.FIRST else 0
    return Geometry(shape[axis], shape[axis + 1], channels, layout)


def _decoded(path: Path, geometry: Geometry, resize: Resize | None) -> Array:
    """Return pixels `[height, width, channels]`, uint8, red first."""
    pillow = _pillow()
    try:
        with pillow.open(path, formats=FORMATS) as image:
            if max(image.size) > MOST_SIDE or image.width * image.height > MOST_PIXELS:
                raise ValueError(f"it has {image.width} x {image.height} pixels")
            image.load()
            if image.mode not in EIGHT_BITS:
                raise ValueError(f"its pixels are of mode {image.mode}, not of 8 bits a channel")
            converted = image.convert(MODES[geometry.channels])
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
    except Exception as error:  # a decoder may find anything in a damaged file
        reason = str(error) or type(error).__name__
    else:
        sized = _sized(pillow, converted, geometry, resize, path)
        return np.asarray(sized, PIXEL).reshape(geometry.height, geometry.width, -1)
    raise fail("E245", f"{path} must be an image that can be read: {reason}")


def _pillow() -> Any:
    try:
        return import_module("PIL.Image")
    except ImportError as error:
        raise fail(
            "E249",
            "the package pillow must be installed to read images, and is not",
            help=install_extra("images"),
        ) from error


def _sized(pillow: Any, image: Any, geometry: Geometry, resize: Resize | None, path: Path) -> Any:
    """Return an image of the input's size. E246 if it has another and it is not said how."""
    wanted = geometry.width, geometry.height
    if image.size == wanted:
        return image
    bilinear = pillow.Resampling.BILINEAR
    match resize:
        case None:
            raise fail(
                "E246",
                f"{path} must be of {wanted[0]} x {wanted[1]} pixels, as the input is, not of "
                f"{image.size[0]} x {image.size[1]}",
                help="--resize says how it becomes that: stretch, crop or fit",
            )
        case Resize.STRETCH:
            return image.resize(wanted, bilinear)
        case Resize.CROP:
            sized = image.resize(_scaled(image.size, wanted, max, path), bilinear)
            left, top = ((have - want) // 2 for have, want in zip(sized.size, wanted, strict=True))
            return sized.crop((left, top, left + wanted[0], top + wanted[1]))
        case Resize.FIT:
            sized = image.resize(_scaled(image.size, wanted, min, path), bilinear)
            left, top = ((want - have) // 2 for have, want in zip(sized.size, wanted, strict=True))
            canvas = pillow.new(image.mode, wanted)
            canvas.paste(sized, (left, top))
            return canvas


def _scaled(
    size: tuple[int, int], wanted: tuple[int, int], choose: Any, path: Path
) -> tuple[int, int]:
    """Return a size of the same proportions that covers another (`max`), or fits in it (`min`).

    E246 for a strip that would have too many pixels.
    """
    factor = choose(want / have for want, have in zip(wanted, size, strict=True))
    width, height = (max(1, round(have * factor)) for have in size)
    if width * height > MOST_PIXELS:
        raise fail(
            "E246",
            f"{path} must have proportions nearer to {wanted[0]} x {wanted[1]} pixels than "
            f"{size[0]} x {size[1]}",
        )
    return width, height


def as_numbers(pixels: Array, info: TensorInfo, form: ImageForm) -> Array:
    """Return pixels, channels last, as an input's numbers: its integers, or real numbers."""
    if form.mean is None and form.std is None:
        if info.dtype == np.int8:
            return (pixels ^ 0x80).view(np.int8)
        return pixels if info.dtype == PIXEL else pixels.astype(np.float32) / np.float32(WHITE)
    mean = np.asarray(form.mean or (0.0,), np.float32)
    return (pixels.astype(np.float32) - mean) / np.asarray(form.std or (1.0,), np.float32)


def explained(info: TensorInfo, form: ImageForm) -> str:
    """Say how pixels become an input's numbers. E257 for a mean or a deviation of another kind."""
    if form.mean is not None or form.std is not None:
        _require_pixels(info, form)
        mean, std = (_shown(values) for values in (form.mean or (0.0,), form.std or (1.0,)))
        return f"  {info.name}: pixels taken as (pixel - {mean}) / {std}"
    if info.dtype not in (PIXEL, np.dtype(np.int8)):
        return f"  {info.name}: pixels taken as pixel / {WHITE}"
    low = np.iinfo(info.dtype).min
    text = f"  {info.name}: pixels 0 to {WHITE} taken as {info.dtype} {low} to {low + WHITE}"
    grid = scale_of(info)
    if grid is None:
        return text
    ends = (grid[0] * (low + end - grid[1]) for end in (0, WHITE))
    return f"{text}, which are {' to '.join(f'{end:.3g}' for end in ends)}"


def _require_pixels(info: TensorInfo, form: ImageForm) -> None:
    number = 1 if geometry_of(info, form).channels is Channels.GREY else 3
    for name, values in (("--mean", form.mean), ("--std", form.std)):
        if values is not None and len(values) not in (1, number):
            raise fail(
                "E257", f"{name} must have 1 value or {number}, as channels, not {len(values)}"
            )
    if form.std is not None and min(form.std) < 1.0:
        raise fail(
            "E257",
            f"--std must be that of pixels from 0 to {WHITE}, at least 1, not {_shown(form.std)}",
            help=f"multiply a mean and a deviation of pixels from 0 to 1 by {WHITE}: 0.485 is "
            "123.675",
        )


def _shown(values: tuple[float, ...]) -> str:
    text = ", ".join(f"{value:g}" for value in values)
    return text if len(values) == 1 else f"[{text}]"
