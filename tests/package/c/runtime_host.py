"""The C runtime as a program of this machine, whose NPU is the simulator."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mizzen.package.c.kernel_rows import KERNELS, kernel_table, sources_of
from mizzen.package.c.reader import decode
from mizzen.package.firmware import firmware_folder
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.machine import driver
from mizzen.targets.ethos_u.machine.program import Program

WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")
CORE = ("mizzen.c", "arguments.c", "cache.c", "file.c", "status_text.c")
HOST = Path(__file__).parent / "host" / "host.c"


def require(compiler: str) -> str:
    found = shutil.which(compiler)
    if found is None:
        pytest.skip(f"{compiler} is not installed")
    return found


PROGRAMS: dict[str, Path] = {}
"""Host programs by compiler, made once a process."""


def built(folder: Path, compiler: str) -> Path:
    """Return the host program with all kernels, made in `folder` unless there is one."""
    if compiler not in PROGRAMS:
        PROGRAMS[compiler] = _made(folder, compiler)
    return PROGRAMS[compiler]


def _made(folder: Path, compiler: str) -> Path:
    """Compile with warnings as errors, and sanitizers."""
    runtime = firmware_folder() / "runtime"
    table = folder / "kernels.c"
    table.write_text(kernel_table(KERNELS))
    kernels = [runtime / "kernels" / name for name in sources_of(KERNELS)]
    program = folder / f"host-{Path(compiler).name}"
    includes = [f"-I{runtime}", f"-I{runtime / 'kernels'}"]
    strict = [require(compiler), *WARNINGS, *includes, "-O1", *SANITIZERS]
    sources = [*(runtime / name for name in CORE), *kernels, table]
    objects: list[str] = []
    for source in sources:
        objects.append(str(folder / f"{Path(compiler).name}-{source.stem}.o"))
        _run([*strict, "-c", str(source), "-o", objects[-1]])
    loose = [require(compiler), "-D_GNU_SOURCE", "-O1", *includes, *SANITIZERS]
    _run([*loose, str(HOST), *objects, "-o", str(program)])
    return program


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@dataclass
class Host:
    """A container that is open in the host program.

    file    what lies apart from it; None where it is whole
    status  of mz_open, then of the last mz_invoke; `step` is where it came from
    """

    program: Path
    container: bytes
    arena_bytes: int | None = None
    fast_bytes: int | None = None
    file: bytes | None = None
    status: int = field(init=False)
    step: int = field(init=False)

    def __post_init__(self) -> None:
        header = decode(self.container).header
        if self.file is not None:
            self.container = self.container[: header["constants_at"]]
        self.open(header)

    def open(self, header: Mapping[str, int]) -> None:
        """Start the program, with memory as a header asks for it."""
        self.process = subprocess.Popen(
            [self.program, "serve" if self.file is None else "apart"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        arena = header["arena_bytes"] if self.arena_bytes is None else self.arena_bytes
        fast = header["fast_bytes"] if self.fast_bytes is None else self.fast_bytes
        apart = () if self.file is None else (len(self.file),)
        self._send(len(self.container), arena, fast, *apart)
        self._stdin.write(self.container + (self.file or b""))
        self._stdin.flush()
        self._simulators: dict[bytes, Simulator] = {}
        self.status, self.step = self._word(), self._word()
        self.is_open = self.status == 0

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_open:
            self._send(0)
            self._stdin.flush()
        _out, errors = self.process.communicate(timeout=20)
        assert self.process.returncode == 0, errors.decode()

    def run(self, *inputs: np.ndarray[Any, Any]) -> list[bytes]:
        """Infer once; return the bytes of the outputs."""
        self._send(1)
        for array in inputs:
            self._stdin.write(np.ascontiguousarray(array).tobytes())
        self._stdin.flush()
        while chr(self._word()) == "N":
            self._serve_npu()
        self.status, self.step = self._word(), self._word()
        outputs: list[bytes] = []
        while (size := self._word()) != 0xFFFF_FFFF:
            outputs.append(self._read(size))
        return outputs

    def reset(self) -> None:
        self._send(2)
        self._stdin.flush()

    def _serve_npu(self) -> None:
        payload = self._read(self._word())
        regions = [np.frombuffer(self._read(self._word()), np.uint8) for _ in range(3)]
        same = bool(self._word())
        memory = {1: regions[1].copy()[None]}
        if not same:
            memory[2] = regions[2].copy()[None]
        self._simulator(payload, regions, same).run_in(memory, 1)
        self._send(0)
        for region in memory.values():
            self._stdin.write(region.tobytes())
        self._stdin.flush()

    def _simulator(
        self, payload: bytes, regions: Sequence[np.ndarray[Any, Any]], same: bool
    ) -> Simulator:
        if payload not in self._simulators:
            parsed = driver.parse(payload)
            kept = regions[:2] if same else regions
            self._simulators[payload] = Simulator(
                Program(
                    words=parsed.words,
                    hardware=parsed.hardware,
                    region_bytes={place: row.size for place, row in enumerate(kept)},
                    constants={0: regions[0]},
                    inputs=(),
                    outputs=(),
                )
            )
        return self._simulators[payload]

    @property
    def _stdin(self) -> Any:
        return self.process.stdin

    def _send(self, *words: int) -> None:
        self._stdin.write(np.array(words, "<u4").tobytes())

    def _word(self) -> int:
        return int.from_bytes(self._read(4), "little")

    def _read(self, size: int) -> bytes:
        assert self.process.stdout is not None
        data = self.process.stdout.read(size)
        if len(data) != size:
            assert self.process.stderr is not None
            raise AssertionError(f"the runtime ended: {self.process.stderr.read().decode()}")
        return data


def fuzz(program: Path, container: bytes, times: int, seed: int = 1) -> list[int]:
    """Damage a container so many times; return how often each status came."""
    words = np.array([len(container), seed], "<u4").tobytes()
    done = subprocess.run(
        [program, "fuzz", str(times)], input=words + container, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return np.frombuffer(done.stdout, "<u4").tolist()
