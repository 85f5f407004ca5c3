"""Files for other tools: Vela's columns by Vela itself, the schema by a validator, sums by hand."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mizzen
from mizzen.analysis.files import (
    document_schema,
    findings_document,
    inference_trace,
    node_data,
    per_layer_table,
    vela_tables,
)
from mizzen.analysis.findings import Findings, findings_of

from .hand_made import findings, small

jsonschema = pytest.importorskip("jsonschema")


@pytest.fixture(scope="module")
def real(model_file: Callable[[str], Path]) -> Findings:
    path = model_file("hello_world_int8.tflite")
    return findings_of(mizzen.compile(path, "ethos-u55-128", prove="off"))


def test_columns_of_layers_begin_with_those_that_vela_writes(
    real: Findings, model_file: Callable[[str], Path], tmp_path: Path
) -> None:
    words = [sys.executable, "-m", "ethosu.vela", str(model_file("hello_world_int8.tflite"))]
    words += ["--verbose-performance", "--output-dir", str(tmp_path)]
    words += ["--accelerator-config", "ethos-u55-128"]
    subprocess.run(words, check=True, capture_output=True)
    tables = vela_tables(real)
    assert list(tables) == [
        "hello_world_int8_per-layer.csv",
        "hello_world_int8_summary_Ethos_U55_High_End_Embedded.csv",
    ]
    for name, table in tables.items():
        with (tmp_path / name).open(newline="") as theirs:
            expected = next(csv.reader(theirs))
        assert next(csv.reader(table.decode().splitlines()))[: len(expected)] == expected


def test_rows_of_layers_add_up() -> None:
    rows = list(per_layer_table(small()))
    assert [row["Op Cycles"] for row in rows] == [100, 200, 300, 400]
    assert [row["NPU"] for row in rows] == [60, 160, 260, 400]
    assert [row["Network% (cycles)"] for row in rows] == [10, 20, 30, 40]
    assert [row["SRAM AC"] for row in rows] == [62, 62, 62, 0]
    assert [row["Staging Usage"] for row in rows] == [1024, 2048, 3072, 2048]
    assert rows[3]["Target"] == "CPU"


def test_a_trace_has_every_span_in_microseconds_and_what_is_alive() -> None:
    found = small()
    assert found.cost is not None
    document: dict[str, Any] = inference_trace(found.cost, found.memory)
    spans = [row for row in document["traceEvents"] if row["ph"] == "X"]
    assert [(row["name"], row["ts"], row["dur"]) for row in spans] == [
        ("0 CONV_2D", 0.0, 0.2),
        ("1 DEPTHWISE_CONV_2D", 0.2, 0.4),
        ("2 ADD", pytest.approx(0.6), pytest.approx(0.6)),
        ("3 SOFTMAX", pytest.approx(1.2), pytest.approx(0.8)),
    ]
    alive = [row["args"]["bytes"] for row in document["traceEvents"] if row["ph"] == "C"]
    assert alive == [1024, 2048, 3072, 2048]
    named = {row["args"]["name"] for row in document["traceEvents"] if row["ph"] == "M"}
    assert named == {"hand.tflite on ethos-u55-128", "MAC array", "CPU"}


def test_node_data_goes_by_the_tensors_of_the_model() -> None:
    data: dict[str, Any] = node_data(small())
    values = {name: row["value"] for name, row in data["results"].items()}
    assert values == {f"net/layer_{i};fused": 100 * (i + 1) for i in range(4)}
    assert [row["stop"] for row in data["gradient"]] == [0, 1]


@pytest.mark.parametrize("made", [small, lambda: findings(30), lambda: NOTHING_KNOWN])
def test_documents_are_as_the_schema_says(made: Callable[[], Findings]) -> None:
    document = json.loads(json.dumps(findings_document(made())))
    jsonschema.validate(document, document_schema())


NOTHING_KNOWN = replace(small(), compilation=None, cost=None, memory=None)


def test_a_document_of_a_real_artifact_is_as_the_schema_says(real: Findings) -> None:
    document = json.loads(json.dumps(findings_document(real)))
    jsonschema.validate(document, document_schema())
    rows = document["cost"]["operations"]
    assert document["cost"]["cycles"] == sum(row["cycles"] for row in rows)


@pytest.mark.parametrize(
    ("place", "wrong"),
    [(("cost", "cycles"), "many"), (("cost", "operations", 0, "device"), "GPU"), (("version",), 1)],
)
def test_the_schema_refuses_what_is_wrong(place: tuple[Any, ...], wrong: object) -> None:
    document: Any = json.loads(json.dumps(findings_document(small())))
    inside = document
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = wrong
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, document_schema())


def test_the_published_schema_is_the_one_of_the_program(
    repository: Path, update_golden: bool
) -> None:
    path = repository / "docs" / "reference" / "report.schema.json"
    text = json.dumps(document_schema(), indent=1) + "\n"
    if update_golden:
        path.write_text(text)
    assert path.read_text() == text
