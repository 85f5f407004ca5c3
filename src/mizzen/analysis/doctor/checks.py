"""What of an artifact, a board and its firmware fits together, without a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mizzen.analysis.doctor.causes import Cause
from mizzen.analysis.doctor.firmware import Firmware
from mizzen.analysis.doctor.stream import npu_steps
from mizzen.analysis.memory import memory_report, needs_of
from mizzen.artifact.device import device_program
from mizzen.artifact.steps import NpuStep, read_network
from mizzen.artifact.verifying import not_as_written
from mizzen.boards import Board, Role
from mizzen.diagnostics import MizzenError, Severity, did_you_mean
from mizzen.export.board_fit import RELEASED, memory_fit
from mizzen.export.memory_mode import compiled_mode, usual_mode
from mizzen.package.device import KernelCall
from mizzen.package.tflm import OPERATORS
from mizzen.targets.ethos_u.machine import driver
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.config import ACCELERATORS, TRAITS
from mizzen.targets.ethos_u.machine.program import PayloadForm

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact

ALIGNMENT_BYTES = 16
TFLITE = b"TFL3"
ETHOS_U = "ethos-u"
NOTHING_FOR_NPU = "the artifact has nothing for an NPU"
BACKEND = "EthosUBackend"
ONLY_COP1 = (1, 0)
"""The newest driver whose sources were read: up to it, COP1 is the only form.

Ref: ethosu_driver.c of 0.16 and 1.0, ETHOSU_FOURCC.
"""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    name   what, for people
    holds  None where it could not be checked
    said   what was found, or what is missing for the check
    cause  what does not hold, or would not
    help   what to do about the cause, where it is known better than by the cause alone
    """

    name: str
    holds: bool | None
    said: str
    cause: Cause | None = None
    help: str | None = None

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        return {
            "name": self.name,
            "holds": self.holds,
            "said": self.said,
            "cause": None if self.cause is None or self.holds is not False else self.cause.value,
        }


@dataclass(frozen=True, slots=True)
class Situation:
    """An artifact on a board, with what is known of its firmware."""

    artifact: Artifact
    board: Board | None
    firmware: Firmware


def checks(situation: Situation) -> Sequence[Check]:
    """Look at everything that the situation lets one look at, in the order in which it fails."""
    return [check for look in _LOOKS for check in look(situation)]


def _unchecked(
    name: str, needed: str, cause: Cause | None = None, help: str | None = None
) -> Check:
    return Check(name, None, needed, cause, help)


def _file(situation: Situation) -> Iterator[Check]:
    """What shows that the file is not as it was written, whatever of it can still be read."""
    for doubt in not_as_written(situation.artifact):
        yield Check("file", False, doubt.message, Cause.FILE_CHANGED, doubt.help)


def _npu(situation: Situation) -> Iterator[Check]:
    """Whether the stream is for the NPU that there is."""
    own, chip, board = (
        situation.artifact.accelerator,
        situation.firmware.accelerator,
        situation.board,
    )
    if own is None:
        yield Check("NPU", True, NOTHING_FOR_NPU)
        return
    if chip is not None:
        other = own.rpartition("-")[0] != chip.rpartition("-")[0]
        cause = Cause.OTHER_PRODUCT if other else Cause.OTHER_SIZE
        said = f"the stream is for {own}, the chip has {chip}"
        yield Check("NPU", own == chip, said, cause, _compile_for(chip))
    if board is None:
        if chip is None:
            yield _unchecked("NPU", "--board or --accelerator-config says which NPU there is")
        return
    yield from _npu_of_board(own, chip, board)


def _npu_of_board(own: str, chip: str | None, board: Board) -> Iterator[Check]:
    try:
        board.require_npu(own)
    except MizzenError as error:
        cause = Cause.OTHER_PRODUCT if error.diagnostic.code == "E415" else Cause.OTHER_SIZE
        yield Check("NPU", False, error.diagnostic.message, cause, error.diagnostic.help)
        return
    if board.accelerators:
        yield Check("NPU", True, f"{own}, which {board.name} has")
    elif chip is None:
        yield _unchecked(
            "NPU",
            f"the file of {board.name} names no number of MACs: give --accelerator-config",
        )


def _compile_for(chip: str) -> str | None:
    if chip not in ACCELERATORS:
        return None
    return f"compile the network with --accelerator-config {chip}"


def _registers(situation: Situation) -> Iterator[Check]:
    """Whether the driver looks for the NPU where the board has it."""
    address, board = situation.firmware.npu_address, situation.board
    if address is None or board is None:
        return
    known = [at for npu in board.npus for at in (npu.address, npu.alias) if at is not None]
    if not known:
        return
    said = f"the driver looks at {address:#010x}, {board.name} has it at " + " or ".join(
        f"{at:#010x}" for at in known
    )
    help = f"call ethosu_init with the address {known[0]:#010x}"
    yield Check("NPU's address", address in known, said, Cause.NPU_NOT_THERE, help)


