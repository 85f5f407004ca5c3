"""Every benchmark's smallest case: that it runs, and that its figures are of what it names.

A default that changes what a benchmark compiles, or compares with, moves a figure past its bounds
here. Bounds are wide: of times they only say what cannot be; of all else, what was published.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from shutil import copy, which
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODELS = Path(os.environ.get("MIZZEN_MODELS", ROOT.parent / "shared" / "models"))
FOLDER = ROOT / "benchmarks"
HELLO, KWS, PERSON, VWW = "hello_world_int8", "kws_micronet_m", "person_detect", "vww_96_int8"
U55 = "ethos-u55-128"
SOME = (1e-9, math.inf)
"""More than none."""
NONE = (0.0, 0.0)

FVP_ROWS: dict[str, Any] = {
    "platform": {
        "timing_adapter": {
            "axi0": {
                "max_reads": 8, "max_writes": 8, "read_latency": 32, "write_latency": 32,
                "pulse_on": 3999, "pulse_off": 1, "words_per_pulse": 4000,
            },
            "axi1": {
                "max_reads": 2, "max_writes": 0, "read_latency": 64, "write_latency": 0,
                "pulse_on": 320, "pulse_off": 80, "words_per_pulse": 50,
            },
        }
    },
    "rows": [
        {
            "model": f"{KWS}.tflite",
            "fvp": {
                "total_cycles": 414_172, "axi0_read_beats": 132_130, "axi0_write_beats": 48_252,
                "axi1_read_beats": 17_544,
            },
        }
    ],
}  # fmt: skip
"""One network's counts. Ref: Arm ML Embedded Evaluation Kit, docs/use_cases/kws.md."""


@dataclass(frozen=True)
class Case:
    """The least that a benchmark does.

    words     of its command line; FVP is a file of `FVP_ROWS`, NETWORKS the folder of `networks`
    figures   bounds of the figures that it prints
    networks  all that it may see
    needs     programs and packages besides
    files     other networks of the models' folder, which its command line names
    """

    words: str = "--json"
    figures: Mapping[str, tuple[float, float]] = field(
        default_factory=dict[str, tuple[float, float]]
    )
    networks: tuple[str, ...] = (HELLO,)
    needs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


QUICK: dict[str, Case] = {
    # 41 % and more where the program is not Vela's.
    "timing": Case(
        "--rows FVP --no-speed --json", {"fvp_worst": (0.0, 0.06), "vela_worst": (0.0, 0.06)},
        (KWS,),
    ),
    "first_difference": Case(
        f"{HELLO} --accelerator-config {U55} --generator own --count 6 --json",
        {"planted": (6, 6), "named": (0.8, 1.0), "named_visible": (0.8, 1.0)},
    ),
    "hazards": Case(
        f"NETWORKS/{HELLO}.tflite --accelerator-config {U55} --json",
        {"hazards_over_run": (0.0, 2.0), "hazards_over_compile": (0.0, 1.0)},
    ),
    "compare": Case(
        "--models NETWORKS --json", {"layers_differing": NONE, "layers_seen": (1.0, 1.0)}
    ),
    "runtime_size": Case(
        "--json", {"core_text_bytes": (500, 8_192), "core_ram_bytes": (1, 2_048)},
        needs=("arm-none-eabi-gcc",),
    ),
    "fuzz": Case(
        "--programs 1 --json",
        {"programs": (0, 1), "silent_differences": NONE, "raw_exceptions": NONE},
    ),
    "report": Case("--json", {"report_bytes": (50_000, 1_000_000), "report_seconds": SOME}, (VWW,)),
    "planted_registers": Case(
        "--chains residual --npus ethos-u65-256 --every 24 --json",
        {"planted": SOME, "share": (0.5, 1.0)},
    ),
    "mutations_streams": Case(
        "--count 60 --json", {"mutated_streams": (60, 60), "exceptions": NONE, "hangs": NONE}
    ),
    "weight_streams": Case(f"--on {U55} --json", {"bytes_ratio": (0.8, 1.0)}, ("ad01_int8",)),
    "flipped_bits": Case(
        "--smallest --count 70 --json",
        {"flipped": (70, 70), "found": (70, 70), "told": (70, 70), "located": (1.0, 1.0)},
        (),
    ),
    "predictions": Case(
        "--smallest --json",
        {"times": (1, 1), "time_known_worst": (0.0, 0.15), "energy_fitted": (0.0, 0.15)},
    ),
    "calibration": Case("--rows FVP --json", {"fit_worst": (0.0, 0.05)}, (KWS,)),
    "parts": Case(
        f"digits --on {U55} --generator own --json",
        {"sum_over_whole": (1.0, 1.5), "unequal": NONE, "parts": (7, 7)},
    ),
    "vela_forms": Case("--smallest --json", {"cells": (3, 3), "equal": (3, 3)}),
}  # fmt: skip

