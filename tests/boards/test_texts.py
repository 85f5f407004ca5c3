"""Every text of a board's file that goes into a project: refused, or plain where it arrives.

The places are all texts of a whole file, and those that it may have besides.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.boards import find_board, reading
from mizzen.boards.file_format import SdkKeys
from mizzen.diagnostics import Diagnostic, MizzenError
from mizzen.documents.checking import keys_of
from mizzen.export import RUNTIMES, Request
from mizzen.package.firmware import write_project

TEXT = (reading.FOLDER / "corstone300.toml").read_text()
VALUES: dict[str, Any] = tomllib.loads(TEXT)

HOSTILE = (
    "cortex-m55 -fplugin=/tmp/pwn.so $(shell touch PWNED)",
    "$(shell touch PWNED)", "`touch PWNED`", "${PWNED}", "$(error PWNED)", "x; touch PWNED",
    "x && touch PWNED #", "x | touch PWNED", "x\n\ttouch PWNED", "x\\", "x#", "a b", "-wrapper",
    "--specs=PWNED", "@PWNED", "*/ PWNED /*", "*/\n#include </etc/passwd>\n/*", "??/", '"',
    '" PWNED "', "'", "\\x", "%s", "{PWNED}", "} > SRAM\nINCLUDE PWNED", "INCLUDE PWNED",
    "]==] PWNED", "]]", "[[PWNED", "a;b", "<PWNED>", "../PWNED", "/etc/passwd", "x,dumpdtb=PWNED",
    "\x1b[2J", "\u202ePWNED", "\x00", "x" * 10_000, "", " ", "é\u200b", "ORIGIN", "=PWNED",
)  # fmt: skip
PLAIN = re.compile(r"^[\w .,:+\-/()]*$")


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the way to each text of a file."""
    match value:
        case dict():
            for key, each in value.items():
                yield from places(each, (*path, key))
        case list():
            for index, each in enumerate(value):
                yield from places(each, (*path, index))
        case str():
            yield path
        case _:
            return


def written(value: Any) -> str:
    """Return a value in TOML; texts have every character as its number."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return '"' + "".join(f"\\U{ord(each):08x}" for each in value) + '"'
        case list():
            return "[" + ", ".join(map(written, value)) + "]"
        case dict():
            return "{" + ", ".join(f"{key} = {written(each)}" for key, each in value.items()) + "}"
        case _:
            return str(value)


def with_text(path: tuple[Any, ...], text: str) -> str:
    """Return the board's file with another text at a place."""
    copy: Any = tomllib.loads(TEXT)
    copy["cpu"].setdefault("qemu", "mps3-an547")
    copy["npu"] |= {"driver": "0.16", "accelerators": ["ethos-u55-128"]}
    *way, last = path
    table = copy
    for key in way:
        table = table[key]
    table[last] = text
    return "\n".join(f"{key} = {written(value)}" for key, value in copy.items())


PATHS = (*places(VALUES), ("npu", "driver"), ("npu", "accelerators", 0), ("inherits",))


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    path = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite"
    options = {"generator": "vela"}
    return mizzen.compile(path, accelerator="ethos-u55-128", target_options=options, prove="off")


def project_of(artifact: Artifact, path: Path) -> Mapping[str, bytes]:
    request = Request(find_board(str(path)), "Shared_Sram")
    return RUNTIMES["c"].project(artifact, request).files


def project_or_refusal(artifact: Artifact, path: Path) -> Mapping[str, bytes] | Diagnostic:
    try:
        return project_of(artifact, path)
    except MizzenError as error:
        return error.diagnostic