def _architecture(situation: Situation) -> Iterator[Check]:
    for _, program in npu_steps(situation.artifact):
        hardware = driver.configuration(program.hardware)
        needs, has = hardware.arch_version, RELEASED[hardware.arch]
        holds = needs[0] == has[0] and needs[1] <= has[1]
        said = f"the stream asks for {_dotted(needs)}, the newest of this product is {_dotted(has)}"
        yield Check("architecture", holds, said, Cause.OTHER_ARCHITECTURE)
        return


def _form(situation: Situation) -> Iterator[Check]:
    """Whether the driver knows the payload's form."""
    forms = {program.form for _, program in npu_steps(situation.artifact)}
    if not forms:
        return
    if forms == {PayloadForm.COP1}:
        yield Check("payload", True, "COP1, which every driver takes")
        return
    version = situation.firmware.driver or (situation.board and situation.board.npu.driver)
    if not version:
        yield _unchecked("payload", "COP2, for new drivers only: --driver-version says which")
        return
    known = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if known and known <= ONLY_COP1:
        said = f"COP2, and driver {version} takes COP1 alone"
        yield Check("payload", False, said, Cause.PAYLOAD_FORM)
        return
    yield _unchecked("payload", f"COP2; whether driver {version} takes it is not known here")


def _stream(situation: Situation) -> Iterator[Check]:
    """Whether the streams can be read, and order their accesses."""
    operations = 0
    for step in situation.artifact.steps:
        if not isinstance(step, NpuStep):
            continue
        try:
            report = step.hazards
        except MizzenError as error:
            yield Check("stream", False, error.diagnostic.message, Cause.STREAM_UNREADABLE)
            return
        errors = [each for each in report.diagnostics if each.severity is Severity.ERROR]
        if errors:
            yield Check("stream", False, errors[0].message, Cause.HAZARD)
            return
        operations += report.operations
    if operations:
        yield Check("stream", True, f"{operations} operations, all readable, no hazards")


_CAUSE_OF = {
    "E468": Cause.MEMORY_TOO_SMALL,
    "E481": Cause.UNREACHED,
    "E196": Cause.NO_KERNEL,
}
"""Findings about memories, by their codes; an NPU and a memory mode have checks of their own."""


def _memory(situation: Situation) -> Iterator[Check]:
    """Whether everything fits the board's memories, and the NPU reaches them."""
    needed = needs_of(memory_report(situation.artifact))
    if situation.board is None:
        yield _unchecked("memories", "--board says what there is")
    else:
        yield from _of_board(situation, situation.board, needed)
    whose = " by TensorFlow Lite Micro" if situation.artifact.data[4:8] == TFLITE else ""
    yield from _arena(situation, needed, whose)


def _of_board(situation: Situation, board: Board, needed: Mapping[Role, int]) -> Iterator[Check]:
    mode = mode_on(situation, board)
    own = compiled_mode(situation.artifact)
    if own is None and situation.firmware.memory_mode is None and len(board.modes) > 1:
        said = f"no report is beside the artifact; taken as {mode}; --memory-mode says which"
        yield _unchecked("memory mode", said)
    elif own not in (None, mode):
        said = f"compiled for {own}, looked at as {mode}: that alone stops nothing"
        yield Check("memory mode", True, said)
    fit = memory_fit(situation.artifact, board, needed, mode)
    findings = [each for each in fit.findings if each.code in _CAUSE_OF]
    for each in findings:
        yield Check("memories", False, each.message, _CAUSE_OF[each.code], each.help)
    if not findings:
        rooms = (
            f"{room.memory} {room.used_bytes} of {room.size_bytes} bytes" for room in fit.headroom
        )
        yield Check("memories", True, f"{mode}: {', '.join(rooms) or 'nothing needed'}")


def mode_on(situation: Situation, board: Board) -> str:
    """Return the memory mode: the firmware's, else the artifact's, else the board's usual one.

    E415 for one of the firmware's that the board has not.
    """
    if situation.firmware.memory_mode is not None:
        board.mode(situation.firmware.memory_mode)
        return situation.firmware.memory_mode
    own = compiled_mode(situation.artifact)
    if own is not None and board.mode_of(own) is not None:
        return own
    return usual_mode(situation.artifact.accelerator, board)


def _began(situation: Situation) -> bool:
    """Whether the log shows that an inference of this artifact began, as for TFLM only it can."""
    return situation.firmware.invoked in operators_of(situation.artifact)


def _arena(situation: Situation, needed: Mapping[Role, int], whose: str) -> Iterator[Check]:
    """Whether arena and fast memory are large enough; other runtimes need another arena."""
    firmware = situation.firmware
    for name, option, has, needs, cause in (
        ("arena", "--arena", firmware.arena_bytes, needed[Role.ARENA], Cause.ARENA_TOO_SMALL),
        ("fast memory", "--fast", firmware.fast_bytes, needed[Role.FAST], Cause.FAST_TOO_SMALL),
    ):
        if not needs:
            continue
        if name == "arena" and _began(situation):
            said = f"{needs} bytes needed{whose}; the log shows that the inference began"
            yield Check(name, True, said)
            continue
        if has is None:
            said = f"{needs} bytes needed{whose}; {option} says what there is"
            yield _unchecked(name, said, cause, f"make it {needs} bytes, which the network needs")
            continue
        yield Check(
            name,
            has >= needs,
            f"{needs} bytes needed{whose}, {has} there",
            cause,
            f"make it {needs} bytes: {needs - has} more" if has < needs else None,
        )


