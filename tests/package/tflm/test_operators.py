"""The table of TensorFlow Lite Micro's operators: the schema's names, and a checkout's, if any."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from mizzen.flatbuffer.tflite import BuiltinOperator
from mizzen.package.tflm import OPERATORS

TFLM = Path(os.environ.get("MIZZEN_TFLM", ""))
RESOLVER = TFLM / "tensorflow" / "lite" / "micro" / "micro_mutable_op_resolver.h"
CUSTOM = {
    "CIRCULAR_BUFFER", "TFLM_DECODE", "TFLite_Detection_PostProcess", "ethos-u",
    *(name for name in OPERATORS if name.startswith("Signal")),
}  # fmt: skip
METHOD = re.compile(r"TfLiteStatus (Add\w+)\((.*?)\n  \}", re.DOTALL)
BUILTIN = re.compile(r"AddBuiltin\(BuiltinOperator_(\w+)")
CODE = re.compile(r'AddCustom\(\s*"([^"]+)"')


def test_names_are_the_schemas() -> None:
    assert OPERATORS.keys() - CUSTOM <= set(BuiltinOperator.__members__)
    assert len({row.method for row in OPERATORS.values()}) == len(OPERATORS)


def test_rows_are_those_of_the_users_checkout() -> None:
    if not RESOLVER.is_file():
        pytest.skip("MIZZEN_TFLM names no checkout of tflite-micro")
    found: dict[str, str] = {}
    for method, body in METHOD.findall(RESOLVER.read_text()):
        kinds = [*BUILTIN.findall(body), *CODE.findall(body)]
        if kinds:
            found[method] = kinds[0]
    found["AddEthosU"] = "ethos-u"
    assert found == {row.method: row.kind for row in OPERATORS.values()}
    files = {name for row in OPERATORS.values() for name in row.sources}
    assert [name for name in sorted(files) if not (TFLM / name).is_file()] == []
