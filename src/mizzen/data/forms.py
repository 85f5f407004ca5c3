"""What may be said about files whose bytes do not say it: how they become an input's numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from mizzen.data.features import Features


class Resize(Enum):
    """How an image of another size becomes one of the input's."""

    STRETCH = "stretch"
    """To the input's width and height, whatever becomes of its proportions."""
    CROP = "crop"
    """As small as covers the input, then the middle of it."""
    FIT = "fit"
    """As large as fits into the input, black around it."""


class Channels(Enum):
    """The order of an image's channels."""

    RGB = "RGB"
    BGR = "BGR"
    GREY = "grey"


class Layout(Enum):
    """Where an input has its channels."""

    LAST = "NHWC"
    FIRST = "NCHW"


@dataclass(frozen=True, slots=True)
class ImageForm:
    """How pixels become an input's numbers.

    mean, std  of a pixel, 0 to 255, one for all channels or one for each: the input is given
               (pixel - mean) / std as a real number; None for pixels as they are
    channels   None for what the input's number of channels says
    layout     None for what the input's shape says
    """

    resize: Resize | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    channels: Channels | None = None
    layout: Layout | None = None


@dataclass(frozen=True, slots=True)
class SoundForm:
    """How a recording becomes an input's numbers.

    features   that are computed; None for the samples themselves
    front_end  TFLite network that computes them, of a frame of samples at a time
    hop        samples from one of its frames to the next
    """

    features: Features | None = None
    front_end: Path | None = None
    hop: int = 320


@dataclass(frozen=True, slots=True)
class Forms:
    """How files of each kind are read.

    raw_type  type of the elements of .bin files; None for the input's
    """

    image: ImageForm = field(default_factory=ImageForm)
    sound: SoundForm = field(default_factory=SoundForm)
    raw_type: str | None = None
