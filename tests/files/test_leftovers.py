"""What a killed process has left is taken away by the next, and nothing else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mizzen.files import leftovers, take_leftovers_away, temporary_folder

HOLD = """
import sys, time
from pathlib import Path
from mizzen.files.leftovers import new_name, temporary_folder
file = new_name(Path(sys.argv[1]))
file.write_bytes(b"half")
with temporary_folder(Path(sys.argv[1])) as folder:
    (folder / "dram").write_bytes(b"1")
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "lists"
    folder.mkdir()
    monkeypatch.setattr(leftovers.tempfile, "tempdir", str(folder))
    return folder


LACKING = Path(__file__).parents[1] / "platforms" / "lacking"


def started(lists: Path, folder: Path, lacks: str = "") -> subprocess.Popen[bytes]:
    path = os.pathsep.join((str(LACKING), os.environ.get("PYTHONPATH", "")))
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(lists), "PYTHONPATH": path, "MIZZEN_LACKS": lacks},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def test_the_next_start_takes_away_what_a_killed_process_left(tmp_path: Path, lists: Path) -> None:
    (work := tmp_path / "work").mkdir()
    (work / "mine").write_bytes(b"1")
    process = started(lists, work)
    take_leftovers_away()
    assert len(list(work.iterdir())) == 3, "it lives, and needs them"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert len(list(work.iterdir())) == 3
    take_leftovers_away()
    assert [path.name for path in work.iterdir()] == ["mine"]
    assert not list(lists.iterdir())


def test_what_a_process_without_locks_needs_is_left_to_it(tmp_path: Path, lists: Path) -> None:
    (work := tmp_path / "work").mkdir()
    process = started(lists, work, lacks="fcntl")
    take_leftovers_away()
    needed = list(work.iterdir())
    process.kill()
    process.communicate()
    assert len(needed) == 2


@pytest.mark.parametrize(
    "name", ["mine", "mizzen-1-0123456789abcdef", ".mizzen-1-0123456789abcdeg", ".mizzen-x-0"]
)
def test_a_list_can_name_nothing_else(tmp_path: Path, lists: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"1")
    listed = lists / f"{leftovers.LIST_START}1-0"
    listed.write_bytes(os.fsencode(tmp_path / name) + b"\0")
    listed.chmod(0o600)
    take_leftovers_away()
    assert (tmp_path / name).exists()
    assert not listed.exists()


@pytest.mark.parametrize("how", ["mode", "owner", "link"])
def test_a_list_of_others_is_left_alone(tmp_path: Path, lists: Path, how: str) -> None:
    left = tmp_path / ".mizzen-1-0123456789abcdef"
    left.write_bytes(b"1")
    listed = lists / f"{leftovers.LIST_START}1-0"
    listed.write_bytes(os.fsencode(left) + b"\0")
    listed.chmod(0o600)
    match how:
        case "mode":
            listed.chmod(0o622)
        case "owner":
            if os.geteuid() != 0:
                pytest.skip("only root can give a file away")
            os.chown(listed, 65534, 65534)
        case _:
            listed.rename(tmp_path / "elsewhere")
            listed.symlink_to(tmp_path / "elsewhere")
    take_leftovers_away()
    assert left.exists()


def test_a_folder_goes_with_its_block(tmp_path: Path, lists: Path) -> None:
    def interrupted() -> None:
        with temporary_folder(tmp_path) as folder:
            (folder / "file").write_bytes(b"1")
            assert len(list(lists.iterdir())) == 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.name for path in tmp_path.iterdir()] == ["lists"]
    assert not list(lists.iterdir())


def test_without_a_place_for_lists_folders_are_made_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers.tempfile, "gettempdir", lambda: str(tmp_path / "missing"))
    with temporary_folder(tmp_path) as folder:
        assert folder.is_dir()
    assert not folder.exists()


def test_the_folder_for_temporary_files_is_not_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "second").mkdir()
    monkeypatch.setattr(leftovers.tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    monkeypatch.setenv("TEMP", str(tmp_path / "second"))
    before = (tmp_path / "second").stat().st_mtime_ns
    assert leftovers.temporary_place() == tmp_path / "second"
    assert (tmp_path / "second").stat().st_mtime_ns == before
    assert leftovers.tempfile.gettempdir() == str(tmp_path / "second")
