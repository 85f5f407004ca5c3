"""Which files of a folder are evaluated, and their labels: by a CSV file, or by sub-folders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mizzen.data.labels import Labels, Row, labels_of, read_labels, read_rows
from mizzen.diagnostics import MizzenError, fail

USUAL = ("y_labels.csv", "labels.csv")
"""Labels in a folder of samples if it is not said where they are, in this order."""


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """Files in the order of their labels.

    window  width and stride of raw files' inferences, in bytes
    """

    names: tuple[str, ...]
    labels: Labels | None = None
    window: tuple[int, int] | None = None
    notes: tuple[str, ...] = ()


def listed(
    folder: Path, names: tuple[str, ...], labels: str | Path | None, classes: Sequence[str]
) -> Listed:
    """Return the files that have labels, or all where there are no labels.

    Raises E241 for files without a label or labels without a file, E242 for other numbers of
    labels, E243 and E244 for labels that are none.
    """
    path = _labels_path(folder, labels)
    if path is None:
        return _by_folder(folder, names, classes)
    said = () if labels is not None else (f"  labels: {path}",)
    if path.suffix.lower() == ".npy":
        return _in_order(names, read_labels(path, classes), path)
    entries = read_rows(path)
    if not entries[0].file:
        read = labels_of([entry.label for entry in entries], classes, str(path))
        return _in_order(names, read, path)
    read = labels_of([entry.label for entry in entries], classes, str(path))
    chosen = _named(folder, names, entries, path)
    left = len(set(names) - set(chosen))
    files = "file" if left == 1 else "files"
    more = (f"  {path.name} has no label for {left:,} {files}, left out",) if left else ()
    return Listed(chosen, read, _window(entries, path), (*said, *more))


def _labels_path(folder: Path, labels: str | Path | None) -> Path | None:
    if labels is None:
        return next((folder / name for name in USUAL if (folder / name).is_file()), None)
    path = Path(labels)
    if path.is_file():
        return path
    raise fail("E241", f"{path} must be a file of labels, and is not there")


def _in_order(names: tuple[str, ...], labels: Labels, path: Path) -> Listed:
    if len(labels.values) != len(names):
        raise fail(
            "E242",
            f"{path} must have a label for each of the {len(names):,} files, not "
            f"{len(labels.values):,}",
            help="write file,label in each line, so that nothing depends on an order",
        )
    return Listed(names, labels, notes=(f"  {path.name}: labels in the order of the names",))


def _named(
    folder: Path, names: tuple[str, ...], entries: Sequence[Row], path: Path
) -> tuple[str, ...]:
    """Return the files that rows name: by path, by name alone, or by name without its ending."""
    whole = set(names)
    by_name = _unique(names, lambda name: PurePosixPath(name).name)
    by_stem = _unique(names, lambda name: PurePosixPath(name).stem)
    chosen: list[str] = []
    for entry in entries:
        file = PurePosixPath(entry.file.replace("\\", "/"))
        text = file.as_posix()
        match = text if text in whole else by_name.get(file.name) or by_stem.get(file.stem)
        if match is None:
            raise _absent(folder, entries, chosen, path, entry)
        chosen.append(match)
    return tuple(chosen)


def _unique(names: Sequence[str], key: Callable[[str], str]) -> dict[str, str]:
    """Return names by a key of theirs that no other has."""
    by_key: dict[str, str | None] = {}
    for name in names:
        by_key[key(name)] = None if key(name) in by_key else name
    return {each: name for each, name in by_key.items() if name is not None}


def _absent(
    folder: Path, entries: Sequence[Row], chosen: Sequence[str], path: Path, entry: Row
) -> MizzenError:
    return fail(
        "E241",
        f"{folder} must have the {len(entries):,} files that {path} names, and has not "
        f"{entry.file} (row {len(chosen) + 1})",
        help="names are those in the folder, with or without sub-folders and endings",
    )


def _window(entries: Sequence[Row], path: Path) -> tuple[int, int] | None:
    windows = {entry.window for entry in entries}
    if len(windows) > 1:
        raise fail("E243", f"{path} must give all files windows of one width and stride")
    return windows.pop()


def _by_folder(folder: Path, names: tuple[str, ...], classes: Sequence[str]) -> Listed:
    """Return labels that are the names of sub-folders, where all files are in one."""
    parts = [PurePosixPath(name).parts for name in names]
    if not all(len(part) > 1 for part in parts):
        return Listed(names)
    labels = labels_of([part[0] for part in parts], classes, str(folder))
    if not labels.classes:
        return Listed(names, labels)
    shown = ", ".join(f"{i} {name}" for i, name in enumerate(labels.classes))
    return Listed(names, labels, notes=(f"  classes: {shown}",))