SLOW: dict[str, Case] = {
    # Of Vela's and of our own code: at most as many cycles, as little memory.
    "generator": Case(
        f"--only {HELLO} --on {U55} --cycles-alone --json", {"u55_128_cycles_ratio": (0.1, 1.0)}
    ),
    "tune": Case(
        f"--only {HELLO} --on {U55} --jobs 1 --json", {"tune_cycles_ratio": (0.1, 1.0)}
    ),
    "proof": Case(
        "--only ad01_int8 --mistakes 6 --inputs 64 --plants-only --json",
        {"planted_found": (0.9, 1.0)}, ("ad01_int8",),
    ),
    "emulate": Case(
        "--json", {"invoke_ms": (0.0, 20.0), "mips": SOME}, (PERSON,),
        ("arm-none-eabi-gcc", "unicorn"),
    ),
    "evaluate": Case("--json", {"evaluate_ratio": (0.0, 20.0)}, ("kws_ref_model",)),
    "simulator": Case(
        f"--accelerator-config {U55} --json", {"batch1_ratio": SOME, "batch64_ratio": SOME},
        ("kws_ref_model", VWW, "pretrainedResnet_quant", PERSON, "ad01_int8",
         "micro_speech_quantized", HELLO),
    ),
    "ethos_n_weights": Case("--json", {"weights_per_s": SOME, "decoded_weights_per_s": SOME}),
    "mesh_placements": Case("--json", {"searched_us": SOME, "hilbert_us": SOME}),
    "mesh": Case(
        "--json",
        {"violations": NONE, "inexact_tensors": NONE},
        networks=("kws_ref_model", "pretrainedResnet_quant", "ad01_int8"),
    ),
    "mutations_onnx": Case(
        "--count 200 --folder FOLDER --json", {"mutated_inputs": (200, 200)}, needs=("onnx",),
    ),
    "onnx_networks": Case(
        "--json", {"on_npu": (1.0, 1.0), "steps_most": (0.0, 1.0), "top1": (1.0, 1.0)},
        needs=("onnx", "onnxruntime"), files=("onnx/emmtrix/micro_kws_m_static_qdq.onnx",),
    ),
    "onnx_operators": Case(
        "--only Conv,Add --outputs 20000 --json",
        {"onnx_operators": SOME, "onnx_worst_step": (0, 1)}, needs=("onnx",),
    ),
    "onnx_cases": Case(
        "--types int8 --kinds Relu Gather --json",
        {"tracebacks": NONE, "off_int8": NONE, "off_runtime_int8": NONE, "lowered_int8": SOME},
        needs=("onnx", "onnxruntime"),
    ),
    "pte": Case("--json", {"failed": NONE, "pte_seconds": SOME}, needs=("torch", "torchvision")),
    "interruptions": Case(
        "--commands compile --count 1 --disks 2 --json",
        {"damaged": NONE, "mixed": NONE, "files_left": NONE, "processes_left": NONE},
    ),
}  # fmt: skip

ELSEWHERE = {
    "against_executorch": "needs ExecuTorch in an environment of its own",
    "at_once": "prints no figures; tests/artifact/test_at_once.py has its smallest case",
    "ethosn": "tests/targets/ethos_n hold the same recorded answers, each by itself",
    "mutations": "tests/properties has its sample",
    "timing_u85": "needs Vela 5.0.0; tests of the timing have two of its networks as streams",
}
"""Benchmarks without a case here, and why."""


def programs() -> list[str]:
    """The benchmarks that are run by themselves; the others are parts of them."""
    return [
        path.stem
        for path in sorted(FOLDER.glob("*.py"))
        if "argparse" in path.read_text() and 'if __name__ == "__main__"' in path.read_text()
    ]


def test_every_benchmark_has_a_case() -> None:
    assert sorted({*QUICK, *SLOW, *ELSEWHERE}) == programs()


@pytest.mark.parametrize("name", QUICK)
def test_figures_are_of_what_they_name(name: str, tmp_path: Path) -> None:
    judge(name, QUICK[name], tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize("name", SLOW)
def test_figures_of_slow_ones_are(name: str, tmp_path: Path) -> None:
    judge(name, SLOW[name], tmp_path)


def judge(name: str, case: Case, folder: Path) -> None:
    """Run a case, and hold its figures to their bounds."""
    found = figures_of(name, case, folder)
    wrong = {
        key: (found.get(key), bounds)
        for key, bounds in case.figures.items()
        if not bounds[0] <= found.get(key, math.nan) <= bounds[1]
    }
    assert not wrong


def figures_of(name: str, case: Case, folder: Path) -> dict[str, float]:
    """Return what a benchmark prints; skip it where something is missing."""
    missing = [row for row in case.needs if which(row) is None and find_spec(row) is None]
    wanted = [*(f"{row}.tflite" for row in case.networks), *case.files]
    missing += [row for row in wanted if not (MODELS / row).is_file()]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    networks = folder / "networks"
    networks.mkdir()
    for network in case.networks:
        copy(MODELS / f"{network}.tflite", networks)
    rows = folder / "fvp.json"
    rows.write_text(json.dumps(FVP_ROWS))
    words = case.words.replace("NETWORKS", str(networks)).replace("FVP", str(rows))
    words = words.replace("FOLDER", str(folder / "work")).split()
    words += [str(MODELS / file) for file in case.files]
    ended = subprocess.run(
        [sys.executable, str(FOLDER / f"{name}.py"), *words],
        cwd=ROOT,
        env=os.environ | {"MIZZEN_MODELS": str(networks), "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    document: dict[str, Any] = json.loads(ended.stdout)
    return document.get("figures", document)
