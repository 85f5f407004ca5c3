"""The NPU as a device: registers, queue, faults; whatever is written to it, it stays a device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mizzen
from mizzen.artifact.steps import NpuStep
from mizzen.boards import find_board
from mizzen.emulate.device import NpuDevice
from mizzen.emulate.guest import GuestMemory
from mizzen.emulate.processor import Deadline
from mizzen.emulate.queue import TimeIsUpError
from mizzen.emulate.registers import FAULTS, RESET_ID, Access, register_map
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.machine.commands import Arch, Instruction, encode, instruction_set
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from mizzen.targets.ethos_u.machine.program import Program

BOARD = find_board("corstone300")
MODEL, ARENA = 0x7000_0000, 0x3100_0000
CONSTANTS = MODEL + 0x10_0000
STATUS, CMD, RESET, QBASE, QREAD, QSIZE, PROT, CONFIG = 4, 8, 0xC, 0x10, 0x18, 0x20, 0x24, 0x28
IMAGES = np.random.default_rng(3).integers(-128, 128, (4, 8, 8, 1), np.int8)


def program_for(repository: Path, accelerator: str) -> Program:
    network = repository / "examples" / "digits" / "digits.tflite"
    artifact = mizzen.compile(network, accelerator, prove="off")
    (step,) = (step for step in artifact.steps if isinstance(step, NpuStep))
    program = step.program
    assert isinstance(program, Program)
    return program


@pytest.fixture(scope="module")
def program(repository: Path) -> Program:
    return program_for(repository, "ethos-u55-128")


class Bench:
    """A device with a program in its board's memory."""

    def __init__(self, program: Program, accelerator: str = "ethos-u55-128") -> None:
        self.memory = GuestMemory(BOARD)
        self.device = NpuDevice(ACCELERATORS[accelerator], self.memory)
        self.program = program
        self.put(MODEL, program.words.tobytes())
        self.put(CONSTANTS, program.constants[0].tobytes())
        self.point()

    def put(self, address: int, data: bytes) -> None:
        self.memory.rest(address)[: len(data)] = np.frombuffer(data, np.uint8)

    def point(self) -> None:
        self.device.write(RESET, 1)
        self.device.read(STATUS)
        size = self.program.words.nbytes
        for offset, value in ((QBASE, MODEL), (QSIZE, size), (0x80, CONSTANTS)):
            self.device.write(offset, value)
        for region in (1, 2):
            self.device.write(0x80 + 8 * region, ARENA)

    def infer(self, image: np.ndarray) -> np.ndarray:
        (given,), (result,) = self.program.inputs, self.program.outputs
        self.put(ARENA + given.offset, image.tobytes())
        self.device.write(CMD, 1)
        found = self.memory.rest(ARENA + result.offset)[: result.size_bytes]
        return found.copy().view(result.dtype).reshape(result.shape)


@pytest.mark.parametrize("accelerator", ["ethos-u55-32", "ethos-u65-512", "ethos-u85-1024"])
def test_inferences_are_the_simulators(repository: Path, accelerator: str) -> None:
    program = program_for(repository, accelerator)
    bench = Bench(program, accelerator)
    expected = Simulator(program).run([IMAGES[:, np.newaxis]], len(IMAGES)).outputs[0]
    for image, scores in zip(IMAGES, expected, strict=True):
        assert np.array_equal(bench.infer(image), scores)
        assert bench.device.read(STATUS) & 0xFFFF == 0x22


def test_constants_that_firmware_exchanges_are_used(program: Program) -> None:
    bench = Bench(program)
    bench.infer(IMAGES[0])
    changed = program.constants[0].copy()
    known = Simulator(program).plan.used_bytes[0]
    other = None
    for at in range(known):
        changed[at] ^= 1
        try:
            other = Simulator(replace(program, constants={0: changed}))
            break
        except mizzen.MizzenError:
            changed[at] ^= 1
    assert other is not None
    bench.put(CONSTANTS, changed.tobytes())
    expected = other.run([IMAGES[:1, np.newaxis]], 1).outputs[0][0]
    assert np.array_equal(bench.infer(IMAGES[0]), expected)


