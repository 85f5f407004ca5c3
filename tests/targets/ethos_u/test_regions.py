from __future__ import annotations

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.base_pointers import (
    DRIVER_DEFAULTS,
    MEMORY_MODES,
    PORTS,
    REGION_COUNT,
    MemoryMap,
    Port,
    base_pointers,
    region_configuration,
    require_memory,
    require_region,
)
from mizzen.targets.ethos_u.commands import Arch
from mizzen.targets.ethos_u.program import Program, TensorAddress

INT8 = np.dtype(np.int8)


def program(
    inputs: tuple[TensorAddress, ...] = (),
    outputs: tuple[TensorAddress, ...] = (),
    constants: int = 8,
) -> Program:
    return Program(
        words=np.zeros(0, np.uint32),
        hardware=None,
        region_bytes={0: 8, 1: 64},
        constants={0: np.zeros(constants, np.uint8)},
        inputs=inputs,
        outputs=outputs,
    )


@pytest.mark.parametrize(
    ("mode", "qconfig", "first_three"),
    [
        ("Sram_Only", 1, (1, 0, 0)),
        ("Shared_Sram", 3, (3, 0, 0)),
        ("Dedicated_Sram", 3, (3, 3, 0)),
    ],
)
def test_memory_modes_have_the_published_settings(
    mode: str, qconfig: int, first_three: tuple[int, ...]
) -> None:
    """Values of ExecuTorch's and CMSIS-Ethos-U's build files for each memory mode."""
    settings = region_configuration(MEMORY_MODES[mode])
    assert settings.qconfig == qconfig
    assert settings.indices[:3] == first_three
    assert len(settings.indices) == REGION_COUNT


@pytest.mark.parametrize("memory", MEMORY_MODES.values())
def test_every_region_goes_where_its_memory_is(memory: MemoryMap) -> None:
    settings = region_configuration(memory)
    assert settings.port(0) is memory.constants
    assert settings.port(1) is memory.arena
    assert settings.port(2) is memory.cache
    assert {settings.port(region) for region in range(3, 8)} == {memory.arena}


@pytest.mark.parametrize(
    ("arch", "regioncfg"), [(Arch.U55, 0x5553), (Arch.U65, 0x555B), (Arch.U85, 0x5553)]
)
def test_driver_defaults_are_the_words_seen_on_the_bus(arch: Arch, regioncfg: int) -> None:
    assert DRIVER_DEFAULTS[arch].regioncfg == regioncfg


def test_driver_defaults_are_memory_modes() -> None:
    ports = {
        arch: [settings.port(r) for r in range(3)] for arch, settings in DRIVER_DEFAULTS.items()
    }
    shared = [Port.EXTERNAL, Port.SRAM, Port.SRAM]
    dedicated = [Port.EXTERNAL, Port.EXTERNAL, Port.SRAM]
    assert ports == {Arch.U55: shared, Arch.U65: dedicated, Arch.U85: shared}


def test_settings_as_definitions() -> None:
    assert region_configuration(MEMORY_MODES["Dedicated_Sram"]).defines == (
        "NPU_QCONFIG=3",
        "NPU_REGIONCFG_0=3",
        "NPU_REGIONCFG_1=3",
        "NPU_REGIONCFG_2=0",
        "NPU_REGIONCFG_3=3",
        "NPU_REGIONCFG_4=3",
        "NPU_REGIONCFG_5=3",
        "NPU_REGIONCFG_6=3",
        "NPU_REGIONCFG_7=3",
    )


def test_each_product_has_two_ports() -> None:
    for arch in Arch:
        ports = PORTS[arch]
        registers = [name for port in Port for name in ports[port].registers]
        assert [name[-1] for name in registers] == ["0", "1", "2", "3"]


def test_base_pointers_follow_the_operator() -> None:
    assert base_pointers(1, 2) == (
        "read-only data",
        "scratch",
        "fast scratch",
        "input 0",
        "output 0",
        "output 1",
    )
    assert len(base_pointers(4, 4)) == REGION_COUNT


def test_regions_are_eight() -> None:
    assert require_region(7) == 7
    with pytest.raises(MizzenError) as caught:
        require_region(8)
    assert str(caught.value) == "error[E540]: a region must be in 0..7, not 8"


def test_memory_that_holds_everything() -> None:
    require_memory(program((TensorAddress("x", (4, 4), INT8, 1, 48),)))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            program((TensorAddress("x", (4, 4), INT8, 1, 49),)),
            'error[E541]: input "x" must lie inside the 64 bytes of region 1, not at 49..65',
        ),
        (
            program(outputs=(TensorAddress("y", (1,), INT8, 1, -1),)),
            'error[E541]: output "y" must lie inside the 64 bytes of region 1, not at -1..0',
        ),
        (
            program(outputs=(TensorAddress("y", (1,), INT8, 2, 0),)),
            'error[E540]: output "y" lies in region 2, which the program does not have',
        ),
        (
            program(constants=9),
            "error[E541]: constants must lie inside the 8 bytes of region 0, not at 0..9",
        ),
    ],
)
def test_memory_that_does_not(wrong: Program, message: str) -> None:
    with pytest.raises(MizzenError) as caught:
        require_memory(wrong)
    assert str(caught.value) == message
