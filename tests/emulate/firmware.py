"""The test firmware: what is built, where the prebuilt files are, and networks as firmware."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.device import device_program
from mizzen.boards import find_board
from mizzen.package.device import NpuCall
from mizzen.targets.ethos_u.machine.driver import parse

from .compilers import FIRMWARE, build, configure

SOURCES = FIRMWARE / "test"
PREBUILT = Path(__file__).parent / "prebuilt"
BOARD, ACCELERATOR = "corstone300", "ethos-u55-128"
COMPILER = "arm-none-eabi-gcc (15:12.2.rel1-1) 12.2.1 20221205"
"""The compiler that the prebuilt files were made with, as it names itself."""


@dataclass(frozen=True, slots=True)
class Build:
    """One firmware: a source, what it is compiled with, and the processor it is for."""

    source: str
    define: str = ""
    core: str = "m33"

    @property
    def name(self) -> str:
        """The name of its file."""
        parts = [self.source, self.define.lower().replace("=", "_"), self.core]
        return "-".join(part for part in parts if part) + ".elf"

    @property
    def prebuilt(self) -> Path:
        """The file that is in the repository."""
        return PREBUILT / self.name

    def make(self, folder: Path) -> Path:
        """Build it in a folder that is `configured`."""
        defines = ["-DCONFIG_MACS_LOG2=7u", f"-I{SOURCES}"]
        defines += [f"-D{self.define}"] if self.define else []
        source = SOURCES / f"{self.source}.c"
        return build(folder, self.core, [source], folder / self.name, defines)


PROGRAMS = (
    "interrupt", "faults", "careful", "hasty", "floats", "ticks", "cycles", "semihosting",
    "access", "priorities", "turns",
)  # fmt: skip
ENDS = (
    "DEADLOCK", "ASLEEP", "LOOP", "STORM", "RESTARTS", "BAD_LOAD", "BAD_STORE", "READ_ONLY",
    "BAD_JUMP", "UNDEFINED", "BREAKPOINT", "STATUS=7", "SILENT", "CHATTER",
)  # fmt: skip
BUILDS = (
    *(Build(name) for name in PROGRAMS),
    *(Build("ends", end) for end in ENDS),
    Build("floats", core="m55"),
)


def configured(folder: Path, board: str = BOARD, accelerator: str = ACCELERATOR) -> Path:
    """Write the board's header and linker script into a folder, and return it."""
    configure(folder, find_board(board), accelerator)
    return folder


def network_firmware(
    folder: Path, artifact: Artifact, inputs: npt.NDArray[np.int8], core: str = "m33"
) -> Path:
    """Build firmware that runs an artifact of one NPU operator on inputs `[runs, ...]`."""
    program = device_program(artifact)
    (call,) = program.calls
    assert isinstance(call, NpuCall)
    (given,), (result,) = call.inputs, call.outputs
    parsed = parse(call.payload)
    size = program.tensors[result.tensor].size_bytes
    _write_data(folder, parsed.words.tobytes(), call.read_only, inputs.tobytes())
    rows = {
        "STREAM_BYTES": parsed.words.nbytes,
        "ARENA_BYTES": call.scratch_bytes,
        "FAST_BYTES": call.fast_bytes or 16,
        "INPUT_OFFSET": given.offset_bytes,
        "INPUT_BYTES": inputs[0].nbytes,
        "OUTPUT_OFFSET": result.offset_bytes,
        "OUTPUT_BYTES": size,
        "RUNS": len(inputs),
    }
    text = "".join(f"#define NETWORK_{name} {value}u\n" for name, value in rows.items())
    (folder / "network.h").write_text(text)
    files = [SOURCES / "network.c", folder / "network_data.S"]
    return build(folder, core, files, folder / f"network-{core}.elf", [f"-I{SOURCES}"])


def _write_data(folder: Path, stream: bytes, constants: bytes, inputs: bytes) -> None:
    lines = ['    .section .model, "a", %progbits']
    for name, data in (("stream", stream), ("constants", constants), ("inputs", inputs)):
        (folder / f"{name}.bin").write_bytes(data)
        label = f"network_{name}"
        lines += ["    .balign 16", f"    .global {label}", f"{label}:"]
        lines += [f'    .incbin "{folder}/{name}.bin"']
    (folder / "network_data.S").write_text("\n".join(lines) + "\n")


def shown_outputs(output: str, count: int) -> npt.NDArray[np.uint8]:
    """Return the bytes that network firmware writes, uint8 `[count, bytes]`."""
    lines: Sequence[str] = output.split("\n")[:count]
    return np.stack([np.frombuffer(bytes.fromhex(line), np.uint8) for line in lines])
