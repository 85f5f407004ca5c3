"""Files of samples: which reader is for which, and what folders hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mizzen.data.arrays import read_array
from mizzen.data.columns import Reader, as_inferences, expected_shape
from mizzen.data.features import FEATURES, Features, features
from mizzen.data.forms import Forms, SoundForm
from mizzen.data.front_end import FrontEnd, front_end
from mizzen.data.images import PIXEL, ImageReader, as_numbers, explained
from mizzen.data.sound import read_recording, windows
from mizzen.diagnostics import fail

if TYPE_CHECKING:
    import numpy.typing as npt

    from mizzen.artifact.interface import TensorInfo

    Array = npt.NDArray[Any]

NUMPY, RAW, SOUND = ".npy", ".bin", ".wav"
IMAGES = frozenset((".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm"))
KINDS = frozenset((NUMPY, RAW, SOUND, *IMAGES))
"""How names of files end that are samples; all others are left out."""
RAW_TYPES = ("uint8", "int8", "int16", "float32")


@dataclass(frozen=True, slots=True)
class NumpyReader:
    """Reads .npy files, each one inference or several."""

    info: TensorInfo

    def __call__(self, path: Path) -> Array:
        """Return the inferences of a file, `[k, *shape]`. E203, E246."""
        array = read_array(path)
        inferences = as_inferences(array, self.info)
        if inferences is None:
            raise fail(
                "E246",
                f"{path} must have the shape {expected_shape(self.info)} of the input "
                f"{self.info.name}, not {list(array.shape)}",
                help="N counts inferences of the sample, and need not be there",
            )
        return np.asarray(inferences)


@dataclass(frozen=True, slots=True)
class RawReader:
    """Reads files of numbers alone, little-endian.

    dtype   of the numbers
    window  width and stride, in bytes, of the inferences; None where they lie side by side
    """

    info: TensorInfo
    dtype: np.dtype[Any]
    forms: Forms
    window: tuple[int, int] | None = None

    def __call__(self, path: Path) -> Array:
        """Return the inferences of a file, `[k, *shape]`. E203, E246."""
        try:
            data = path.read_bytes()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise fail("E203", f"{path} must be a file of raw numbers: {reason}") from None
        elements = int(np.prod(self.info.shape))
        width = elements * self.dtype.itemsize
        stride = width if self.window is None else self.window[1]
        if len(data) < width or (len(data) - width) % stride:
            raise fail(
                "E246",
                f"{path} must have {width:,} bytes, {elements:,} of {self.dtype}"
                f"{_more(width, stride)}, not {len(data):,}",
                help="--raw-type says which type of numbers it has",
            )
        count = (len(data) - width) // stride + 1
        parts = [data[i * stride : i * stride + width] for i in range(count)]
        numbers = np.frombuffer(b"".join(parts), self.dtype.newbyteorder("<"))
        inferences = numbers.astype(self.dtype).reshape(count, *self.info.shape)
        if self.dtype == PIXEL and self.info.dtype != PIXEL:
            return as_numbers(inferences, self.info, self.forms.image)
        return inferences


def _more(width: int, stride: int) -> str:
    return " or a multiple" if width == stride else f" and any number of {stride:,} more"


@dataclass(frozen=True, slots=True)
class SamplesReader:
    """Reads recordings for an input that takes samples."""

    info: TensorInfo

    def __call__(self, path: Path) -> Array:
        """Return a recording's samples, `[k, *shape]`. E203."""
        return windows(path, self.info)


@dataclass(frozen=True, slots=True)
class FeaturesReader:
    """Reads recordings for an input that takes features."""

    info: TensorInfo
    kind: Features | FrontEnd

    def __call__(self, path: Path) -> Array:
        """Return a recording's features, `[k, *shape]`. E203, E255."""
        recording = read_recording(path)
        if recording.channels != 1:
            raise fail(
                "E255",
                f"a recording must have one channel, not {recording.channels}",
                help="mix its channels, or choose one",
            )
        if isinstance(self.kind, FrontEnd):
            return self.kind.features(recording, self.info)
        values = features(recording, self.kind)
        if values.shape[1] != int(np.prod(self.info.shape)):
            raise fail(
                "E255",
                f"the input {self.info.name} must take the {values.shape[1]} values of "
                f"{self.kind.value}, and has the shape {list(self.info.shape)}",
                rule=FEATURES[self.kind].source,
            )
        return values.reshape(-1, *self.info.shape)


def reader_for(
    suffix: str, info: TensorInfo, forms: Forms, window: tuple[int, int] | None = None
) -> tuple[Reader, str]:
    """Return a reader of files that end so, and what there is to say about it.

    window  width and stride, in bytes, of the inferences in raw files
    """
    if suffix == NUMPY:
        return NumpyReader(info), ""
    if suffix == RAW:
        return _raw_reader(info, forms, window)
    if suffix == SOUND:
        return _sound_reader(info, forms.sound)
    return ImageReader(info, forms.image), explained(info, forms.image)


def _raw_reader(
    info: TensorInfo, forms: Forms, window: tuple[int, int] | None
) -> tuple[Reader, str]:
    elements = int(np.prod(info.shape))
    name = forms.raw_type
    if name is None and window is not None and window[0] == 4 * elements:
        name = "float32"
    dtype = info.dtype if name is None else np.dtype(name)
    if window is not None and window[0] != elements * dtype.itemsize:
        raise fail(
            "E246",
            f"windows must have the {elements * dtype.itemsize:,} bytes of the input {info.name}, "
            f"{elements:,} of {dtype}, not {window[0]:,}",
            help="--raw-type says which type of numbers the files have",
        )
    pixels = dtype == PIXEL and info.dtype != PIXEL
    return RawReader(info, dtype, forms, window), explained(info, forms.image) if pixels else ""


def _sound_reader(info: TensorInfo, form: SoundForm) -> tuple[Reader, str]:
    if form.front_end is not None:
        network = front_end(form.front_end, form.hop)
        said = f"  {info.name}: features of {network.name}, {form.hop} samples from frame to frame"
        return FeaturesReader(info, network), said
    if form.features is not None:
        source = FEATURES[form.features].source
        return FeaturesReader(info, form.features), f"  {info.name}: features of {source}"
    return SamplesReader(info), f"  {info.name}: samples as they are, no features"


def files_in(folder: Path) -> tuple[str, ...]:
    """Return the samples in a folder and those below, by name. E240 unless they are of one kind."""
    names = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.suffix.lower() in KINDS
        and path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    kinds = Counter(kind_of(name) for name in names)
    if len(kinds) == 1:
        return tuple(names)
    counted = ", ".join(f"{number:,} {kind}" for kind, number in sorted(kinds.items()))
    raise fail(
        "E240",
        f"{folder} must hold samples of one kind, and holds {counted or 'none'}",
        help="samples are .npy, .bin, .wav, .png or .jpg files, also in sub-folders",
    )


def kind_of(name: str) -> str:
    """Return how a file's name ends; all images are of one kind."""
    suffix = Path(name).suffix.lower()
    return "image" if suffix in IMAGES else suffix


def suffix_of(names: Sequence[str]) -> str:
    """Return how the names of files of one kind end."""
    return Path(names[0]).suffix.lower()