def test_a_pointer_that_is_not_written_keeps_its_value(program: Program) -> None:
    bench = Bench(program)
    first = bench.infer(IMAGES[0])
    bench.device.write(CMD, 2)
    assert np.array_equal(bench.infer(IMAGES[0]), first)
    assert bench.device.invocation_count == 2


def test_an_interrupt_stays_until_it_is_cleared(program: Program) -> None:
    device = Bench(program).device
    device.write(CMD, 1)
    assert device.irq
    device.write(CMD, 0xC)
    assert device.irq
    device.write(CMD, 2)
    assert not device.irq
    assert device.read(STATUS) & 0xFFFF0022 == 0xFFFF0020
    device.write(CMD, 0xFFFF0000)
    assert device.read(STATUS) >> 16 == 0


def test_a_fault_asks_for_a_reset(program: Program) -> None:
    bench = Bench(program)
    device = bench.device
    device.write(QSIZE, 2)
    device.write(CMD, 1)
    assert device.read(STATUS) & FAULTS
    device.write(QSIZE, program.words.nbytes)
    device.write(CMD, 1)
    assert device.read(STATUS) & FAULTS
    assert device.diagnostics[-1].render() == (
        "warning[E432]: the NPU was started after an error, and must be reset before"
    )
    bench.point()
    device.write(CMD, 1)
    assert not device.read(STATUS) & FAULTS


def test_a_reset_changes_the_state_of_security(program: Program) -> None:
    device = Bench(program).device
    device.write(RESET, 3)
    assert device.read(PROT) == 3
    assert [device.read(STATUS) & 8 for _ in range(2)] == [8, 0]
    device.write(PROT, 0)
    assert device.read(PROT) == 3


@pytest.mark.parametrize("accelerator", ["ethos-u65-256", "ethos-u85-256"])
def test_addresses_of_forty_bits_are_beyond_the_board(repository: Path, accelerator: str) -> None:
    bench = Bench(program_for(repository, accelerator), accelerator)
    bench.device.write(QBASE + 4, 1)
    bench.device.write(CMD, 1)
    assert bench.device.read(STATUS) & 0x3C == 0x4


def test_u55_has_no_high_words(program: Program) -> None:
    bench = Bench(program)
    bench.device.write(QBASE + 4, 1)
    bench.device.write(CMD, 1)
    assert bench.device.read(STATUS) & 0x3C == 0x20


def test_a_region_that_ends_before_the_map_is_a_bus_error(program: Program) -> None:
    bench = Bench(program)
    sram = next(row for row in BOARD.memories if row.name == "SRAM")
    bench.device.write(0x88, sram.base + sram.size_bytes - 16)
    bench.device.write(CMD, 1)
    assert bench.device.read(STATUS) & 0x3C == 0x4
    (found,) = bench.device.diagnostics
    assert found.message.startswith("the NPU stopped with a bus error: OP_")
    assert found.message.endswith("; BASEP1 is 0x311ffff0, in SRAM")


def test_what_cannot_end_in_time_is_not_begun(program: Program) -> None:
    bench = Bench(program)
    memory = bench.memory
    device = NpuDevice(ACCELERATORS["ethos-u55-128"], memory, on_time=Deadline(0.0).check)
    for offset, value in ((QBASE, MODEL), (QSIZE, program.words.nbytes), (0x80, CONSTANTS)):
        device.write(offset, value)
    device.write(0x88, ARENA)
    with pytest.raises(TimeIsUpError):
        device.write(CMD, 1)


@pytest.mark.parametrize("arch", list(Arch))
def test_identity_is_the_drivers(arch: Arch) -> None:
    row = next(row for row in ACCELERATORS.values() if row.arch is arch)
    device = NpuDevice(row, GuestMemory(BOARD))
    assert (device.read(0), device.read(CONFIG)) == (RESET_ID[arch], row.config_word)
    product = {Arch.U55: 0x80, Arch.U65: 0x81, Arch.U85: 0x82}[arch]
    assert [device.read(0xFE0 + 4 * index) for index in range(3)] == [product, 0xB5, 0x0B]
    assert [device.read(0xFF0 + 4 * index) for index in range(4)] == [0x0D, 0x90, 0x05, 0xB1]


