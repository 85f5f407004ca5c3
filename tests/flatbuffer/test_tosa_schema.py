"""The TOSA schema against the one that comes with TOSA's own tools.

The Python that has the tools is named by MIZZEN_TOSA_PYTHON; without it, these tests skip.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from enum import IntEnum

import numpy as np
import pytest

from mizzen.flatbuffer.schema import Kind
from mizzen.flatbuffer.tosa import (
    NUMBERS,
    SCHEMA,
    NanMode,
    ResizeMode,
    RoundingMode,
    TosaType,
    encode,
)

FIND = "import sysconfig; print(sysconfig.get_path('purelib'))"
TYPES = {
    "bool": "bool",
    "int32": "i32",
    "string": "str",
    "ubyte": "u8",
    "uint32": "u32",
    "ulong": "u64",
}
# Tables to which TOSA 1.1 adds fields behind those there are.
GROWN = {"TosaGraph"}


@pytest.fixture(scope="module")
def python() -> str:
    found = os.environ.get("MIZZEN_TOSA_PYTHON")
    if not found:
        pytest.skip("no TOSA tools: set MIZZEN_TOSA_PYTHON to a Python that has tosa-tools")
    return found


@pytest.fixture(scope="module")
def theirs(python: str) -> str:
    ran = subprocess.run([python, "-c", FIND], capture_output=True, text=True, check=True)
    with open(f"{ran.stdout.strip()}/bin/tosa.fbs", encoding="utf-8") as file:
        return re.sub(r"//.*|\(.*?\)", "", file.read())


def members(text: str, kind: str, name: str) -> list[str]:
    body = re.search(rf"{kind} {name}(?::\w+)? *\{{(.*?)\}}", text, re.DOTALL)
    assert body is not None, name
    return [row.split("=")[0].strip() for row in body[1].split(",") if row.strip()]


def fields(text: str, table: str) -> list[tuple[str, str]]:
    body = re.search(rf"table {table} *\{{(.*?)\}}", text, re.DOTALL)
    assert body is not None, table
    rows = re.findall(r"(\w+)\s*:\s*(\[?\w+\]?)(?:\s*=\s*([-\w]+))?\s*;", body[1])
    return [(name, type_name) for name, type_name, _ in rows]


@pytest.mark.parametrize(
    ("ours", "name"),
    [
        (TosaType, "DType"),
        (ResizeMode, "ResizeMode"),
        (NanMode, "NanPropagationMode"),
        (RoundingMode, "RoundingMode"),
    ],
)
def test_enumerations(theirs: str, ours: type[IntEnum], name: str) -> None:
    known = members(theirs, "enum", name)
    assert {known.index(member.name): member.name for member in ours} == {
        member.value: member.name for member in ours
    }


def test_operations(theirs: str) -> None:
    known = members(theirs, "enum", "Op")
    assert list(NUMBERS) == known[1 : len(NUMBERS) + 1]
    attributes = members(theirs, "union", "Attribute")
    assert list(SCHEMA.unions["Attribute"][1:]) == attributes[: len(NUMBERS)]


@pytest.mark.parametrize("table", SCHEMA.tables)
def test_tables(theirs: str, table: str) -> None:
    enumerations = set(re.findall(r"enum (\w+)", theirs))

    def ours_of(type_name: str) -> str:
        inner = type_name.strip("[]")
        inner = "u32" if inner in enumerations else TYPES.get(inner, inner)
        return f"[{inner}]" if type_name.startswith("[") else inner

    ours = [
        (field.name, f"[{field.type_name}]" if field.is_vector else field.type_name)
        for field in SCHEMA.fields(table)
    ]
    unions = [field.name for field in SCHEMA.fields(table) if field.kind is Kind.UNION]
    expected = [(name, ours_of(type_name)) for name, type_name in fields(theirs, table)]
    assert unions == (["attribute"] if table == "TosaOperator" else [])
    if table in GROWN:
        expected = expected[: len(ours)]
    assert ours == expected


CONVERT = """
import json
import sys
from serializer.tosa_serializer import DType, TosaSerializer

rows = json.load(sys.stdin)
convert = TosaSerializer.convertDataToUint8Vec
print(json.dumps({name: [int(x) for x in convert(getattr(DType, name), values)]
                  for name, values in rows.items()}))
"""
VALUES: dict[str, list[int | float]] = {
    "BOOL": [0, 1, 1],
    "INT4": [-8, 7, 3, -1, 5],
    "INT8": [-128, 127, -1],
    "INT16": [-32768, 32767, -2],
    "INT32": [-(1 << 31), (1 << 31) - 1, -3],
    "INT48": [-(1 << 47), (1 << 47) - 1, -4],
    "FP16": [1.5, -0.25],
    "BF16": [1.5, -0.25],
    "FP32": [1.5, -0.1],
    "SHAPE": [-(1 << 40), 7],
}


def test_elements(python: str) -> None:
    ran = subprocess.run(
        [python, "-c", CONVERT],
        input=json.dumps(VALUES),
        capture_output=True,
        text=True,
        check=True,
    )
    ours = {name: encode(np.array(row), TosaType[name]).tolist() for name, row in VALUES.items()}
    assert ours == json.loads(ran.stdout)
