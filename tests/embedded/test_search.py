"""Networks in C sources and images of firmware: found, named, and run like the file alone."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.artifact.opening import opened
from mizzen.cli.main import main
from mizzen.diagnostics import MizzenError
from mizzen.embedded.arrays import byte_arrays
from mizzen.embedded.search import Kind, is_carrier, payloads

ROOT = Path(__file__).parents[2]
PTE = (ROOT / "tests" / "artifact" / "pte" / "cortex_m_u55.pte").read_bytes()
BPTE = (ROOT / "tests" / "artifact" / "pte" / "cortex_m_u55.bpte").read_bytes()
DIGITS = (ROOT / "examples" / "digits" / "digits.tflite").read_bytes()
CODE = bytes(range(256)) * 3 + b"TFL3 ET12 are only letters here"


def source(data: bytes, name: str = "network", number: str = "0x{:02x}") -> bytes:
    lines = [
        ", ".join(number.format(byte) for byte in data[at : at + 12]) + ",  // more\n"
        for at in range(0, len(data), 12)
    ]
    head = f"#include <stdint.h>\n/* a {{ network }} */\nalignas(16) const uint8_t {name}[] = {{\n"
    return f"{head}{''.join(lines)}}};\nconst unsigned {name}_len = {len(data)};\n".encode()


def image(*networks: bytes) -> bytes:
    """Networks among code, at multiples of 16."""
    parts = bytearray(CODE)
    for network in networks:
        parts += bytes(-len(parts) % 16) + network + CODE
    return bytes(parts)


def elf(data: bytes, name: str) -> bytes:
    """A 32-bit file with one object, which is all of its data from byte 0x100 on."""
    names = b"\0" + name.encode() + b"\0"
    text_at = 0x100
    symbols_at = text_at + len(data) + -len(data) % 4
    names_at = symbols_at + 32
    table_at = names_at + len(names) + -len(names) % 4
    head = b"\x7fELF\x01\x01\x01" + bytes(9)
    head += struct.pack("<HHIIIIIHHHHHH", 2, 40, 1, 0, 0, table_at, 0, 52, 0, 0, 40, 4, 0)
    sections = [
        (0,) * 10,
        (0, 1, 2, 0x8000, text_at, len(data), 0, 0, 16, 0),
        (0, 2, 0, 0, symbols_at, 32, 3, 0, 4, 16),
        (0, 3, 0, 0, names_at, len(names), 0, 0, 1, 0),
    ]
    symbols = bytes(16) + struct.pack("<IIIBBH", 1, 0x8000, len(data), 1, 0, 1)
    body = bytearray(table_at)
    body[: len(head)] = head
    body[text_at : text_at + len(data)] = data
    body[symbols_at : symbols_at + 32] = symbols
    body[names_at : names_at + len(names)] = names
    return bytes(body) + b"".join(struct.pack("<10I", *row) for row in sections)


@pytest.mark.parametrize("number", ["0x{:02x}", "0X{:X}u", "{}"])
def test_an_array_is_read_whole(number: str) -> None:
    (array,) = byte_arrays(source(DIGITS, "model_data", number))
    assert (array.name, array.data) == ("model_data", DIGITS)


def test_what_is_no_array_of_bytes_is_passed_over() -> None:
    text = b"int f(void) { return 1; } struct s { int a; }; const real t[] = {" + b"70000," * 99
    assert not list(byte_arrays(text + b"};" + b"const x[] = {" + b"A, " * 99 + b"};"))
    assert not list(byte_arrays(b"const uint8_t cut[] = {" + b"1," * 99))
    assert not list(byte_arrays(b"const uint16_t t[] = {" + b"70000," * 99 + b"};"))


@pytest.mark.parametrize(
    ("kind", "code"), [("uint16_t", "H"), ("unsigned int", "I"), ("int32_t", "i"), ("int64_t", "q")]
)
def test_words_are_little_endian_bytes(kind: str, code: str) -> None:
    size = struct.calcsize(code)
    padded = DIGITS + bytes(-len(DIGITS) % size)
    words = struct.unpack(f"<{len(padded) // size}{code}", padded)
    text = f"static {kind} _K4[{len(words)}] __attribute__((aligned(16))) = {{{str(words)[1:-1]}}};"
    (array,) = byte_arrays(text.encode())
    assert (array.name, array.data) == ("_K4", padded)


@pytest.mark.parametrize(
    ("network", "kind", "accelerator"),
    [(DIGITS, Kind.TFLITE, None), (PTE, Kind.PTE, "ethos-u55-128"),
     (BPTE, Kind.BPTE, "ethos-u55-128")],
)  # fmt: skip
def test_a_network_is_found_in_an_image(
    network: bytes, kind: Kind, accelerator: str | None
) -> None:
    data = image(network)
    (found,) = payloads(data, "firmware.bin")
    assert (found.kind, found.accelerator, found.symbol) == (kind, accelerator, "")
    assert found.offset == data.find(network)
    assert found.data[: len(network)] == network
    assert len(found.data) - len(network) < 64


def test_a_symbol_names_it() -> None:
    (found,) = payloads(elf(image(PTE), "network_pte"), "firmware.elf")
    assert found.symbol == "network_pte"
    assert found.data[: len(PTE)] == PTE


def test_it_runs_as_the_file_alone_does(tmp_path: Path) -> None:
    alone = mizzen.load(PTE)
    given = np.linspace(-1, 1, 64, dtype=np.float32).reshape(1, 1, 8, 8)
    for name, data in (("net.h", source(PTE)), ("fw.elf", elf(image(PTE), "net"))):
        path = tmp_path / name
        path.write_bytes(data)
        np.testing.assert_array_equal(mizzen.load(path).run(given), alone.run(given))
    assert main(["check", "--artifact", str(tmp_path / "net.h")]) == 0


def test_several_are_listed_and_one_is_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "fw.bin"
    path.write_bytes(image(DIGITS, PTE))
    assert main(["inspect", str(path)]) == 0
    shown = capsys.readouterr().out
    assert [line.split()[:2] for line in shown.splitlines()[1:3]] == [
        ["0", hex(path.read_bytes().find(DIGITS))], ["1", hex(path.read_bytes().find(PTE))],
    ]  # fmt: skip
    assert mizzen.load(path, payload=1).accelerator == "ethos-u55-128"
    assert mizzen.load(path, payload=0).accelerator is None


def refusal(path: Path, payload: int | None = None) -> str:
    with pytest.raises(MizzenError) as caught:
        opened(path, path.read_bytes(), (), payload)
    return str(caught.value)


def test_refusals(tmp_path: Path) -> None:
    path = tmp_path / "fw.bin"
    path.write_bytes(CODE * 4)
    assert refusal(path) == (
        "error[E696]: fw.bin must have a network in it, a TFLite file, an ExecuTorch program or a "
        "payload of Arm's driver, and has none that is whole\n"
        "  help give the file that has the bytes of the network; compressed images have to be "
        "unpacked before, and words of a command stream without a head need --accelerator-config "
        "and --region N=FILE for each region that they read"
    )
    container = (
        "  help it has a container of Mizzen's C runtime, which is for the device: give the file "
        "that it was exported from"
    )
    path.write_bytes(CODE + b"MZN1" + CODE)
    assert refusal(path).endswith(container)
    source = tmp_path / "network.c"
    numbers = ", ".join(map(str, b"MZN1" + bytes(64)))
    source.write_text(f"const unsigned char network[] = {{{numbers}}};\n")
    assert refusal(source).endswith(container)
    path.write_bytes(image(DIGITS, PTE))
    said = "error[E697]: one of the 2 networks in fw.bin must be chosen, 0 to 1, and {}\n"
    after = "  help --payload N; `mizzen inspect fw.bin` lists them"
    assert refusal(path) == said.format("none is chosen") + after
    assert refusal(path, 2) == said.format("2 is none of them") + after
    network = tmp_path / "net.tflite"
    network.write_bytes(DIGITS)
    assert refusal(network, 0) == (
        "error[E200]: the command line is wrong: net.tflite is a network itself, and has none in "
        "it\n"
        "  help leave out --payload"
    )
    assert not is_carrier(DIGITS, "net.bin")


def test_damaged_files_end_in_a_list() -> None:
    rng = np.random.default_rng(5)
    for name, data in (("fw.elf", elf(image(PTE, DIGITS), "net")), ("net.h", source(PTE))):
        for _ in range(120):
            changed = bytearray(data)
            for at in rng.integers(0, len(data), 6):
                changed[at] = int(rng.integers(256))
            for found in payloads(bytes(changed[: int(rng.integers(len(data)))]), name):
                assert found.data
