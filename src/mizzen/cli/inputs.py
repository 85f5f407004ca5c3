"""Arrays for an artifact's inputs, from files as people have them.

Real numbers for an input of integers are quantised with its scale and zero point, which is said;
whole numbers of a wider type are taken as the integers that they are. What does not fit is refused
with what the input takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mizzen.cli.layout import count, shape
from mizzen.diagnostics import MizzenError, fail

if TYPE_CHECKING:
    import numpy.typing as npt

    from mizzen.artifact.interface import TensorInfo

    Array = npt.NDArray[Any]

PCM_BYTES = 2
PCM_ONE = 1 << 15
"""What stands for 1.0 in 16-bit samples. Ref: RIFF WAVE, format PCM."""


def read_inputs(
    words: Sequence[str], infos: Sequence[TensorInfo], note: Callable[[str], None]
) -> list[Array]:
    """Return an array for each input, from the values of `--input`.

    note  is told what became of numbers that are not the input's own

    Raises E202 if files and inputs do not go together, E203 for a file that cannot be read, E208
    for numbers that the input has no form of.
    """
    sources = _from_archive(words[0], infos) if _is_archive(words) else _from_files(words, infos)
    return [_fitted(read(), info, note) for read, info in zip(sources, infos, strict=True)]


Source = Callable[[], "Array"]


def _is_archive(words: Sequence[str]) -> bool:
    return len(words) == 1 and words[0].lower().endswith(".npz")


def _from_archive(path: str, infos: Sequence[TensorInfo]) -> list[Source]:
    """Return the arrays of a .npz: by the inputs' names, or in order if none is one."""
    members = _archive(path)
    names = [info.name for info in infos]
    if not set(names) & set(members) and len(members) == len(names):
        return [_kept(array) for array in members.values()]
    missing = [name for name in names if name not in members]
    if missing:
        raise fail(
            "E202",
            f"{path} must have an array for each input, and has none for {', '.join(missing)}",
            help=f"its arrays are {', '.join(members) or 'none'}; {_described(infos)}",
        )
    return [_kept(members[name]) for name in names]


def _kept(array: Array) -> Source:
    return lambda: array


def _archive(path: str) -> dict[str, Array]:
    import numpy as np

    def read() -> dict[str, Array]:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            return {str(name): archive[name] for name in archive.files}

    return _read(path, read, "a NumPy archive", "numpy.savez(path, name=array)")


Read = TypeVar("Read")


def _read(path: str, read: Callable[[], Read], what: str, writer: str) -> Read:
    """Read a file of NumPy's. E203 if it is not one; `writer` is what writes one."""
    try:
        return read()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
    except Exception as error:  # a header is a Python literal, of anybody's making
        reason = f"it does not hold arrays of numbers: {error}"
    raise fail("E203", f"{path} must be {what}: {reason}", help=f"write it with {writer}")


def _from_files(words: Sequence[str], infos: Sequence[TensorInfo]) -> list[Source]:
    """Bring the files into the order of the inputs. E202 if they do not fit."""
    names = [info.name for info in infos]
    named: dict[str, str] = {}
    unnamed: list[str] = []
    for word in words:
        name, equals, path = word.partition("=")
        if equals and name in names:
            named[name] = path
        else:
            unnamed.append(word)
    waiting = iter(unnamed)
    paths = [named[name] if name in named else next(waiting, None) for name in names]
    if None in paths or next(waiting, None) is not None:
        raise _wrong_number(len(words), infos)
    return [
        _reader(path, info) for path, info in zip(paths, infos, strict=True) if path is not None
    ]


def _reader(path: str, info: TensorInfo) -> Source:
    if Path(path).suffix.lower() == ".wav":
        return lambda: _sound(path, info)
    return lambda: _array(path)


def _wrong_number(number: int, infos: Sequence[TensorInfo]) -> MizzenError:
    return fail(
        "E202",
        f"--input must give {count(len(infos), 'array')}, not {number}",
        help=_described(infos),
    )


def _described(infos: Sequence[TensorInfo]) -> str:
    return "the inputs are " + "; ".join(
        f"{info.name} {info.dtype}{shape(info.shape)}" for info in infos
    )


