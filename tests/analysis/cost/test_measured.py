"""A board whose memories were measured: its file, and the estimates that follow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mizzen.analysis.cost.measured import in_measured
from mizzen.boards import find_board, measured_file
from mizzen.boards.board import Board, Measured, MeasuredMemory
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.options import CompileOptions
from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Memory, Port
from mizzen.targets.ethos_u.machine.recorded_config import recorded
from mizzen.targets.ethos_u.machine.system_config import resolve

NPU, SYSTEM = "ethos-u55-128", "Ethos_U55_High_End_Embedded"
FLASH = MeasuredMemory("OffChipFlash", 0.4, 150, 0, 1.05, 1.2)
MEASURED = Measured(NPU, SYSTEM, "log.txt, 17 counts", (FLASH,))


@pytest.fixture
def board(tmp_path: Path) -> Board:
    path = tmp_path / "slow.toml"
    path.write_text(measured_file("corstone300", "slow", "Slow", MEASURED))
    return find_board(str(path))


def asked(
    board: Board, tmp_path: Path, accelerator: str = NPU, system_config: str | None = None
) -> EthosUConfiguration:
    name = str(tmp_path / f"{board.name}.toml")
    options = CompileOptions(accelerator, board=name, system_config=system_config)
    return resolve_target(options).configuration


def test_a_file_that_is_written_is_read_as_it_was(board: Board) -> None:
    assert board.measured == MEASURED
    assert board.memories == find_board("corstone300").memories


def test_a_strangers_name_cannot_end_the_text_of_its_file(tmp_path: Path) -> None:
    hostile = replace(MEASURED, source='x"\nname = "\x1b[31m\u202e')
    path = tmp_path / "mine.toml"
    path.write_text(measured_file("corstone300", "mine", "Mine", hostile))
    assert find_board(str(path)).measured == replace(MEASURED, source="x??name ? ???31m?")


def test_a_measurement_replaces_another_whole(board: Board, tmp_path: Path) -> None:
    sram = Measured(NPU, SYSTEM, "another", (MeasuredMemory("Sram", 7.0, 20, 20),))
    path = tmp_path / "again.toml"
    path.write_text(measured_file(f"{board.name}.toml", "again", "Again", sram))
    assert find_board(str(path)).measured == sram


def test_a_compilation_for_the_board_has_its_memories(board: Board, tmp_path: Path) -> None:
    configuration = asked(board, tmp_path)
    flash = configuration.system.behind(Port.AXI1)
    assert flash.memory is Memory.OFF_CHIP_FLASH
    assert configuration.bandwidth_bytes_per_second(Port.AXI1) == pytest.approx(
        0.4 * configuration.system.core_clock_hz
    )
    assert (flash.read_latency_cycles, flash.write_latency_cycles) == (150, 0)
    assert configuration.system.behind(Port.AXI0) == resolve(NPU).system.behind(Port.AXI0)
    again = recorded(configuration.as_dict())
    assert again is not None, "what a report records has them too"
    assert again.system == configuration.system


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"accelerator": "ethos-u55-256"},
            "the memories of slow were measured with ethos-u55-128, and this is ethos-u55-256: "
            "they are not taken",
        ),
        (
            {"system_config": "Ethos_U55_Deep_Embedded"},
            "the memories of slow were measured with Ethos_U55_High_End_Embedded, and this is "
            "Ethos_U55_Deep_Embedded: they are not taken",
        ),
    ],
    ids=["npu", "system"],
)
def test_memories_that_were_measured_otherwise_are_not_taken(
    board: Board, tmp_path: Path, more: dict[str, str], said: str
) -> None:
    configuration = asked(board, tmp_path, **more)
    assert [each.code for each in configuration.warnings] == ["W350"]
    assert configuration.warnings[0].message == said
    assert configuration.system.behind(Port.AXI1).read_latency_cycles != 150


def test_the_npu_that_was_measured_is_the_default(board: Board, tmp_path: Path) -> None:
    configuration = resolve_target(
        CompileOptions(board=str(tmp_path / f"{board.name}.toml"))
    ).configuration
    assert configuration.accelerator.name == NPU
    assert configuration.warnings == ()
    assert configuration.system.behind(Port.AXI1).read_latency_cycles == 150


def test_an_npu_that_was_measured_and_is_not_the_boards_is_no_default(tmp_path: Path) -> None:
    path = tmp_path / "other.toml"
    path.write_text(measured_file("grove_vision_ai_v2", "other", "Other", MEASURED))
    assert resolve_target(CompileOptions(board=str(path))).configuration.accelerator.name == (
        "ethos-u55-64"
    )


def test_a_board_that_nobody_measured_changes_nothing() -> None:
    configuration = resolve(NPU)
    assert in_measured(configuration, find_board("corstone300")) is configuration


def test_a_memory_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.toml"
    path.write_text(
        measured_file("corstone300", "twice", "Twice", replace(MEASURED, memories=(FLASH, FLASH)))
    )
    with pytest.raises(MizzenError) as caught:
        find_board(str(path))
    assert str(caught.value) == (
        "error[E411]: twice.toml: measured.memory[1].name must be there once, not 'OffChipFlash'"
    )
