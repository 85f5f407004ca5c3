"""Whether an artifact and a board are made for one another, before anything is flashed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mizzen.artifact.device import device_program, no_kernels, without_kernels
from mizzen.boards import Board, MemoryMode, Role
from mizzen.cpu.tables import tabulated
from mizzen.diagnostics import Diagnostic, MizzenError, fail
from mizzen.export.c.container import c_container
from mizzen.export.c.project import container_needs
from mizzen.export.memory_mode import mode_on
from mizzen.export.project import Remedy, memory_findings
from mizzen.package.c.lowering import lower
from mizzen.package.device import DeviceProgram, KernelCall, NpuCall
from mizzen.targets.ethos_u.machine import driver
from mizzen.targets.ethos_u.machine.commands import Arch

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact

Version = tuple[int, int, int]

RELEASED: Mapping[Arch, Version] = {
    Arch.U55: (1, 1, 0),
    Arch.U65: (1, 0, 6),
    Arch.U85: (2, 0, 0),
}
"""Architecture of the hardware, which the driver compares with the payload's: the major number must
be the same, the minor one at least the payload's.

Ref: Ethos-U core driver 0.16, ethosu55_interface.h, ethosu65_interface.h, ethosu85_interface.h
(reset value of ID); ethosu_driver.c, verify_optimizer_config.
"""

REACHED = (Role.MODEL, Role.ARENA, Role.FAST)


@dataclass(frozen=True, slots=True)
class Headroom:
    """A memory of the board: what lies in it, and what is left of it."""

    memory: str
    size_bytes: int
    used_bytes: int

    @property
    def left_bytes(self) -> int:
        """What is left; below zero where it is too small."""
        return self.size_bytes - self.used_bytes

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        return {
            "memory": self.memory,
            "size_bytes": self.size_bytes,
            "used_bytes": self.used_bytes,
            "left_bytes": self.left_bytes,
        }


@dataclass(frozen=True, slots=True)
class BoardFit:
    """What an artifact needs of a board, and what is in the way.

    needed    bytes that the container, the arena and the fast memory take, by role; empty where
              there is no container
    findings  errors, each with what to do
    """

    board: Board
    memory_mode: str
    needed: Mapping[Role, int]
    findings: tuple[Diagnostic, ...]

    @property
    def headroom(self) -> tuple[Headroom, ...]:
        """The memories that the artifact needs; none where the board lacks the memory mode."""
        try:
            mode = self.board.mode(self.memory_mode)
        except MizzenError:
            return ()
        used: dict[str, int] = {}
        for role, needed in self.needed.items():
            name = self.board.memory(role, mode).name
            used[name] = used.get(name, 0) + needed
        return tuple(
            Headroom(memory.name, memory.size_bytes, used[memory.name])
            for memory in self.board.memories
            if used.get(memory.name)
        )

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        return {
            "board": self.board.name,
            "memory_mode": self.memory_mode,
            "bytes": {role.value: size for role, size in self.needed.items()},
            "headroom": [room.as_dict() for room in self.headroom],
            "findings": [finding.as_dict() for finding in self.findings],
        }


def board_fit(artifact: Artifact, board: Board, memory_mode: str | None = None) -> BoardFit:
    """Check an artifact against a board, for firmware with the C runtime.

    memory_mode  a name of `vela.ini`; by default the one that the artifact was compiled with, else
                 the board's usual one

    Findings: E415 and E442 for an NPU, E415 for a memory mode that the board has not, E480 for an
    architecture that its hardware is too old for, E481 for a memory that the NPU does not reach,
    E468 for one that is too small, E196 and E450 to E454 for what no device executes, E464 and
    E465 for missing kernels.
    """
    mode = memory_mode or mode_on(artifact, board)
    findings = [*_of_npu(artifact, board), *_of_mode(board, mode)]
    try:
        program = device_program(artifact)
    except MizzenError as error:
        return BoardFit(board, mode, {}, (*findings, error.diagnostic))
    findings += [*_of_versions(program), *_of_kernels(program)]
    needed: Mapping[Role, int] = {}
    if not findings:
        needed = container_needs(c_container(artifact).data)
        findings += memory_findings(board, mode, needed)
    return BoardFit(board, mode, needed, tuple(findings))


def memory_fit(
    artifact: Artifact,
    board: Board,
    needed: Mapping[Role, int],
    memory_mode: str | None = None,
    remedy: Remedy | None = None,
) -> BoardFit:
    """Check an artifact against a board, whatever runtime executes it.

    needed  bytes by role, as `mizzen.analysis.memory.needs_of` counts them
    remedy  says what would help where the arena is too large

    Findings: E415 and E442 for an NPU, E415 for a memory mode that the board has not, E481 for a
    memory that the NPU does not reach, E468 for one that is too small, E196 for operators that no
    runtime of a device has kernels for.
    """
    mode = memory_mode or mode_on(artifact, board)
    findings = [*_of_npu(artifact, board), *_of_mode(board, mode)]
    if missing := without_kernels(artifact.steps):
        findings.append(no_kernels(artifact.name, missing).diagnostic)
    if not any(finding.code == "E415" for finding in _of_mode(board, mode)):
        findings += memory_findings(board, mode, needed, remedy)
    return BoardFit(board, mode, needed, tuple(findings))


def _of_npu(artifact: Artifact, board: Board) -> Iterator[Diagnostic]:
    if artifact.accelerator is None:
        return
    try:
        board.require_npu(artifact.accelerator)
    except MizzenError as error:
        yield error.diagnostic


def _of_mode(board: Board, name: str) -> Iterator[Diagnostic]:
    try:
        mode = board.mode(name)
    except MizzenError as error:
        yield replace(
            error.diagnostic,
            help="compile with another --memory-mode, or describe the board in a file of your own",
        )
        return
    yield from _unreached(board, mode)


def _unreached(board: Board, mode: MemoryMode) -> Iterator[Diagnostic]:
    for role in REACHED:
        memory = board.memory(role, mode)
        if not memory.npu:
            yield fail(
                "E481",
                f"the NPU must reach {memory.name} of {board.name}, where the {role.value} lies, "
                "and does not",
                help="place it in another memory in the board's file",
            ).diagnostic


def _of_versions(program: DeviceProgram) -> Iterator[Diagnostic]:
    calls = (call for call in program.calls if isinstance(call, NpuCall))
    seen: set[Version] = set()
    for call in calls:
        hardware = driver.configuration(driver.parse(call.payload).hardware)
        released = RELEASED[hardware.arch]
        if hardware.arch_version in seen:
            continue
        seen.add(hardware.arch_version)
        if hardware.arch_version[0] != released[0] or hardware.arch_version[1] > released[1]:
            yield fail(
                "E480",
                f"the network must be for architecture {_dotted(released)} of "
                f"{hardware.arch.value} or older, and is for {_dotted(hardware.arch_version)}",
                rule="Ethos-U core driver, ethosu_driver.c: the major numbers are compared, and "
                "the minor ones",
                help="compile it with a compiler that knows the hardware",
            ).diagnostic


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))


def _of_kernels(program: DeviceProgram) -> Iterator[Diagnostic]:
    """Return every call that the C runtime cannot execute, each kind of refusal once."""
    seen: set[str] = set()
    for call in program.calls:
        if not isinstance(call, KernelCall):
            continue
        try:
            lower(replace(program, calls=(call,)), tabulated)
        except MizzenError as error:
            diagnostic = error.diagnostic
            if diagnostic.message not in seen:
                seen.add(diagnostic.message)
                yield diagnostic