def _array(path: str) -> Array:
    """Read a .npy file: a map reads no more than the file has, whatever its header says."""
    import numpy as np

    def read() -> Array:
        return np.lib.format.open_memmap(path, mode="r")

    return _read(path, read, "a NumPy file", "numpy.save(path, array)")


def _sound(path: str, info: TensorInfo) -> Array:
    """Read 16-bit samples: as they are for an input of 16-bit integers, else from -1 to 1.

    E203 unless they are those of a whole number of inferences.
    """
    import math

    import numpy as np

    samples = _samples(path)
    elements = math.prod(info.shape)
    if elements == 0 or samples.size == 0 or samples.size % elements:
        raise fail(
            "E203",
            f"{path} must have a multiple of {count(elements, 'sample')} for the input "
            f"{info.name}, not {samples.size:,}",
            help="cut or pad the recording",
        )
    rows = samples.reshape(-1, *info.shape[1:] if info.shape[:1] == (1,) else info.shape)
    return rows if info.dtype == np.int16 else rows.astype(np.float32) / PCM_ONE


def _samples(path: str) -> Array:
    import wave

    import numpy as np

    try:
        with wave.open(path, "rb") as file:
            if file.getsampwidth() != PCM_BYTES:
                raise wave.Error(f"samples have {8 * file.getsampwidth()} bits")
            return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.int16)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
    except (wave.Error, EOFError, ValueError) as error:
        reason = str(error).lower() or "it ends too early"
    raise fail("E203", f"{path} must be a WAV file of 16-bit samples: {reason}")


def _fitted(array: Array, info: TensorInfo, note: Callable[[str], None]) -> Array:
    """Return an array in the type of an input; what cannot be is left for the artifact to say."""
    import numpy as np

    if array.dtype == info.dtype:
        return array
    kinds = array.dtype.kind, info.dtype.kind
    if kinds == ("f", "f"):
        note(f"  {info.name}: {array.dtype} taken as {info.dtype}")
        return array.astype(info.dtype)
    if kinds[0] in "iu" and kinds[1] in "iu":
        limits = np.iinfo(info.dtype)
        _require_range(array, int(limits.min), int(limits.max), info)
        note(f"  {info.name}: {array.dtype} taken as the integers of {info.dtype}")
        return array.astype(info.dtype)
    if kinds[0] == "f" and kinds[1] in "iu":
        return _quantized(array, info, note)
    return array


def _quantized(array: Array, info: TensorInfo, note: Callable[[str], None]) -> Array:
    """Return real numbers as integers: rounded to nearest, ties away from zero, saturated.

    Ref: TFLite's QUANTIZE.
    """
    import numpy as np

    found = info.quantization
    if found is None or len(found.scale) != 1 or not np.isfinite(array).all():
        return _refused(array, info)
    (scale,), zero = found.scale, found.zero_point[0] if found.zero_point else 0
    limits = np.iinfo(info.dtype)
    steps = array.astype(np.float64) / scale
    whole = np.trunc(steps + np.copysign(0.5, steps)) + zero
    note(f"  {info.name}: {array.dtype} quantised with scale {scale:g} and zero point {zero}")
    return np.clip(whole, limits.min, limits.max).astype(info.dtype)


def _refused(array: Array, info: TensorInfo) -> Array:
    import numpy as np

    finite = bool(np.isfinite(array).all())
    came = f"{array.dtype}" if finite else f"{array.dtype} with NaN or infinity"
    raise fail(
        "E208",
        f"input {info.name} must have {_wanted(info)}, not {came}",
        help="give integers" if finite else "give numbers that are finite",
    )


def _require_range(array: Array, low: int, high: int, info: TensorInfo) -> None:
    if array.size and (int(array.min()) < low or int(array.max()) > high):
        wrong = int(array.max()) if int(array.max()) > high else int(array.min())
        raise fail(
            "E208",
            f"input {info.name} must have {_wanted(info)}, not {wrong}",
            help="give real numbers as floats, and they are quantised",
        )


def _wanted(info: TensorInfo) -> str:
    import numpy as np

    limits = np.iinfo(info.dtype)
    text = f"{info.dtype} integers from {limits.min} to {limits.max}"
    found = info.quantization
    if found is None or len(found.scale) != 1:
        return text
    zero = found.zero_point[0] if found.zero_point else 0
    return f"{text}, of scale {found.scale[0]:g} and zero point {zero}"