def _addresses(situation: Situation) -> Iterator[Check]:
    """Whether model and arena lie at multiples of 16, in memories that the NPU reaches."""
    given = (
        ("model", situation.firmware.model_address, Cause.MODEL_UNALIGNED),
        ("arena", situation.firmware.arena_address, Cause.ARENA_UNALIGNED),
    )
    for name, address, cause in given:
        if address is None:
            yield _unchecked(f"address of the {name}", f"--{name}-address says where it lies")
            continue
        holds = address % ALIGNMENT_BYTES == 0
        said = f"{address:#010x} is {'a' if holds else 'no'} multiple of {ALIGNMENT_BYTES}"
        yield Check(f"address of the {name}", holds, said, cause)
        if situation.board is not None:
            yield from _reached(name, address, situation.board)


def _reached(name: str, address: int, board: Board) -> Iterator[Check]:
    placed = [memory for memory in board.memories if memory.address is not None]
    for memory in placed:
        if any(base <= address < base + memory.size_bytes for base in memory.bases):
            said = (
                f"in {memory.name}, which the NPU {'reaches' if memory.npu else 'does not reach'}"
            )
            yield Check(f"address of the {name}", memory.npu, said, Cause.UNREACHED)
            return
    if len(placed) == len(board.memories):
        said = f"{address:#010x} is in no memory of {board.name}"
        yield Check(f"address of the {name}", False, said, Cause.UNREACHED)
    else:
        yield _unchecked(f"address of the {name}", f"not every memory of {board.name} has its own")


def operators_of(artifact: Artifact) -> Sequence[str]:
    """Return what a runtime must have registered for an artifact, each once."""
    if artifact.data[4:8] == TFLITE:
        model = read_network(artifact.data, artifact.name)
        kinds = [each.kind for part in model.subgraphs for each in part.operators]
        return list(dict.fromkeys(kinds))
    try:
        program = device_program(artifact)
    except MizzenError:
        return []
    kernels = [call.operator for call in program.calls if isinstance(call, KernelCall)]
    own = [BACKEND] if any(isinstance(step, NpuStep) for step in artifact.steps) else []
    return list(dict.fromkeys([*own, *kernels]))


def _operators(situation: Situation) -> Iterator[Check]:
    """Whether the resolver has the operators."""
    needed = operators_of(situation.artifact)
    has = situation.firmware.operators
    if not needed:
        return
    if _began(situation):
        said = f"{', '.join(needed)}: the log shows that the inference began"
        yield Check("operators", True, said)
        return
    if has is None:
        said = f"needed: {', '.join(needed)}; --resolver says what there is"
        yield _unchecked("operators", said, Cause.OPERATOR_MISSING, _registered(needed))
        return
    missing = [name for name in needed if name not in has]
    said = f"without {', '.join(missing)}" if missing else f"{', '.join(needed)}: all there"
    meant = [did_you_mean(name, missing) for name in has if name not in needed]
    help = next(filter(None, meant), _registered(missing))
    yield Check("operators", not missing, said, Cause.OPERATOR_MISSING, help)


def _registered(kinds: Sequence[str]) -> str:
    """Say how operators are registered: for TensorFlow Lite Micro, by the resolver's methods."""
    known = [OPERATORS[kind].method if kind in OPERATORS else kind for kind in kinds]
    if any(kind in OPERATORS for kind in kinds):
        calls = ", ".join(f"{name}()" for name in known)
        return f"call {calls} of a MicroMutableOpResolver that has room for them"
    return f"link {', '.join(known)} into the firmware"


def _regions(situation: Situation) -> Iterator[Check]:
    """Whether the driver sends each region to a port that does what the stream needs."""
    board, own = situation.board, situation.artifact.accelerator
    if board is None or own not in ACCELERATORS:
        return
    arch = ACCELERATORS[own].arch
    name = mode_on(situation, board)
    mode = board.mode(name)
    said = (
        f"bus ports for {name}: QCONFIG {mode.qconfig} for the stream, REGIONCFG "
        f"{mode.regioncfg:#06x} for the data"
    )
    yield Check("regions", _writes(arch, mode.regions), said, Cause.UNREACHED)


def _writes(arch: Arch, regions: Sequence[int]) -> bool:
    """Whether the arena and the fast memory are behind a port that writes."""
    second = 2
    return TRAITS[arch].second_port_writes or all(index < second for index in regions[1:3])


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))


_LOOKS: tuple[Callable[[Situation], Iterator[Check]], ...] = (
    _file,
    _npu,
    _registers,
    _architecture,
    _form,
    _stream,
    _memory,
    _addresses,
    _regions,
    _operators,
)
