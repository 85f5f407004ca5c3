"""Costs side by side, growth since a baseline, Markdown: numbers beside independent counts."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import mizzen
from mizzen.analysis.comparison.growth import allowances_of, failures_of
from mizzen.analysis.comparison.versions import identities, version_of, version_of_artifact
from mizzen.analysis.cost import cost_report
from mizzen.analysis.memory import memory_report
from mizzen.artifact.loading import load
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.options import CompileOptions
from mizzen.diagnostics import MizzenError
from mizzen.report.markdown import markdown
from mizzen.report.versions import (
    Allowance,
    GrowthMeasure,
    Version,
    growths,
    read_versions,
    versions_file,
)

DIGITS = Path(__file__).resolve().parents[3] / "examples" / "digits" / "digits.tflite"


@pytest.fixture(scope="module")
def version() -> Version:
    return version_of(DIGITS, resolve_target(CompileOptions("ethos-u55-128")))


def test_figures_are_those_of_the_artifact(version: Version, tmp_path: Path) -> None:
    artifact = mizzen.compile(DIGITS, "ethos-u55-128")
    report = artifact.report
    assert report is not None
    areas = {row.name: row for row in report.areas}
    assert version.sram_bytes == memory_report(artifact).arena_bytes
    assert version.sram_bytes > areas["arena"].used_bytes  # TensorFlow Lite Micro's own besides
    assert version.flash_bytes == len(artifact.data)  # which lies there as it is
    assert version.file_bytes == len(artifact.data)
    assert report.time is not None
    assert version.inferences_per_second == report.time.inferences_per_second > 0
    assert version.cycles == report.cycles
    cost = cost_report(artifact)
    assert cost.cycles == version.cycles
    origins = [(row.origin, row.cycles) for row in cost.operations]
    owned = [n for origin, n in origins if origin and origin.operator is not None]
    assert sum(row.cycles for row in version.layers) == sum(owned)
    assert version.other_cycles == version.cycles - sum(owned)
    assert version.utilisation == pytest.approx(105_216 / (128 * version.cycles))
    file = tmp_path / artifact.name
    artifact.save(file)
    assert version_of_artifact(load(file)) == version


def test_an_artifact_of_any_compiler_has_costs(version: Version, tmp_path: Path) -> None:
    file = tmp_path / "net_vela.tflite"
    file.write_bytes(mizzen.compile(DIGITS, "ethos-u55-128").data)
    found = version_of_artifact(load(file))
    assert found.configuration == {"accelerator": "ethos-u55-128"}
    same = ("cycles", "sram_bytes", "flash_bytes", "file_bytes", "utilisation", "areas")
    assert [getattr(found, name) for name in same] == [getattr(version, name) for name in same]
    assert sorted(found.peak.values()) == sorted(version.peak.values())
    assert sum(row.cycles for row in found.layers) == found.cycles


def test_a_file_of_versions_is_read_as_it_was_written(version: Version, tmp_path: Path) -> None:
    (tmp_path / "base.json").write_bytes(versions_file([version]))
    assert read_versions(tmp_path / "base.json") == (version,)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"schema": "mizzen-versions", "version": 99}',
     '{"schema": "mizzen-versions", "version": 1, "versions": [{"model": 1}]}'],
)  # fmt: skip
def test_other_files_are_no_baselines(text: str, tmp_path: Path) -> None:
    (tmp_path / "base.json").write_text(text)
    with pytest.raises(MizzenError, match=r"E485.*must be a baseline of mizzen-versions 1"):
        read_versions(tmp_path / "base.json")


def test_what_may_grow_is_read() -> None:
    assert allowances_of("cycles=2%, sram=0,flash=1K,file=2MiB,cpu-operators=1") == {
        GrowthMeasure.CYCLES: Allowance(part=0.02),
        GrowthMeasure.SRAM: Allowance(),
        GrowthMeasure.FLASH: Allowance(1024),
        GrowthMeasure.FILE: Allowance(2 << 20),
        GrowthMeasure.CPU_OPERATORS: Allowance(1),
    }
    for wrong in ("cycles", "time=2%", "sram=lots", "sram=-1"):
        with pytest.raises(MizzenError, match=r"E488.*is written like cycles=2%"):
            allowances_of(wrong)


def test_growth_is_told_with_its_layers(version: Version) -> None:
    layers = tuple(
        replace(row, cycles=row.cycles + (70 if row.index == 2 else 0)) for row in version.layers
    )
    now = replace(version, cycles=version.cycles + 70, layers=layers)
    (row,) = growths([now], [version], {})
    assert [growth.measure for growth in row.growths if not growth.allowed] == [
        GrowthMeasure.CYCLES
    ]
    (failure,) = failures_of([row])
    assert failure.code == "E484"
    assert "grew by 70 cycles" in failure.message
    assert failure.message.endswith(": DEPTHWISE_CONV_2D conv2 +70")
    allowed = growths([now], [version], {GrowthMeasure.CYCLES: Allowance(70)})
    assert allowed[0].holds
    less = growths([now], [version], {GrowthMeasure.CYCLES: Allowance(69)})
    assert not less[0].holds


def test_memory_that_grows_is_told_with_its_area(version: Version) -> None:
    assert sum(version.peak.values()) <= version.sram_bytes == 2000
    areas = {**version.areas, "arena in Sram": version.areas["arena in Sram"] + 40}
    peak = {**version.peak, "conv9": 24}
    now = replace(version, sram_bytes=2040, areas=areas, peak=peak)
    (failure,) = failures_of(growths([now], [version], {GrowthMeasure.SRAM: Allowance(part=0.01)}))
    assert "grew by 40 bytes (+2.0 %) from 2,000 to 2,040" in failure.message
    assert failure.message.endswith(": arena in Sram +40, conv9 +24")


def test_each_memory_names_what_lies_in_itself(version: Version) -> None:
    assert sum(version.areas_in_sram.values()) == version.sram_bytes
    assert sum(version.areas_in_flash.values()) == version.flash_bytes
    areas = {name: size + 40 for name, size in version.areas.items()}
    now = replace(version, sram_bytes=2080, flash_bytes=version.flash_bytes + 40, areas=areas)
    sram, flash = failures_of(growths([now], [version], {}))
    assert sram.message.endswith("to 2,080: arena in Sram +40, runtime in Sram +40")
    assert flash.message.endswith(": constants in OffChipFlash +40")


def test_joined_names_of_layers_are_shortened(version: Version) -> None:
    layers = tuple(replace(layer, name=f"conv{layer.index};a;b") for layer in version.layers)
    more = tuple(replace(layer, cycles=layer.cycles + 1) for layer in layers)
    before = replace(version, layers=layers)
    now = replace(version, layers=more, cycles=version.cycles + len(more))
    changes = growths([now], [before], {})
    (failure,) = failures_of(changes)
    assert failure.message.endswith(
        ": CONV_2D conv0 +1, CONV_2D conv1 +1, DEPTHWISE_CONV_2D conv2 +1 and 5 more"
    )
    assert "| `CONV_2D conv0` |" in markdown(changes)
    assert ";a" not in markdown(changes)


def test_what_shrinks_is_no_failure(version: Version) -> None:
    less = replace(version, cycles=1, sram_bytes=1, flash_bytes=1, file_bytes=1)
    assert growths([less], [version], {})[0].holds


def test_a_percentage_is_of_what_it_was() -> None:
    assert Allowance(part=0.02).limit(101) == 103
    assert Allowance(5).limit(0) == 5


def test_markdown_has_the_numbers_and_hides_nothing(version: Version) -> None:
    now = replace(version, model="a|b`c.tflite", sram_bytes=version.sram_bytes + 100)
    before = replace(version, model="a|b`c.tflite")
    text = markdown(growths([now], [before], {}))
    assert "| SRAM | 2,000 | 2,100 | **+100 (+5.0 %)** | 0 |" in text
    assert "`a\\|b'c.tflite`" in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in rows} == {6, 7}
    assert text.count("<details>") == text.count("</details>") == 1
    assert len([line for line in rows if " NPU " in line]) == len(version.layers)


def test_the_schema_in_the_documentation_is_that_of_the_file(version: Version) -> None:
    from mizzen.report.versions import versions_as_dict

    document = json.loads(json.dumps(versions_as_dict([version])))
    assert document["schema"] == "mizzen-versions"
    (row,) = document["versions"]
    assert row["layers"][0] == {
        "index": 0, "kind": "CONV_2D", "name": "conv0", "device": "NPU",
        "cycles": version.layers[0].cycles,
    }  # fmt: skip


def test_names_are_told_apart_by_the_shortest_ends_of_their_paths() -> None:
    models = [
        "a/p/m.tflite",
        "b/p/m.tflite",
        "q/m.tflite",
        "m.tflite",
        "other.tflite",
        "./m.tflite",
    ]
    assert identities(models) == {
        "a/p/m.tflite": "a/p/m.tflite",
        "b/p/m.tflite": "b/p/m.tflite",
        "q/m.tflite": "q/m.tflite",
        "m.tflite": "m.tflite",
        "./m.tflite": "m.tflite",
    }
    assert identities(["/x/p/m.tflite", "/x/q/m.tflite"]) == {
        "/x/p/m.tflite": "p/m.tflite",
        "/x/q/m.tflite": "q/m.tflite",
    }