@pytest.mark.parametrize("arch", list(Arch))
def test_registers_keep_what_their_masks_say(arch: Arch) -> None:
    row = next(row for row in ACCELERATORS.values() if row.arch is arch)
    device = NpuDevice(row, GuestMemory(BOARD))
    kept = ("QCONFIG", "REGIONCFG", "QBASE", "BASEP0", "BASEP7_HI", "PMEVTYPER0")
    rows = [row for row in register_map(arch).values() if row.name in kept]
    assert len(rows) == len(kept)
    for register in rows:
        assert register.access is Access.BOTH
        device.write(register.offset, 0xFFFF_FFFF)
        assert device.read(register.offset) == register.mask
        assert device.read(register.offset + 1, 1) == register.mask >> 8 & 0xFF
        device.write(register.offset, 0, 1)
        assert device.read(register.offset) == register.mask & ~0xFF


@given(
    st.lists(
        st.tuples(st.integers(0, 0x1FFF), st.integers(0, 0xFFFF_FFFF), st.sampled_from([1, 2, 4])),
        max_size=30,
    ),
    st.sampled_from(["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"]),
)
@settings(max_examples=50)
def test_any_accesses_are_answered(writes: list[tuple[int, int, int]], accelerator: str) -> None:
    device = NpuDevice(ACCELERATORS[accelerator], EMPTY)
    for offset, value, size in writes:
        at = offset - offset % size
        device.write(at, value & (1 << 8 * size) - 1, size)
        assert 0 <= device.read(at, size) < 1 << 8 * size


EMPTY = GuestMemory(BOARD)


@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_stream_is_a_fault_and_stays_in_memory(
    program: Program, data: st.DataObject
) -> None:
    bench = Bench(program)
    words = program.words.copy()
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(words) - 1))
        words[at] ^= np.uint32(1 << data.draw(st.integers(0, 31)))
    bench.put(MODEL, words.tobytes())
    bench.infer(IMAGES[0])
    status = bench.device.read(STATUS) & 0x3C
    assert status in {0x20, 0x10, 0x4}
    others = [bank for bank in bench.memory.banks if not bank.memory.npu]
    assert others
    assert not any(bank.data.any() for bank in others)


def test_results_that_do_not_fit_are_a_fault(program: Program) -> None:
    """This shows only when the stream is executed, since it depends on the input."""
    found = list(program.instructions)
    at = next(i for i, row in enumerate(found) if row.name == "SET_OFM_SCALE")
    found[at] = instruction_set(Arch.U55)["SET_OFM_SCALE"](shift=0, scale=0x7FFF_FFFF)
    bench = Bench(replace(program, words=encode(found, Arch.U55)))
    bench.infer(IMAGES[0])
    assert bench.device.read(STATUS) & 0x3C == 0x10
    assert [row.code for row in bench.device.diagnostics] == ["E641"]


def test_weights_that_no_network_has_are_not_decoded(program: Program) -> None:
    found = list(program.instructions)
    at = next(i for i, row in enumerate(found) if row.name == "SET_WEIGHT_LENGTH")
    found[at] = instruction_set(Arch.U55)["SET_WEIGHT_LENGTH"](length=1 << 26)
    bench = Bench(replace(program, words=encode(found, Arch.U55)))
    bench.infer(IMAGES[0])
    (said,) = bench.device.diagnostics
    assert said.message == "OP_CONV: weights must have at most 33554432 bytes, not 67108864"
    assert said.code == "E427"


def test_the_interrupt_mask_of_the_stream_is_its_history() -> None:
    machine = instruction_set(Arch.U55)
    stop: Instruction = machine["OP_STOP"](mask=0x1234)
    bench = GuestMemory(BOARD)
    device = NpuDevice(ACCELERATORS["ethos-u55-128"], bench)
    data = encode([stop], Arch.U55).tobytes()
    bench.rest(MODEL)[: len(data)] = np.frombuffer(data, np.uint8)
    device.write(QBASE, MODEL)
    device.write(QSIZE, len(data))
    device.write(CMD, 1)
    assert device.read(STATUS) == 0x1234_0022
    assert device.read(QREAD) == 4
