"""One writer for all files: whole or not at all, whatever the place is."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from mizzen.diagnostics import MizzenError
from mizzen.files import leftovers, write_file, write_files, writing

OLD, NEW = b"old\n", b"new" * 1000
UNPRIVILEGED = 65534


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(autouse=True)
def lists(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep lists of temporary files in a folder of the test's own, which is empty in the end."""
    folder = tmp_path_factory.mktemp("lists")
    monkeypatch.setattr(leftovers.tempfile, "gettempdir", lambda: str(folder))
    return folder


def test_files_are_written_with_their_folders(tmp_path: Path, lists: Path) -> None:
    write_files({tmp_path / "a" / "b" / "one": NEW, tmp_path / "two": b""}, tmp_path / "a")
    assert (tmp_path / "a" / "b" / "one").read_bytes() == NEW
    assert (tmp_path / "two").read_bytes() == b""
    assert names(tmp_path) == ["a", "two"]
    assert names(lists) == []


def test_an_older_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(OLD)
    path.chmod(0o640)
    write_file(path, NEW)
    assert path.read_bytes() == NEW
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_mode_that_the_mask_leaves(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        write_file(tmp_path / "file", NEW)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o666 & ~mask


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "file").write_bytes(OLD)
    (tmp_path / "link").symlink_to(Path("store", "file"))
    (tmp_path / "hanging").symlink_to(Path("store", "other"))
    write_files({tmp_path / "link": NEW, tmp_path / "hanging": NEW})
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "hanging").is_symlink()
    assert (tmp_path / "store" / "file").read_bytes() == NEW
    assert (tmp_path / "store" / "other").read_bytes() == NEW
    assert names(tmp_path / "store") == ["file", "other"]


def test_another_hard_link_keeps_the_older_contents(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(OLD)
    (tmp_path / "kept").hardlink_to(tmp_path / "file")
    write_file(tmp_path / "file", NEW)
    assert (tmp_path / "kept").read_bytes() == OLD
    assert (tmp_path / "file").read_bytes() == NEW


def test_a_name_as_long_as_may_be_is_written(tmp_path: Path) -> None:
    write_file(tmp_path / ("n" * 255), NEW)
    assert (tmp_path / ("n" * 255)).read_bytes() == NEW


def test_a_device_and_a_pipe_are_written_to(tmp_path: Path) -> None:
    write_file(Path(os.devnull), NEW)
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_file(tmp_path / "pipe", NEW)
    assert os.read(reader, len(NEW) + 1) == NEW
    os.close(reader)
    assert names(tmp_path) == ["pipe"]


WRITE_TO_STDOUT = """
import sys
from pathlib import Path
from mizzen.files import write_file
print("before", flush=True)
write_file(Path("/dev/stdout"), b"page\\n")
print("after", flush=True)
"""


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="this system has no /dev/stdout")
def test_the_standard_output_is_written_to_in_order(tmp_path: Path) -> None:
    """As a pipe, and as a file of the shell's, which must stay that file."""
    words = [sys.executable, "-c", WRITE_TO_STDOUT]
    ended = subprocess.run(words, check=True, capture_output=True)
    assert ended.stdout == b"before\npage\nafter\n"
    with (tmp_path / "out").open("wb") as file:
        subprocess.run(words, check=True, stdout=file)
    assert (tmp_path / "out").read_bytes() == b"before\npage\nafter\n"


def test_a_folder_that_is_not_ours_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(MizzenError, match=r"E201.*x must be a file .*: no such file or directory"):
        write_files({tmp_path / "nowhere" / "x": NEW}, tmp_path / "ours")
    assert names(tmp_path) == []


def test_a_folder_in_a_files_place_is_said(tmp_path: Path) -> None:
    with pytest.raises(MizzenError) as caught:
        write_file(tmp_path, b"12")
    assert str(caught.value) == (
        f"error[E201]: {tmp_path} must be a file that can be written: is a directory"
    )


def test_nothing_is_touched_where_one_cannot_be_written(tmp_path: Path, lists: Path) -> None:
    (tmp_path / "one").write_bytes(OLD)
    (tmp_path / "two").mkdir()
    files = {tmp_path / "new" / "x": NEW, tmp_path / "one": NEW, tmp_path / "two": NEW}
    with pytest.raises(MizzenError, match=r"E201.*two must be a file .*: is a directory"):
        write_files(files, tmp_path / "new")
    assert (tmp_path / "one").read_bytes() == OLD
    assert names(tmp_path) == ["one", "two"]
    assert names(lists) == []


def test_a_full_disk_leaves_the_older_files(
    tmp_path: Path, lists: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every write there is: some bytes fit, then none do."""
    paths = [tmp_path / name for name in ("artifact", "report", "summary")]
    real = os.write
    for allowed in range(0, 9001, 600):
        for path in paths:
            path.write_bytes(OLD)
        left = [allowed]

        def full(handle: int, data: bytes, left: list[int] = left) -> int:
            if len(data) < 200:
                return real(handle, data)  # the list of temporary files
            if not left[0]:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written = real(handle, bytes(data)[: left[0]])
            left[0] -= written
            return written

        monkeypatch.setattr(writing.os, "write", full)
        files = dict.fromkeys(paths, NEW)
        if allowed == 9000:
            write_files(files)
        else:
            with pytest.raises(MizzenError, match=r"E207.*room for 3,000 bytes of the 9,000 of"):
                write_files(files)
        monkeypatch.setattr(writing.os, "write", real)
        assert {path.read_bytes() for path in paths} == {NEW if allowed == 9000 else OLD}
        assert names(tmp_path) == ["artifact", "report", "summary"]
        assert names(lists) == []


@pytest.fixture
def nobody() -> Generator[None]:
    """Be a user without rights to what root has; root may write anywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(UNPRIVILEGED)
    yield
    os.seteuid(0)


def open_to_all(path: Path, mode: int) -> None:
    path.chmod(mode)
    for folder in path.parents:
        if folder.owner() == path.owner() and not stat.S_IMODE(folder.stat().st_mode) & 0o001:
            folder.chmod(0o755)


def test_a_folder_without_rights_is_said(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (tmp_path / "file").write_bytes(OLD)
    (tmp_path / "file").chmod(0o666)
    open_to_all(tmp_path, 0o555)
    request.getfixturevalue("nobody")
    with pytest.raises(MizzenError, match=r"E201.*file must be .*: permission denied"):
        write_file(tmp_path / "file", NEW)
    assert (tmp_path / "file").read_bytes() == OLD


def test_a_file_that_is_protected_stays(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (tmp_path / "file").write_bytes(OLD)
    (tmp_path / "file").chmod(0o444)
    open_to_all(tmp_path, 0o777)
    request.getfixturevalue("nobody")
    with pytest.raises(MizzenError, match=r"E201.*file must be .*: permission denied"):
        write_file(tmp_path / "file", NEW)
    assert names(tmp_path) == ["file"]


def test_an_interrupt_leaves_the_older_files(
    tmp_path: Path, lists: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one").write_bytes(OLD)

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(writing.os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_files({tmp_path / "one": NEW, tmp_path / "two": NEW})
    assert (tmp_path / "one").read_bytes() == OLD
    assert names(tmp_path) == ["one"]
    assert names(lists) == []
