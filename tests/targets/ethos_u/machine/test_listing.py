from __future__ import annotations

import json

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError, Origin
from mizzen.targets.ethos_u.machine.commands import Arch, encode, instruction_set
from mizzen.targets.ethos_u.machine.listing import list_program
from mizzen.targets.ethos_u.machine.program import HardwareId, Program

U55 = instruction_set(Arch.U55)
STREAM = [
    U55["SET_IFM_BASE0"](address=4096),
    U55["SET_IFM_ZERO_POINT"](zero_point=-128),
    U55["OP_POOL"](pooling_mode=1),
    U55["OP_STOP"](mask=65535),
]
TEXT = """\
     0  00004000 00001000  SET_IFM_BASE0             address=4096
     2  ff800109           SET_IFM_ZERO_POINT        zero_point=-128
     3  00010005           OP_POOL                   pooling_mode=AVERAGE  ; operator 3 \
AVERAGE_POOL_2D -> "pool"
     4  ffff0000           OP_STOP                   mask=65535"""


def program(words: list[int], hardware: HardwareId | None) -> Program:
    return Program(
        words=np.array(words, np.uint32),
        hardware=hardware,
        region_bytes={},
        constants={},
        inputs=(),
        outputs=(),
        origins={12: Origin(operator=3, kind="AVERAGE_POOL_2D", name="pool")},
    )


WORDS = encode(STREAM, Arch.U55).tolist()
U55_128 = HardwareId(0x1807, 0x1006_6001)


def test_a_program_lists_its_commands_with_the_models_operators() -> None:
    listed = list_program(program(WORDS, U55_128))
    assert str(listed) == TEXT
    assert listed.stopped_by is None


def test_a_broken_program_lists_what_is_good() -> None:
    listed = list_program(program([*WORDS, 0x0FFF, 0], U55_128))
    assert str(listed) == TEXT
    assert listed.stopped_by is not None
    data = json.loads(json.dumps(listed.as_dict()))
    assert data["architecture"] == "Ethos-U55"
    assert [line["command"] for line in data["commands"]] == [one.name for one in STREAM]
    assert data["stopped_by"] == {
        "code": "E502",
        "severity": "error",
        "message": "0x00000fff must start a command of Ethos-U55, but bits 13:10 must be zero, "
        "not 0x3",
        "at": "command at word 5",
    }


def test_the_architecture_must_be_known() -> None:
    with pytest.raises(MizzenError, match="E526"):
        list_program(program(WORDS, None))
    assert str(list_program(program(WORDS, None), Arch.U55)) == TEXT
