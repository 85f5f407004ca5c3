"""Arrays for an artifact's inputs, from files as people have them.

Real numbers for an input of integers are quantised with its scale and zero point, which is said;
whole numbers of a wider type are taken as the integers that they are. What does not fit is refused
with what the input takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mizzen.cli.layout import count, shape
from mizzen.diagnostics import MizzenError, fail

if TYPE_CHECKING:
    import numpy.typing as npt

    from mizzen.artifact.interface import TensorInfo
    from mizzen.data.forms import Forms

    Array = npt.NDArray[Any]


def read_inputs(
    words: Sequence[str],
    infos: Sequence[TensorInfo],
    note: Callable[[str], None],
    forms: Forms | None = None,
) -> list[Array]:
    """Return an array for each input, from the values of `--input`.

    note   is told what became of numbers that are not the input's own
    forms  how images, recordings and raw files are read

    Raises E202 if files and inputs do not go together, E203 for a file that cannot be read, E208
    for numbers that the input has no form of, E24x to E257 for images, recordings and folders.
    """
    from mizzen.artifact.fitting import fitted

    if _is_archive(words):
        sources = _from_archive(words[0], infos)
    else:
        sources = _from_files(words, infos, note, forms)
    return [fitted(read(), info, note) for read, info in zip(sources, infos, strict=True)]


Source = Callable[[], "Array"]


def _is_archive(words: Sequence[str]) -> bool:
    return len(words) == 1 and words[0].lower().endswith(".npz")


def _from_archive(path: str, infos: Sequence[TensorInfo]) -> list[Source]:
    """Return the arrays of a .npz: by the inputs' names, or in order if none is one."""
    from mizzen.data.arrays import read_archive

    members = read_archive(path)
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


def _from_files(
    words: Sequence[str],
    infos: Sequence[TensorInfo],
    note: Callable[[str], None],
    forms: Forms | None,
) -> list[Source]:
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
        _reader(path, info, note, forms)
        for path, info in zip(paths, infos, strict=True)
        if path is not None
    ]


def _reader(
    path: str, info: TensorInfo, note: Callable[[str], None], forms: Forms | None
) -> Source:
    from mizzen.data.arrays import read_array
    from mizzen.data.files import KINDS, NUMPY
    from mizzen.data.opening import files_at

    kind = Path(path).suffix.lower()
    if not Path(path).is_dir() and (kind == NUMPY or kind not in KINDS):
        return lambda: read_array(path)

    def read() -> Array:
        import numpy as np

        files = files_at(Path(path), info, forms)
        for said in files.notes:
            note(said)
        return merged(np.concatenate(files.column.read()), info)

    return read


def merged(inferences: Array, info: TensorInfo) -> Array:
    """Return inferences `[N, *shape]` in the form of an input whose first extent, 1, is N."""
    return inferences.reshape(-1, *info.shape[1:]) if info.shape[:1] == (1,) else inferences


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
