"""Checkouts of others: what is one, and what a project for a runtime takes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.boards import find_board
from mizzen.cli import export as verb
from mizzen.diagnostics import MizzenError
from mizzen.export import RUNTIMES, Request, c_project, checkouts_for
from mizzen.package.firmware import write_project
from mizzen.package.tflite.builder import NetworkBuilder

CLONE = (
    "  help git clone https://gitlab.arm.com/artificial-intelligence/ethos-u/ethos-u-core-driver, "
    "and give that folder as --driver"
)


def driver(folder: Path) -> Path:
    """Return a folder that looks like the driver's."""
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "ethosu_driver.c").write_text("")
    return folder


def test_the_command_line_has_the_names_of_all_runtimes_and_checkouts() -> None:
    assert tuple(RUNTIMES) == verb.RUNTIMES
    taken = {row.variable.lower() for runtime in RUNTIMES.values() for row in runtime.checkouts}
    assert set(verb.CHECKOUTS) == taken


def test_a_folder_without_the_driver_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MizzenError) as caught:
        checkouts_for("c", {"driver": str(tmp_path)})
    assert str(caught.value) == (
        "error[E469]: --driver must name a checkout of ethos-u-core-driver, and "
        f"{tmp_path} has no src/ethosu_driver.c\n{CLONE}"
    )
    with pytest.raises(MizzenError) as caught:
        checkouts_for("c", {"driver": str(tmp_path / "none")})
    assert str(caught.value) == (
        "error[E469]: --driver must name a checkout of ethos-u-core-driver, and "
        f"{tmp_path / 'none'} is no folder\n{CLONE}"
    )


def test_a_folder_that_make_cannot_name_is_refused(tmp_path: Path) -> None:
    folder = driver(tmp_path / "two\nlines")
    with pytest.raises(MizzenError) as caught:
        checkouts_for("c", {"driver": str(folder)})
    assert str(caught.value) == (
        f"error[E469]: --driver must name a folder that make can name, and {str(folder)!r} has "
        "characters that are not printed\n"
        "  help rename the folder, or reach it through a link"
    )


def test_paths_are_absolute_and_go_into_the_settings(tmp_path: Path) -> None:
    folder = driver(tmp_path / "a #b $c")
    checkouts = checkouts_for("c", {"driver": str(folder / ".." / "a #b $c")})
    assert checkouts == {"DRIVER": str(folder)}
    net = NetworkBuilder()
    x, q = net.tensor("x", (1, 4), np.float32), net.tensor("q", (1, 4), np.int8, 0.5, 3)
    net.operator("QUANTIZE", [x], [q], ("QuantizeOptions", {}))
    artifact = mizzen.compile(net.finish([x], [q]), accelerator="ethos-u55-128")
    files = c_project(artifact, Request(find_board("corstone300"), checkouts=checkouts)).files
    assert f"set(MODEL_DRIVER [[{folder}]])\n".encode() in files["model.cmake"]
    write_project(files, tmp_path / "project")
    show = tmp_path / "show.mk"
    show.write_text("include model.mk\nshow:\n\t@echo '$(DRIVER)'\n")
    said = subprocess.run(
        ["make", "-s", "-C", str(tmp_path / "project"), "-f", str(show), "show"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert said == f"{folder}\n"


def test_make_says_what_a_wrong_checkout_lacks(tmp_path: Path) -> None:
    digits = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite"
    artifact = mizzen.compile(digits, accelerator="ethos-u55-128", prove="off")
    write_project(c_project(artifact, Request(find_board("corstone300"))).files, tmp_path)
    done = subprocess.run(
        ["make", "-C", str(tmp_path), f"DRIVER={tmp_path}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert (
        f"DRIVER={tmp_path} must name a checkout of ethos-u-core-driver: there is no "
        "src/ethosu_driver.c in it" in done.stderr
    )


def test_what_is_there_already_is_left_alone(tmp_path: Path) -> None:
    write_project({"a": b"1", "b": b"2"}, tmp_path)
    before = (tmp_path / "a").stat().st_mtime_ns
    write_project({"a": b"1", "b": b"3"}, tmp_path)
    assert (tmp_path / "a").stat().st_mtime_ns == before
    assert (tmp_path / "b").read_bytes() == b"3"
