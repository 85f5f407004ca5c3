"""An artifact against a board: everything that is in the way, each with what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

import mizzen
from mizzen.analysis.memory import memory_report, needs_of
from mizzen.artifact.artifact import Artifact
from mizzen.boards import Board, Role, find_board
from mizzen.diagnostics import Diagnostic
from mizzen.export import board_fit, c_container, memory_fit
from mizzen.export.board_fit import RELEASED
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.targets.ethos_u.machine import driver
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.config import ACCELERATORS

MAP = (1, 8, 8, 16)
U55 = "ethos-u55-128"


def network(last: str = "RELU") -> bytes:
    net = NetworkBuilder()
    x, y, z = (net.tensor(name, MAP, "int8", 0.1, 0) for name in ("x", "y", "z"))
    net.operator("ADD", [x, x], [y], ("AddOptions", {}))
    net.operator(last, [y], [z])
    return net.finish([x], [z])


def codes(findings: Sequence[Diagnostic]) -> list[str]:
    return [row.code for row in findings]


def compiled(accelerator: str = U55) -> Artifact:
    return mizzen.compile(network(), accelerator)


def smaller(board: Board, name: str, size_bytes: int) -> Board:
    rows = [
        replace(row, size_bytes=size_bytes) if row.name == name else row for row in board.memories
    ]
    return replace(board, memories=tuple(rows))


def test_what_fits_has_sizes_and_no_findings() -> None:
    artifact = compiled()
    found = board_fit(artifact, find_board("corstone300"))
    assert found.findings == ()
    assert found.memory_mode == "Shared_Sram"
    assert found.needed[Role.MODEL] == len(c_container(artifact).data)
    assert found.needed[Role.ARENA] >= 8 * 8 * 16


def test_an_npu_that_the_board_has_not() -> None:
    (found,) = board_fit(compiled(), find_board("corstone320")).findings
    assert str(mizzen.MizzenError(found)) == (
        "error[E415]: the NPU on corstone320 must be of ethos-u85, not 'ethos-u55-128'\n"
        "  help compile the network with --accelerator-config ethos-u85-256"
    )


def test_a_memory_mode_that_the_board_has_not() -> None:
    (found,) = board_fit(compiled(), find_board("corstone300"), "Nowhere").findings
    assert found.code == "E415"
    assert found.help == (
        "compile with another --memory-mode, or describe the board in a file of your own"
    )


def test_a_memory_that_is_too_small() -> None:
    artifact = compiled()
    needed = board_fit(artifact, find_board("corstone300")).needed[Role.ARENA]
    board = smaller(find_board("corstone300"), "SRAM", needed - 1)
    (found,) = board_fit(artifact, board).findings
    assert found.code == "E468"
    assert f"(arena {needed}, fast 0), and has {needed - 1}" in found.message
    assert board_fit(artifact, smaller(board, "SRAM", needed)).findings == ()


def test_a_memory_that_the_npu_does_not_reach() -> None:
    board = find_board("corstone300")
    rows = [replace(row, npu=row.name != "SRAM") for row in board.memories]
    found = board_fit(compiled(), replace(board, memories=tuple(rows))).findings
    assert codes(found) == ["E481", "E481"]
    assert found[0].message == (
        "the NPU must reach SRAM of corstone300, where the arena lies, and does not"
    )


def test_every_missing_kernel_is_named_once() -> None:
    net = NetworkBuilder()
    x, y = (net.tensor(name, MAP, "int8", 0.1, 0) for name in ("x", "y"))
    real = [net.tensor(name, MAP, "float32") for name in "abcd"]
    net.operator("ADD", [x, x], [y], ("AddOptions", {}))
    net.operator("DEQUANTIZE", [y], [real[0]])
    pool = {"stride_h": 1, "stride_w": 1, "filter_height": 1, "filter_width": 1}
    for source, result in pairwise(real[:3]):
        net.operator("L2_POOL_2D", [source], [result], ("Pool2DOptions", pool))
    ones = net.constant("ones", np.ones(1, np.float32))
    net.operator("FLOOR_MOD", [real[2], ones], [real[3]])
    artifact = mizzen.compile(net.finish([x], [real[3]]), U55)
    found = board_fit(artifact, find_board("corstone300")).findings
    assert codes(found) == ["E464", "E464"]
    assert [row.message.split()[8] for row in found] == [
        "tflite::L2_POOL_2D,",
        "tflite::FLOOR_MOD,",
    ]


def test_a_network_for_newer_hardware_than_there_is() -> None:
    """The driver compares the payload's architecture with the hardware's."""
    artifact = compiled()
    contents: Any = artifact.contents
    (step,) = contents.steps
    newer = driver.ID.pack({"arch_major": 1, "arch_minor": 2, "arch_patch": 0})
    hardware = replace(step.program.hardware, id_word=newer)
    step.program = replace(step.program, hardware=hardware)
    (found,) = board_fit(artifact, find_board("corstone300")).findings
    assert found.code == "E480"
    assert found.message == (
        "the network must be for architecture 1.1.0 of Ethos-U55 or older, and is for 1.2.0"
    )


def test_compilers_write_no_newer_architecture_than_the_hardware_has() -> None:
    assert set(RELEASED) == set(Arch)
    for accelerator in ("ethos-u55-32", "ethos-u65-512", "ethos-u85-2048"):
        assert ACCELERATORS[accelerator].arch in RELEASED
        boards = {"ethos-u85-2048": "corstone320"}
        board = find_board(boards.get(accelerator, "corstone300"))
        assert board_fit(compiled(accelerator), board).findings == ()


def test_what_each_memory_has_left_is_told() -> None:
    artifact = compiled()
    report = memory_report(artifact)
    board = find_board("corstone300")
    found = memory_fit(artifact, board, needs_of(report))
    assert not found.findings
    rows = {row.memory: row for row in found.headroom}
    assert rows["SRAM"].used_bytes == report.arena_bytes
    assert rows["SRAM"].left_bytes == (2048 << 10) - rows["SRAM"].used_bytes
    assert rows["DDR"].used_bytes == len(artifact.data)


def test_a_memory_that_is_too_small_for_the_interpreter_is_told() -> None:
    artifact = compiled()
    needed = needs_of(memory_report(artifact))
    board = smaller(find_board("corstone300"), "SRAM", needed[Role.ARENA] - 16)
    found = memory_fit(artifact, board, needed)
    assert codes(found.findings) == ["E468"]
    assert found.headroom[0].left_bytes == -16


def test_a_board_with_another_configuration_is_told() -> None:
    found = memory_fit(compiled(), find_board("grove_vision_ai_v2"), {})
    assert codes(found.findings) == ["E442"]
    assert found.findings[0].help == "compile the network with --accelerator-config ethos-u55-64"


def test_a_board_without_the_memory_mode_is_told() -> None:
    found = memory_fit(compiled(), find_board("himax_we2"), {Role.ARENA: 1}, "Shared_Sram")
    assert codes(found.findings) == ["E442", "E415"]
    assert found.headroom == ()
