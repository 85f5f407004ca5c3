"""How long networks take to be mapped onto a mesh, how near a bound they come, and if all is right.

``python benchmarks/mesh.py`` maps networks of shapes onto the SpiNNaker2 board of 48 chips and onto
36 chiplets, each in a fresh process: seconds are of the processor, imports, emission and writing
counted. With ``--json`` the figures:

map_resnet50_s          ResNet-50 onto 7,104 elements, every program written
map_mobilenetv2_s       MobileNetV2 onto 7,104 elements
map_resnet18_36_s       ResNet-18 onto 36 chiplets
resnet50_bound_ratio    images a second over what the arrays allow whatever the mapping, no waiting
mobilenetv2_bound_ratio the same
violations              findings of the checker, over these and the board with 1 % of it dead
inexact_tensors         tensors that differ from the reference: three networks, five machines

``--growth PAGE`` also maps MobileNetV2 onto machines of 36 to 28,416 elements, and draws on a page
how time and memory grow. Exits with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODELS = Path(os.environ.get("MIZZEN_MODELS", "../shared/models"))
REAL = ("kws_ref_model", "pretrainedResnet_quant", "ad01_int8")
MACHINES = ("one", "grid4x4", "simba36", "spinnaker2-1", "spinnaker2-48")
DEAD = 0.01
IMAGES = 3
KIB = 1024


@dataclass(frozen=True, slots=True)
class Study:
    """A network of shapes, a machine, how much of it is dead, and the most seconds it may take."""

    name: str
    network: str
    machine: str
    dead: float = 0.0
    bar_s: float | None = None
    least_ratio: float | None = None


STUDIES = (
    Study("resnet50", "resnet50", "spinnaker2-48", 0.0, 60, 0.55),
    Study("mobilenetv2", "mobilenet-v2", "spinnaker2-48", 0.0, 60, 0.75),
    Study("resnet18_36", "resnet18", "simba36", 0.0, 5, None),
    Study("resnet50_dead", "resnet50", "spinnaker2-48", DEAD),
    Study("mobilenetv2_dead", "mobilenet-v2", "spinnaker2-48", DEAD),
)
GROWN = "mobilenet-v2"
SMALLEST = "simba36"
BOARDS = ((2, 2), (4, 3), (8, 6), (16, 12))
"""Columns and rows of chips, 592 to 28,416 usable elements."""


def study(network: str, machine_name: str, dead: float, checked: bool) -> dict[str, Any]:
    """Map, write, estimate and check in this process."""
    from mizzen.mesh.emission import emit
    from mizzen.mesh.machine import damaged, find_machine
    from mizzen.mesh.mapping import map_network
    from mizzen.mesh.network.shapes import SHAPES
    from mizzen.mesh.program import check, write_program
    from mizzen.mesh.simulation import estimate

    machine = find_machine(machine_name)
    if dead:
        machine = damaged(machine, dead, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        program = emit(map_network(SHAPES[network](), machine))
        written = write_program(program, Path(folder) / "program.mesh")
    seconds = time.process_time()
    found = estimate(program)
    return {
        "seconds": seconds,
        "peak_kib": peak_kib(),
        "bytes": written,
        "elements": len(program.elements),
        "usable": len(machine.usable),
        "replicas": program.replicas,
        "images_per_s": found.images_per_s,
        "bound_ratio": found.bound_ratio,
        "host_fed_per_s": found.host_fed_per_s,
        "bottleneck": f"{found.bottleneck.resource.value} {found.bottleneck.name}",
        "largest_link_load": float(found.link_s.max(initial=0.0)) / found.period_s,
        "violations": len(check(program)) if checked else None,
    }


def peak_kib() -> int:
    """Return the most memory that this process had; what its parent had is not counted."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def exactness(models: Path) -> dict[str, int]:
    """Execute real networks on five machines, and count tensors that differ from the reference."""
    import numpy as np

    from mizzen.mesh.emission import emit
    from mizzen.mesh.execution import compare
    from mizzen.mesh.machine import find_machine
    from mizzen.mesh.mapping import map_network
    from mizzen.mesh.network import network_of_tflite
    from mizzen.mesh.program import check

    counts = {"inexact": 0, "tensors": 0, "violations": 0}
    random = np.random.default_rng(0)
    for name in REAL:
        network = network_of_tflite((models / f"{name}.tflite").read_bytes(), name)
        inputs = [
            random.integers(-128, 128, (IMAGES, *network.tensors[index].shape)).astype(np.int8)
            for index in network.inputs
        ]
        for machine in MACHINES:
            program = emit(map_network(network, find_machine(machine)))
            counts["violations"] += len(check(program))
            differences = compare(program, inputs)
            counts["tensors"] += len(differences)
            counts["inexact"] += sum(row.differing > 0 for row in differences)
    return counts


