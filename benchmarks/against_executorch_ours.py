"""Mizzen's side of the benchmark: one network for one target.

``python against_executorch_ours.py NETWORK TARGET CASE_FILE FOLDER`` writes ``result.json`` into
the folder. The flow is the peer's, with Mizzen's quantizer and compiler in its place.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import against_executorch_case as case_files
from against_executorch_case import Stopwatch
from against_executorch_macs import macs


def compile_case(name: str, target: str, case_file: Path, folder: Path) -> dict[str, Any]:
    """Run the whole flow once. The result has `finished`, on the clock of `time.monotonic`."""
    watch = Stopwatch()
    with watch.stage("import"):
        import torch
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

        quantize = import_module("mizzen.quantize")
        compile_converted = import_module("mizzen.torch").compile_converted

    case = case_files.load(name, case_file)
    quantizer = quantize.EthosUQuantizer(target)
    quantizer.set_global(quantize.get_symmetric_quantization_config())
    with watch.stage("export"):
        exported = torch.export.export(case.module, case.example)
    with watch.stage("prepare"):
        prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    with watch.stage("calibrate"):
        for inputs in case.calibration:
            prepared(*inputs)
    with watch.stage("convert"):
        converted = convert_pt2e(prepared)
    with watch.stage("export again"):
        program = torch.export.export(converted, case.example)
    with watch.stage("lower"):
        artifact = compile_converted(program, accelerator=target)
    finished = time.monotonic()
    report = artifact.report
    total = macs(exported.graph.nodes)
    return {
        "finished": finished,
        "seconds": watch.seconds,
        "lowering_seconds": watch.seconds["lower"],
        "peak_memory_bytes": case_files.peak_memory_bytes(),
        "artifact_bytes": report.flash_bytes,
        "macs": total,
        "cpu_macs": total - report.macs_on_npu,  # what the report has no MACs of counts as CPU's
        "cpu_operators": Counter(row.kind for row in report.on_cpu),
        "reported_cycles": report.cycles,
        "tosa": keep_regions(program, target, folder),
    }


def keep_regions(program: Any, target: str, folder: Path) -> list[str]:
    """Write the TOSA of each region on the NPU; for that, the program is placed once more."""
    from mizzen.compiler.ethos_u.makers import region_compiler
    from mizzen.compiler.ethos_u.regions import WINDOW_LIMITS
    from mizzen.compiler.proof.options import OFF
    from mizzen.compiler.torch.placement import place
    from mizzen.frontends.torch.int_lowering.int_lower import lower
    from mizzen.frontends.torch.narrowing import read
    from mizzen.package import tosa
    from mizzen.partition import Device
    from mizzen.targets.ethos_u.machine.system_config import resolve

    placed = place(
        lower(read(program), WINDOW_LIMITS), region_compiler(resolve(target)), (), OFF, None
    )
    files: list[str] = []
    for region in placed.partition.regions:
        if region.device is Device.NPU:
            path = folder / f"region{len(files)}.tosa"
            code = placed.code[region.groups]
            path.write_bytes(tosa.write(code.part.graph))
            files.append(path.name)
    return files


def main() -> None:
    """Compile, and write down what happened, a failure included."""
    name, target, case_file, folder = sys.argv[1:]
    try:
        result = compile_case(name, target, Path(case_file), Path(folder))
    except Exception as error:
        traceback.print_exc()
        lines = (str(error) or "no text").strip().splitlines()
        result = {"error": f"{type(error).__name__}: {lines[0]}"}
    (Path(folder) / "result.json").write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
