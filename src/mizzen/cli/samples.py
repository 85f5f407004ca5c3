"""The options that say how files of samples become an input's numbers, shared by the verbs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.cli.configuration import positive_number

if TYPE_CHECKING:
    from mizzen.data.forms import Forms

FRONT_END_HOP = 320


def add_form_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for images, sound and raw files."""
    group = parser.add_argument_group("how files are read")
    group.add_argument(
        "--resize",
        choices=("stretch", "crop", "fit"),
        help="images of another size: stretched, cropped to cover, or fitted with black borders, "
        "all bilinear (default: refused)",
    )
    group.add_argument(
        "--mean",
        metavar="M[,M,M]",
        type=numbers,
        help="images: (pixel - mean) / std is quantised as the input is, for pixels from 0 to 255 "
        "(default: pixels are the 8-bit integers of the input, else pixel / 255)",
    )
    group.add_argument("--std", metavar="S[,S,S]", type=numbers, help="see --mean")
    group.add_argument(
        "--channels",
        choices=("RGB", "BGR", "grey"),
        help="images: the order of the input's channels (default: RGB, or grey for one)",
    )
    group.add_argument(
        "--layout",
        choices=("NHWC", "NCHW"),
        help="images: layout of the input (default: by its shape)",
    )
    group.add_argument(
        "--features",
        choices=("mlperf-kws", "mlperf-anomaly"),
        help="recordings: MFCC or mel spectra as MLPerf Tiny's networks take them (default: the "
        "samples)",
    )
    group.add_argument(
        "--front-end",
        metavar="NET.tflite",
        help="recordings: a network that computes the features of one frame of 16-bit samples at a"
        " time",
    )
    group.add_argument(
        "--hop",
        metavar="SAMPLES",
        type=positive_number,
        default=FRONT_END_HOP,
        help="recordings: samples from one frame of the front-end to the next (default: "
        "%(default)s)",
    )
    group.add_argument(
        "--raw-type",
        choices=("uint8", "int8", "int16", "float32"),
        help="type of the numbers in .bin files, little-endian; uint8 for an input of another type"
        " means pixels (default: the input's type)",
    )


def numbers(text: str) -> tuple[float, ...]:
    """Read real numbers separated by commas."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"numbers separated by commas are needed, not {text!r}"
        ) from None


def forms_of(options: argparse.Namespace) -> Forms:
    """Return the forms of samples, of the options."""
    from mizzen.data.features import Features
    from mizzen.data.forms import Channels, Forms, ImageForm, Layout, Resize, SoundForm

    image = ImageForm(
        None if options.resize is None else Resize(options.resize),
        options.mean,
        options.std,
        None if options.channels is None else Channels(options.channels),
        None if options.layout is None else Layout(options.layout),
    )
    sound = SoundForm(
        None if options.features is None else Features(options.features),
        None if options.front_end is None else Path(options.front_end),
        options.hop,
    )
    return Forms(image, sound, options.raw_type)
