from __future__ import annotations

import json

from mizzen.diagnostics import Origin
from mizzen.isa.listing import lines, listing

from .toy import HALT, MOVE, PAINT

PROGRAM = [MOVE(distance=-3, speed=7), PAINT(colour=2, coats=4), HALT()]
ORIGINS = {8: Origin(operator=4, kind="CONV_2D", name="conv/Relu"), 0: Origin(operator=9)}


def test_text() -> None:
    assert listing(PROGRAM, ORIGINS) == [
        "     0  ff000702 fffffffd  MOVE                      distance=-3 speed=7",
        "     2  00101201           PAINT                     colour=BLUE coats=4"
        '  ; operator 4 CONV_2D -> "conv/Relu"',
        "     3  000000ff           HALT",
    ]


def test_data() -> None:
    data = [line.as_dict() for line in lines(PROGRAM, ORIGINS)]
    assert json.loads(json.dumps(data)) == [
        {
            "offset_words": 0,
            "words": ["ff000702", "fffffffd"],
            "command": "MOVE",
            "kind": "setting",
            "fields": {"distance": -3, "speed": 7},
        },
        {
            "offset_words": 2,
            "words": ["00101201"],
            "command": "PAINT",
            "kind": "operation",
            "fields": {"colour": "BLUE", "coats": 4},
            "operator": 'operator 4 CONV_2D -> "conv/Relu"',
        },
        {
            "offset_words": 3,
            "words": ["000000ff"],
            "command": "HALT",
            "kind": "control",
            "fields": {},
        },
    ]