@pytest.mark.parametrize("path", PATHS, ids=lambda path: ".".join(map(str, path)))
def test_a_text_of_a_board_is_refused_or_plain(
    path: tuple[Any, ...], artifact: Artifact, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    taken = 0
    for text in HOSTILE:
        file.write_text(with_text(path, text))
        files = project_or_refusal(artifact, file)
        if isinstance(files, Diagnostic):
            assert re.fullmatch("E4(1[0-5]|42)", files.code), files.render()
            continue
        taken += 1
        assert PLAIN.fullmatch(text), text
        generated = b"".join(files[name] for name in sorted(GENERATED & files.keys())).decode()
        assert "PWNED" not in generated or f"/* {text}, Shared_Sram: gen" in generated
    assert taken < len(HOSTILE) / 4


SDK = 'inherits = "nuvoton_m55m1"\nname = "mine"\n[sdk]\n'
SDK_KEYS = [name for name in keys_of(SdkKeys) if name != "model_address"]


@pytest.mark.parametrize("key", SDK_KEYS)
def test_a_text_of_the_vendors_software_is_refused_or_plain(
    key: str, artifact: Artifact, tmp_path: Path
) -> None:
    """They become macros that C sources name."""
    file = tmp_path / "mine.toml"
    for text in HOSTILE:
        file.write_text(f'{SDK}{key} = {written(text)}\n[npu]\naccelerators = ["ethos-u55-128"]\n')
        files = project_or_refusal(artifact, file)
        if isinstance(files, Diagnostic):
            assert files.code == "E411", files.render()
            continue
        assert re.fullmatch(r"[\w .,:+\-/()]+", text), text
        header = files["onto_board/mizzen_board_config.h"].decode()
        assert "PWNED" not in header or f" with {text}: generated" in header


GENERATED = {"model.mk", "model.cmake", "board/board_config.h", "board/board.ld"}


def test_the_plain_board_is_exported(artifact: Artifact, tmp_path: Path) -> None:
    """What the hostile texts replace was good: the errors are theirs."""
    file = tmp_path / "mine.toml"
    file.write_text(with_text(("title",), "Jürgens board: rev. B (2026)/7"))
    files = project_of(artifact, file)
    assert files.keys() >= GENERATED
    assert (
        "/* Jürgens board: rev. B (2026)/7, Shared_Sram: generated"
        in files["board/board.ld"].decode()
    )


@pytest.mark.skipif(shutil.which("make") is None, reason="no make on this machine")
def test_a_board_of_python_says_nothing_to_make(artifact: Artifact, tmp_path: Path) -> None:
    """A board that was made without a file is not checked: what it says is a text to make too."""
    board = find_board("corstone300")
    core = f"x $(shell touch {tmp_path}/PWNED) `touch {tmp_path}/PWNED` # \\"
    hostile = replace(board, cpu=replace(board.cpu, core=core), title="*/ x /*", name='"; x')
    project = RUNTIMES["c"].project(artifact, Request(hostile, "Shared_Sram"))
    write_project(project.files, tmp_path / "made")
    subprocess.run(
        ["make", "-n", "-C", str(tmp_path / "made"), "model.mk"], capture_output=True, check=True
    )
    assert not (tmp_path / "PWNED").exists()
    header = project.files["board/board_config.h"].decode()
    assert header.startswith("/* * / x / *, Shared_Sram: generated by Mizzen. */\n")
    assert '#define BOARD_NAME "\\042; x"' in header


@pytest.mark.parametrize(
    "core",
    ["cortex-m55", "cortex-m55+nomve.fp", "cortex-m33+nodsp", "cortex-m85", "star-mc1"],
)
def test_processors_that_compilers_know_are_taken(core: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(with_text(("cpu", "core"), core))
    assert find_board(str(file)).cpu.core == core


def test_case_of_a_command_in_the_name_of_a_core(cases: Path) -> None:
    with pytest.raises(MizzenError) as caught:
        find_board(str(cases / "safety" / "core_make_injection.toml"))
    assert str(caught.value) == (
        "error[E411]: core_make_injection.toml: cpu.core must be letters, digits, '.', '_', '+' "
        "and '-', a letter or digit first, not 'cortex-m55 -fplugin=/tmp/pwn.so $(shell touch "
        "PWNMK)'"
    )


DAMAGED = {
    "two memories of a name": ('name = "BRAM"', 'name = "ITCM"', "memory[1].name must be another"),
    "a word of linkers": ('name = "BRAM"', 'name = "LENGTH"', "memory[1].name must be none of"),
    "no room": ("base = 0x7000_0000", "base = 0xfff0_0000", "memory[5].base must leave room"),
    "half": ("irq = 56", "irq = 56.0", "npu.irq must be a whole number of 0..479, not 56.0"),
    "not a number": ("irq = 56", "irq = nan", "npu.irq must be a whole number of 0..479, not nan"),
    "a day": ("irq = 56", "irq = 2026-01-01", "npu.irq must be a whole number"),
    "many digits": ("irq = 56", "irq = " + "9" * 1000, "npu.irq must be a whole number"),
    "nothing": ("[npu]", "[npv]", "npu must be given, not left out"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_boards_are_refused(name: str, tmp_path: Path) -> None:
    old, new, said = DAMAGED[name]
    file = tmp_path / "mine.toml"
    file.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(MizzenError) as caught:
        find_board(str(file))
    assert said in str(caught.value)


UNREADABLE = {
    "a number of many digits": "x = " + "9" * 5000,
    "a hexadecimal number of many digits": "x = 0x" + "f" * 9000,
    "deep": "x = " + "[" * 5000,
    "deep tables": "[" + ".".join("a" * 5000) + "]",
    "no text": "\x00",
    "two of a key": "name = 'a'\nname = 'b'",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_boards_are_refused(name: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(UNREADABLE[name])
    with pytest.raises(MizzenError) as caught:
        find_board(str(file))
    assert caught.value.diagnostic.code in ("E410", "E411", "E412")
