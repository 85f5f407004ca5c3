"""What the page about trust says of each kind of file, tried with files of that kind.

Every row of its tables and every item of its list of exported programs has an entry here; one
without is an error, as is an entry without a row. Files are made so that they would do something if
they were executed: leave a file called PWNED.
"""

from __future__ import annotations

import csv
import io
import os
import pickle
import re
import subprocess
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from mizzen.cli.main import main

from ..hostile import NAMES, STEERING, hostile  # noqa: TID252 tests are no package with a name

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "trust.md"
DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
TORCH = Path(__file__).resolve().parents[1] / "frontends" / "torch" / "test_exported_file.py"
WORDS = ("--accelerator-config", "ethos-u55-128", "--generator", "vela")


class Touch:
    """Pickled, a command."""

    def __reduce__(self) -> tuple[object, tuple[list[str]]]:
        return subprocess.call, (["touch", "PWNED"],)


def network() -> bytes:
    return (DIGITS / "digits.tflite").read_bytes()


def array_of_objects() -> bytes:
    held = io.BytesIO()
    np.save(held, np.array([Touch()], object), allow_pickle=True)
    return held.getvalue()


def archive(**members: bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in members.items():
            made.writestr(name.replace("__", "."), data)
    return held.getvalue()


def board(core: str) -> bytes:
    return f'inherits = "corstone300"\n[cpu]\ncore = "{core}"\n'.encode()


Files = Mapping[str, bytes]
Lines = tuple[str, ...]
RUN = f"run {DIGITS}/digits.tflite --input FILE"
EVALUATE = f"evaluate {DIGITS}/digits.tflite --data {DIGITS}/images.npy --labels FILE"

BARE = "--accelerator-config ethos-u65-256 --region 1=64"

READ: Mapping[str, tuple[Lines, Files]] = {
    "`.tflite`, compiled or not; `.tosa`": (
        ("check FILE", "inspect FILE", "run FILE"),
        {
            "half.tflite": network()[: len(network()) // 2],
            "nothing.tflite": b"",
            "offsets.tflite": network()[:4] + b"TFL3" + b"\xff" * 200,
            "half.tosa": b"\x1c\0\0\0TOSA" + b"\xff" * 64,
            "text.tosa": b"$(touch PWNED)",
        },
    ),
    "`.onnx`": (
        ("check FILE", "compile FILE", "quantize FILE --data FILE"),
        {
            "nothing.onnx": b"",
            "text.onnx": b"import os",
            "pickle.onnx": pickle.dumps(Touch()),
            "long.onnx": b"\x08\x0a\x3a\xff\xff\xff\xff\x0f" + bytes(60),
            "deep.onnx": b"\x08\x0a" + b"\x3a\x40" * 40_000,
        },
    ),
    "`.npz`, Vela's raw archive": (
        ("inspect FILE",),
        {
            "objects.npz": archive(cmd_data__npy=array_of_objects()),
            "pickle.npz": pickle.dumps(Touch()),
            "nothing.npz": archive(),
            "text.npz": archive(cmd_data__npy=b"no array"),
            "half.npz": archive(cmd_data__npy=array_of_objects())[:60],
        },
    ),
    "`.zip`, an artifact with a part for PyTorch or ONNX Runtime": (
        ("inspect FILE", "run FILE"),
        {
            "plan.zip": archive(plan__json=b"[" * 100_000),
            "pickle.zip": archive(plan__json=b"{}", data__pkl=pickle.dumps(Touch())),
            "nothing.zip": archive(),
            "long.zip": archive(plan__json=b"0" * 40_000_000),
            "half.zip": archive(plan__json=b"{}")[:40],
        },
    ),
    "`.ptd`, data beside a program; `.bpte`, a program with examples": (
        ("inspect FILE", "run FILE"),
        {
            "half.bpte": b"\x1c\0\0\0BP08" + b"\xff" * 64,
            "nothing.bpte": b"",
            "text.bpte": b"import os",
            "pickle.bpte": pickle.dumps(Touch()),
            "half.ptd": b"\x1c\0\0\0FT01FH01" + b"\xff" * 64,
        },
    ),
    "`.h`, `.c`, `.cpp`, `.elf`, `.bin`, `.img` with a network or a command stream in it": (
        ("inspect FILE", "run FILE"),
        {
            "nothing.h": b"",
            "cut.c": b"const unsigned char x[] = {" + b"0x54, " * 5000,
            "half.elf": b"\x7fELF\x01\x01" + b"\xff" * 200,
            "pickle.bin": pickle.dumps(Touch()),
            "letters.img": b"TFL3ET12BP08" * 500,
            "heads.img": b"COP1COP2" * 5000 + b"COP1\x02\xff\xff\xff",
        },
    ),
    "`.hex`, `.srec`, `.uf2`, images with addresses": (
        ("inspect FILE", "check --artifact FILE"),
        {
            "nothing.hex": b"",
            "far.hex": b":02000004FFFFFC\n:01FFFF00FF02\n:0100000054AB\n:00000001FF\n",
            "half.hex": b":10000000000102\n",
            "long.srec": b"S3FF" + b"0" * 4000 + b"\n",
            "text.s19": b"$(touch PWNED)",
            "half.uf2": b"UF2\nWQ]\x9e" + b"\xff" * 100,
        },
    ),
    "a bare command stream, with `--region`; the file that Mesa serialises": (
        (f"inspect FILE {BARE}", f"run FILE {BARE}"),
        {
            "nothing.bin": b"",
            "odd.bin": b"\xff" * 7,
            "words.bin": b"\xff" * 64,
            "head.bin": b"COP1" + b"\xff" * 12,
            "pickle.bin": pickle.dumps(Touch()).ljust(160, b"\xff"),
        },
    ),
    "`.pte`, an ExecuTorch program": (
        ("inspect FILE", "run FILE"),
        {
            "half.pte": b"\x1c\0\0\0ET12" + b"\xff" * 64,
            "nothing.pte": b"",
            "pickle.pte": pickle.dumps(Touch()),
            "zeros.pte": b"\x1c\0\0\0ET12" + bytes(200),
            "head.pte": b"\x1c\0\0\0ET12eh00" + b"\xff" * 64,
        },
    ),
    "`.pt2`, an exported program": (
        ("check FILE",),
        {
            "pickle.pt2": pickle.dumps(Touch()),
            "old.pt2": archive(serialized_state_dict__pt=pickle.dumps(Touch()), version=b"1.0"),
            "nothing.pt2": archive(),
            "text.pt2": b"import os",
            "half.pt2": archive(version=b"1")[:30],
        },
    ),
    "`.npy`, an input": (
        (RUN,),
        {
            "objects.npy": array_of_objects(),
            "pickle.npy": pickle.dumps(Touch()),
            "huge.npy": b"\x93NUMPY\x01\0v\0{'descr': '|i1', 'fortran_order': False, "
            b"'shape': (1099511627776,), }".ljust(128),
            "code.npy": b"\x93NUMPY\x01\0v\0" + b"__import__('os').system('x>PWNED')".ljust(118),
            "half.npy": array_of_objects()[:50],
        },
    ),
    "labels: `.npy`, `.csv`, `.txt`": (
        (EVALUATE,),
        {
            "huge.csv": b"images.npy[0]," + b"9" * 5000 + b"\n",
            "objects.npy": array_of_objects(),
            "bytes.txt": b"\xff\xfe\0\x1b[2J\n",
            "quotes.csv": b'"' * 200_000,
            "nothing.csv": b"",
        },
    ),
    "recordings `.wav`, images": (
        (RUN,),
        {
            "head.wav": b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0" + b"\xff" * 16,
            "half.wav": b"RIFF\x24\0\0\0WAVE",
            "text.png": b"$(touch PWNED)",
            "half.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff\xff\xff\xff\xff\xff\xff\xff",
            "nothing.jpg": b"",
        },
    ),
    "firmware, ELF": (
        ("emulate FILE --timeout 5",),
        {
            "half.elf": b"\x7fELF\x01\x01\x01" + b"\xff" * 60,
            "short.elf": b"\x7fELF",
            "wide.elf": b"\x7fELF\x02\x01\x01" + bytes(60),
            "zeros.elf": b"\x7fELF\x01\x01\x01" + bytes(45),
            "text.elf": b"#!/bin/sh\ntouch PWNED\n",
        },
    ),
    "boards, TOML": (
        (f"check {DIGITS}/digits.tflite --board FILE {' '.join(WORDS)}",),
        {
            "make.toml": board("$(shell touch PWNED)"),
            "shell.toml": board("x; touch PWNED"),
            "option.toml": board("-fplugin=x"),
            "deep.toml": b"x = " + b"[" * 100_000,
            "escape.toml": board("\\u001b[2J"),
        },
    ),
    "machines and assignments, TOML or JSON; `.mesh`, programs of elements": (
        (f"mesh map {DIGITS}/digits.tflite --machine FILE", "mesh check FILE", "mesh run FILE"),
        {
            "name.toml": b'name = "../../x"',
            "nothing.toml": b"",
            "digits.toml": b"format = " + b"9" * 5000,
            "half.mesh": b"MZNMESH\n\x01\0\0\0\xff\xff\xff\xff",
            "nothing.mesh": b"",
        },
    ),
    "`.etdp`, what ExecuTorch's tracer saw": (
        (f"calibrate {DIGITS}/digits.tflite --log FILE",),
        {
            "half.etdp": b"\x1c\0\0\0ED00" + b"\xff" * 64,
            "sized.etdp": b"\x1c\0\0\0\x1c\0\0\0ED00" + b"\xff" * 64,
            "nothing.etdp": b"",
            "pickle.etdp": pickle.dumps(Touch()),
            "steering.etdp": b"\x1b[2J NPU TOTAL: " + b"9" * 500_000 + b" cycles",
        },
    ),
    "baselines and evaluations, JSON": (
        (
            f"compare {DIGITS}/digits.tflite --baseline FILE {' '.join(WORDS)}",
            f"report {DIGITS}/digits.tflite --evaluation FILE {' '.join(WORDS)}",
        ),
        {
            "digits.json": b'{"samples": ' + b"9" * 5000 + b"}",
            "deep.json": b"[" * 100_000,
            "nothing.json": b"",
            "infinite.json": b'{"data": "x", "samples": 1, "metrics": {"top1": 1e999}}',
            "surrogate.json": b'{"schema": "\\ud800"}',
        },
    ),
}  # fmt: skip


LOGS = "logs of firmware, text"
"""Any bytes are a log, so that reading one does not end with 2."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("row", READ)
def test_a_file_is_data(row: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines, files = READ[row]
    assert len(files) >= 5
    for name, data in files.items():
        (folder / name).write_bytes(data)
        for line in lines:
            status = main([word.replace("FILE", name) for word in line.split()])
            out, err = capfd.readouterr()
            assert (status, "error[E000]" in err) == (2, False), (line, name, err)
            assert re.match(r"(?s).*^error\[E\d{3}\]: ", err, re.M)
            assert not STEERING.search(out + err)
            assert not (folder / "PWNED").exists()


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(Touch()),
        b"\xff" * 300_000,
        b"$(touch PWNED)\n\x1b[2J",
        b"NPU status=0x" + b"9" * 100_000,
        b"Failed to resize buffer. Requested: " + b"9" * 5000 + b", available 0, missing: 1\n",
    ],
    ids=["pickle", "bytes", "shell", "status", "numbers"],
)
def test_a_log_is_text(data: bytes, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "firmware.log").write_bytes(data)
    assert main(["doctor", "--log", "firmware.log"]) in (0, 1)
    out, err = capfd.readouterr()
    assert "error[E000]" not in err
    assert not STEERING.search(out + err)
    assert not (folder / "PWNED").exists()


def of_terminals(folder: Path, out: str) -> None:
    assert not STEERING.search(out)
    assert "\\x1b" in out


def of_csv(folder: Path, out: str) -> None:
    cells = [
        cell
        for path in (folder / "tables").iterdir()
        for row in csv.reader(io.StringIO(path.read_text(), newline=""))
        for cell in row
    ]
    assert any(cell.startswith("'") for cell in cells)
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in cells)


def of_markdown(folder: Path, out: str) -> None:
    text = (folder / "found.md").read_text()
    assert "<script>" not in re.sub("`[^`\n]*`", "", text)
    assert len(text) < 100_000


def of_html(folder: Path, out: str) -> None:
    text = (folder / "page.html").read_text()
    assert "<script>alert(1)" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert len(text) < 1_000_000


def of_json(folder: Path, out: str) -> None:
    assert STEERING.search((folder / "found.txt").read_text().encode().decode("unicode_escape"))


def of_sources(folder: Path, out: str) -> None:
    names = ("model.mk", "model.cmake", "board/board.ld", "board/board_config.h", "model.h")
    text = "".join((folder / "made" / name).read_text() for name in names)
    assert not any(name[:20] in text for name in NAMES)


WRITTEN: Mapping[str, Callable[[Path, str], None]] = {
    "the terminal": of_terminals,
    "JSON": of_json,
    "CSV": of_csv,
    "Markdown": of_markdown,
    "HTML": of_html,
    "C, make, CMake, linker scripts": of_sources,
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that is written of a network with hostile names."""
    folder = tmp_path_factory.mktemp("trust")
    (folder / "hostile.tflite").write_bytes(hostile(network()))
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert main(["compile", "hostile.tflite", *WORDS, "--quiet"]) == 0
        made = "output/hostile_vela.tflite"
        assert main(["report", made, "--csv", "tables", "-o", "page.html", "--quiet"]) == 0
        words = ["--markdown", "found.md", "--accelerator-config", "ethos-u55-128", "--quiet"]
        assert main(["compare", "hostile.tflite", *words, "--write-baseline", "base.json"]) == 0
        words = ["--to", "c", "--board", "corstone300", "--output-dir", "made", "--quiet"]
        assert main(["export", made, *words]) == 0
    finally:
        os.chdir(before)
    return folder


@pytest.mark.parametrize("row", WRITTEN)
def test_a_name_is_text(row: str, written: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["check", str(written / "hostile.tflite"), *WORDS, "--quiet"]
    assert main([*words, "--json"]) == 0
    (written / "found.txt").write_text(capfd.readouterr().out)
    assert main(words) == 0
    WRITTEN[row](written, capfd.readouterr().out)


ITEMS = {
    "read": ("test_what_is_harmless_is_read", "test_tensors_lie_in_their_bytes"),
    "called": ("test_only_operators_on_tensors_are_called",),
    "dropped": (
        "test_sample_inputs_are_not_read",
        "test_compiled_code_is_not_loaded",
        "test_code_of_guards_is_dropped",
    ),
    "refused": (
        "test_pickled_objects_are_refused",
        "test_names_are_names",
        "test_the_old_form_is_refused",
        "test_sizes_are_not_evaluated",
    ),
}
"""Of an exported program: the tests that have files of it."""


def test_every_claim_of_the_page_is_tried() -> None:
    text = PAGE.read_text("utf-8")
    rows = re.findall(r"^\| (?!-)([^|]+?) \|", text, re.M)
    heads = {"File", "Place"}
    assert set(rows) - heads == READ.keys() | WRITTEN.keys() | {LOGS}
    assert set(re.findall(r"^- \*(\w+)\*", text, re.M)) == ITEMS.keys()
    tests = TORCH.read_text("utf-8")
    assert all(f"def {name}(" in tests for names in ITEMS.values() for name in names)