def in_process(*words: str) -> Any:
    """Return what this script's side says in a fresh process."""
    command = [sys.executable, __file__, "--side", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout.splitlines()[-1])


def board_file(columns: int, rows: int, folder: Path) -> Path:
    """Write the machine of a board of so many chips, and return its file."""
    from mizzen.mesh.machine.reading import FOLDER

    text = (FOLDER / "spinnaker2-48.toml").read_text()
    text = text.replace("columns = 8\nrows = 6", f"columns = {columns}\nrows = {rows}")
    path = folder / f"board-{columns}x{rows}.toml"
    path.write_text(text.replace("chip = 43", "chip = 0"))
    return path


def growth() -> list[dict[str, Any]]:
    """Map MobileNetV2 onto 36 chiplets and onto boards of rising size."""
    with tempfile.TemporaryDirectory() as folder:
        machines = [str(board_file(*board, Path(folder))) for board in BOARDS]
        rows: list[dict[str, Any]] = []
        for machine in (SMALLEST, *machines):
            rows.append(in_process(GROWN, machine, "0", "unchecked"))
            print(rows[-1], file=sys.stderr)
    return rows


def growth_page(rows: list[dict[str, Any]]) -> str:
    """Return a page that draws how time and memory grow with the elements."""
    from mizzen.report.page import Lines, Page, Section, Series, Table, render

    table = Table(
        "Mapping MobileNetV2",
        ("usable elements", "processor seconds", "peak memory (MiB)", "of the bound"),
        tuple(
            (row["usable"], row["seconds"], row["peak_kib"] / KIB, row["bound_ratio"])
            for row in rows
        ),
        frozenset({3}),
    )
    seconds = tuple((float(row["usable"]), float(row["seconds"])) for row in rows)
    mebibytes = tuple((float(row["usable"]), row["peak_kib"] / KIB) for row in rows)
    charts = [
        Lines(
            f"{name} over elements",
            "Both axes are logarithmic.",
            "usable elements",
            name,
            (Series("MobileNetV2", points),),
            is_logarithmic=True,
        )
        for name, points in (("Processor seconds", seconds), ("MiB", mebibytes))
    ]
    summary = "From the network to all written programs, each in a fresh process."
    return render(Page("How mapping grows", summary, (Section("Growth", (table, *charts)),)))


def judged() -> tuple[dict[str, float], list[str]]:
    """Return the figures, and the names of those that miss their bar."""
    figures: dict[str, float] = {}
    missed: list[str] = []
    violations = 0
    for row in STUDIES:
        found = in_process(row.network, row.machine, str(row.dead), "checked")
        print(row.name, found, file=sys.stderr)
        violations += found["violations"]
        if row.bar_s is not None:
            figures[f"map_{row.name}_s"] = found["seconds"]
            missed += [f"map_{row.name}_s"] if found["seconds"] > row.bar_s else []
        if row.least_ratio is not None:
            figures[f"{row.name}_bound_ratio"] = found["bound_ratio"]
            missed += [f"{row.name}_bound_ratio"] if found["bound_ratio"] < row.least_ratio else []
    if MODELS.is_dir():
        counts = exactness(MODELS)
        print("exactness", counts, file=sys.stderr)
        violations += counts["violations"]
        figures["inexact_tensors"] = counts["inexact"]
    else:
        print(f"inexact_tensors: no models in {MODELS}", file=sys.stderr)
    figures["violations"] = violations
    missed += [name for name in ("inexact_tensors", "violations") if figures.get(name)]
    return figures, missed


def main() -> int:
    """Run the studies and print them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--growth", metavar="PAGE")
    parser.add_argument("--side", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        network, machine, dead, checked = options.side
        print(json.dumps(study(network, machine, float(dead), checked == "checked")))
        return 0
    figures, missed = judged()
    document: dict[str, Any] = {"figures": figures}
    if options.growth:
        document["growth"] = growth()
        Path(options.growth).write_text(growth_page(document["growth"]), "utf-8")
    if options.json:
        print(json.dumps(document))
    else:
        for name, value in figures.items():
            print(f"{name:24} {value:.3g}{'  missed' if name in missed else ''}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
