"""Definitions against TOSA's own tools, which other people wrote from the same specification.

The Python that has the tools is named by MIZZEN_TOSA_PYTHON; without it, these tests skip.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mizzen.ops import DEFINITIONS, Definition

SCRIPT = Path(__file__).with_name("tosa_tools.py")

# Types that TOSA 1.1 adds, which the tools know too.
LATER = {"INT64", "FP8E4M3", "FP8E5M2"}
# More that TOSA 1.1 adds. Of ARGMAX, 1.1 has i32 with i64 results; the tools list it under 1.0,
# whose table has none.
BEYOND = {"ARGMAX": {"INT32"}, "GATHER": {"BOOL"}, "SCATTER": {"BOOL"}}
# What the tools have no rows for: no test of theirs is about one operator of these.
WITHOUT_TESTS = {"CUSTOM", "VARIABLE", "VARIABLE_READ", "VARIABLE_WRITE"}
# Where the tools count otherwise: the values of a constant are an operand, lists have two parts.
COUNTED_OTHERWISE = {"CONST", "CONST_SHAPE", "CONCAT", "COND_IF", "WHILE_LOOP"}
# Kept in the graph's attributes, but elsewhere in a file.
NOT_IN_SCHEMA = {
    "CONST": {"values"},
    "CONST_SHAPE": {"values"},
    "VARIABLE": {"name", "type", "initial"},
    "VARIABLE_READ": {"name", "type"},
    "VARIABLE_WRITE": {"name"},
}
KINDS = sorted(DEFINITIONS.keys() - WITHOUT_TESTS)


@pytest.fixture(scope="module")
def tools() -> dict[str, Any]:
    python = os.environ.get("MIZZEN_TOSA_PYTHON")
    if not python:
        pytest.skip("no TOSA tools: set MIZZEN_TOSA_PYTHON to a Python that has tosa-tools")
    ran = subprocess.run([python, SCRIPT], capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def first_types(definition: Definition) -> set[str]:
    if definition.operands:
        return {key[0].name for key in definition.by_operands}
    return {row.types[definition.results[0][1]].name for row in definition.rows}


@pytest.mark.parametrize("kind", KINDS)
def test_operands(kind: str, tools: dict[str, Any]) -> None:
    definition = DEFINITIONS[kind]
    for row in tools["operators"][kind]:
        if kind not in COUNTED_OTHERWISE:
            assert row["operands"] == len(definition.operands)
        constant = [index for index, operand in enumerate(definition.operands) if operand.constant]
        assert constant == row["constant"]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if DEFINITIONS[kind].rows])
def test_element_types(kind: str, tools: dict[str, Any]) -> None:
    definition = DEFINITIONS[kind]
    theirs = {each[0] for row in tools["operators"][kind] for each in row["types"]} - LATER
    if kind == "SELECT":
        theirs = {"BOOL"}  # they list the type of the second operand
    theirs -= BEYOND.get(kind, set())
    assert first_types(definition) == theirs


@pytest.mark.parametrize("kind", ["CONV2D", "CONV3D", "DEPTHWISE_CONV2D", "TRANSPOSE_CONV2D"])
def test_combinations_of_element_types(kind: str, tools: dict[str, Any]) -> None:
    definition = DEFINITIONS[kind]
    (row,) = tools["operators"][kind]
    theirs = {tuple(each) for each in row["types"] if not LATER & set(each)}
    assert {tuple(dtype.name for dtype in key) for key in definition.by_operands} == theirs


@pytest.mark.parametrize("kind", sorted(DEFINITIONS))
def test_attributes(kind: str, tools: dict[str, Any]) -> None:
    attributes = {attribute.name for attribute in DEFINITIONS[kind].attributes}
    schema = set(tools["attributes"][kind.replace("_", "")])
    assert attributes - NOT_IN_SCHEMA.get(kind, set()) == schema
