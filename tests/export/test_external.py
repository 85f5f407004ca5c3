"""Weights, or the whole model, apart from the firmware: built, executed, exchanged, refused."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.boards import Role, find_board
from mizzen.cli.main import main
from mizzen.diagnostics import MizzenError
from mizzen.emulate import Options, emulate
from mizzen.emulate.image import Segment
from mizzen.export import Project, Request, c_project
from mizzen.export.external import Apart, External
from mizzen.package.firmware import write_project
from mizzen.package.tflite.builder import NetworkBuilder

BOARD = find_board("corstone300")
ADDRESS = 0x7800_0000
X = np.arange(-16, 16, dtype=np.int8).reshape(1, 32)


@dataclass(frozen=True)
class Net:
    """Two dense layers.

    bias     added to all biases, which takes no more bytes
    zeros    of each layer's weights, which makes their code shorter
    width    of what is between the layers
    outputs  of the second
    """

    bias: int = 0
    zeros: int = 0
    width: int = 16
    outputs: int = 8

    def network(self) -> bytes:
        rng = np.random.default_rng(7)
        net = NetworkBuilder("pair")
        x = net.tensor("x", (1, 32), "int8", 0.5, 3)
        value = x
        for name, sizes in (("hidden", (self.width, 32)), ("scores", (self.outputs, self.width))):
            numbers = rng.integers(-127, 128, sizes).astype(np.int8)
            numbers.ravel()[: self.zeros] = 0
            weights = net.constant(f"{name}_weights", numbers, [0.01])
            ascending = 7 * np.arange(sizes[0], dtype=np.int32) + self.bias
            bias = net.constant(f"{name}_bias", ascending, [0.005])
            result = net.tensor(name, (1, sizes[0]), "int8", 1.0)
            net.operator("FULLY_CONNECTED", [value, weights, bias], [result])
            value = result
        return net.finish([x], [value])


@cache
def made(net: Net) -> Artifact:
    return mizzen.compile(net.network(), "ethos-u55-128", prove="off")


def project(net: Net, apart: Apart) -> Project:
    return c_project(made(net), Request(BOARD, inputs=[X], external=External(apart)))


@pytest.fixture(scope="module", params=list(Apart), ids=lambda apart: apart.value)
def built(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Apart, Path]:
    """Firmware of the first network, built once."""
    for tool in ("arm-none-eabi-gcc", "make"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    folder = tmp_path_factory.mktemp("firmware")
    write_project(project(Net(), request.param).files, folder)
    done = subprocess.run(
        ["make", "-s", "-C", str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    return request.param, folder / "build" / "firmware.elf"


def said(elf: Path, file: bytes) -> str:
    """Return what the firmware writes with a file beside it."""
    options = replace(Options(), beside=(Segment(ADDRESS, file),))
    return emulate(elf, BOARD, "ethos-u55-128", options).output


def output_of(net: Net) -> str:
    outputs = made(net).run(X)
    assert not isinstance(outputs, tuple)
    return "output 0: " + " ".join(map(str, outputs.ravel().tolist())) + "\n"


def file_of(net: Net, apart: Apart) -> bytes:
    return project(net, apart).files[apart.file_name]


def test_firmware_gives_the_outputs_of_its_network(built: tuple[Apart, Path]) -> None:
    apart, elf = built
    assert said(elf, file_of(Net(), apart)) == output_of(Net()) + "mizzen: ok\n"


def test_new_weights_give_the_new_outputs_without_linking(built: tuple[Apart, Path]) -> None:
    apart, elf = built
    new = Net(bias=900)
    assert output_of(new) != output_of(Net())
    assert said(elf, file_of(new, apart)).startswith(output_of(new))


def test_weights_of_another_stream_are_refused_and_its_model_runs(
    built: tuple[Apart, Path],
) -> None:
    apart, elf = built
    new = Net(zeros=100)
    found = said(elf, file_of(new, apart))
    if apart is Apart.MODEL:
        assert found.startswith(output_of(new))
    else:
        assert found == (
            "mizzen: step 0: a file of weights or a model that is of another program\n"
        )


def test_another_interface_is_refused(built: tuple[Apart, Path]) -> None:
    apart, elf = built
    assert said(elf, file_of(Net(outputs=4), apart)) == (
        "mizzen: step 0: a file of weights or a model that is of another program\n"
    )


def test_a_larger_arena_than_the_firmware_has_is_refused(built: tuple[Apart, Path]) -> None:
    apart, elf = built
    if apart is Apart.MODEL:
        assert "too little memory" in said(elf, file_of(Net(width=512), apart))


@pytest.mark.parametrize("place", [4, 20, -1])
def test_a_damaged_file_is_refused(built: tuple[Apart, Path], place: int) -> None:
    apart, elf = built
    file = bytearray(file_of(Net(), apart))
    file[place] ^= 4
    assert re.fullmatch(
        r"mizzen: step 0: a (file of weights or a model that is not whole|damaged container)\n",
        said(elf, bytes(file)),
    )


def test_an_empty_flash_is_refused(built: tuple[Apart, Path]) -> None:
    _, elf = built
    assert said(elf, b"\xff" * 64) == ("mizzen: step 0: no container, or one of another version\n")


def test_firmware_is_linked_below_the_file() -> None:
    script = project(Net(), Apart.CONSTANTS).files["board/board.ld"].decode()
    memory = BOARD.memory(Role.MODEL)
    assert memory.base + memory.size_bytes // 2 == ADDRESS
    (length,) = re.findall(rf"{memory.name} .*ORIGIN = {memory.base:#010x}, LENGTH = (\S+)", script)
    assert memory.base + int(length, 16) == ADDRESS


@pytest.mark.parametrize(
    ("address", "code"), [(0x5000_0000, "E826"), (0x7000_0008, "E826"), (0x7FFF_FFF0, "E827")]
)
def test_an_address_must_have_room(address: int, code: str) -> None:
    request = Request(BOARD, external=External(Apart.CONSTANTS, address))
    with pytest.raises(MizzenError) as caught:
        c_project(made(Net()), request)
    assert caught.value.diagnostic.code == code


def test_the_software_of_a_vendor_gets_the_file_beside_its_sources() -> None:
    grove = find_board("grove_vision_ai_v2")
    artifact = mizzen.compile(Net().network(), board="grove_vision_ai_v2", prove="off")
    files = c_project(artifact, Request(grove, external=External(Apart.CONSTANTS))).files
    assert "network_constants.bin" in files
    assert b"MODEL_FILE_ADDRESS 0x3ab7b000u" in files["onto_board/model.h"]
    assert "onto_board/model.c" in files
    alif = find_board("alif_ensemble_e7")
    other = mizzen.compile(Net().network(), board="alif_ensemble_e7", prove="off")
    with pytest.raises(MizzenError) as caught:
        c_project(other, Request(alif, external=External(Apart.MODEL)))
    assert "--external-address ADDRESS" in str(caught.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--to", "tflm", "--external", "model"), "--external is for --to c"),
        (("--to", "c", "--external-address", "0x71000000"), "--external-address needs --external"),
        (("--to", "c", "--external", "model", "--external-address", "up"), "an address is written"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    words: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(Net()).save(tmp_path / "net.tflite")
    assert main(["export", str(tmp_path / "net.tflite"), "--board", "corstone300", *words]) == 2
    err = capsys.readouterr().err
    assert "error[E200]" in err
    assert said in err


def test_a_file_to_load_must_have_an_address(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["emulate", "x.elf", "--load", "x.bin"]) == 2
    assert "must be FILE@ADDRESS, as x.bin@0x78000000" in capsys.readouterr().err
