"""ExecuTorch's side of the benchmark: one network for one target, in ExecuTorch's interpreter.

``python against_executorch_peer.py NETWORK TARGET CASE_FILE FOLDER`` writes ``result.json`` and the
TOSA of each partition into the folder. The flow is the documented one: quantise, calibrate,
convert, export, lower, to_executorch; nothing is dumped while the clock runs.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import against_executorch_case as case_files
from against_executorch_case import Case, Stopwatch
from against_executorch_macs import macs, node_operator

NO_COMPUTE = {"quantize_per_tensor", "dequantize_per_tensor", "getitem", "executorch_call_delegate"}


class Recorder:
    """Keeps what Vela was given; it stands in for ExecuTorch's own function that calls Vela."""

    def __init__(self, compile_partition: Any) -> None:
        self.compile_partition = compile_partition
        self.calls: list[tuple[bytes, list[str]]] = []
        self.seconds = 0.0

    def __call__(self, flatbuffer: bytes, flags: list[str], **options: Any) -> Any:
        self.calls.append((flatbuffer, list(flags)))
        start = time.perf_counter()
        try:
            return self.compile_partition(flatbuffer, flags, **options)
        finally:
            self.seconds += time.perf_counter() - start


def compile_case(name: str, target: str, case_file: Path, folder: Path) -> dict[str, Any]:
    """Run the whole flow once. The result has `finished`, on the clock of `time.monotonic`."""
    watch = Stopwatch()
    with watch.stage("import"):
        import torch
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

        exir = import_module("executorch.exir")
        ethosu = import_module("executorch.backends.arm.ethosu")
        backend = cast("Any", import_module("executorch.backends.arm.ethosu.backend"))
        quantizers = import_module("executorch.backends.arm.quantizer")

    recorder = Recorder(backend.vela_compile)
    backend.vela_compile = recorder
    case: Case = case_files.load(name, case_file)
    spec = ethosu.EthosUCompileSpec(target)
    quantizer = quantizers.EthosUQuantizer(spec)
    quantizer.set_global(quantizers.get_symmetric_quantization_config())
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
        lowered = exir.to_edge_transform_and_lower(
            program, partitioner=[ethosu.EthosUPartitioner(spec)]
        )
    rest = [node for node in lowered.exported_program().graph.nodes if node.op == "call_function"]
    with watch.stage("to_executorch"):
        artifact = lowered.to_executorch().buffer
    finished = time.monotonic()
    operators = Counter(node_operator(node) for node in rest)
    return {
        "finished": finished,
        "seconds": watch.seconds,
        "vela_seconds": recorder.seconds,
        "lowering_seconds": watch.seconds["lower"] + watch.seconds["to_executorch"],
        "peak_memory_bytes": case_files.peak_memory_bytes(),
        "artifact_bytes": len(artifact),
        "partitions": len(recorder.calls),
        "cpu_operators": {k: n for k, n in operators.items() if k not in NO_COMPUTE},
        "macs": macs(exported.graph.nodes),
        "cpu_macs": macs(rest),
        **keep_partitions(recorder, folder),
    }


def keep_partitions(recorder: Recorder, folder: Path) -> dict[str, Any]:
    """Write each partition's TOSA, and compile it once more for the figures of this Vela."""
    files: list[str] = []
    figures: list[dict[str, str]] = []
    for index, (flatbuffer, flags) in enumerate(recorder.calls):
        path = folder / f"partition{index}.tosa"
        path.write_bytes(flatbuffer)
        files.append(path.name)
        own = folder / f"vela{index}"
        own.mkdir(exist_ok=True)
        recorder.compile_partition(flatbuffer, list(flags), intermediate_path=str(own))
        (summary,) = (own / "output").glob("*_summary_*.csv")
        figures.append(read_summary(summary))
    return {"tosa": files, "vela": figures}


def read_summary(path: Path) -> dict[str, str]:
    """Return Vela's summary, a header and one row, as a dictionary."""
    import csv

    with path.open(newline="") as file:
        (row,) = csv.DictReader(file)
    return dict(row)


def main() -> None:
    """Compile, and write down what happened, a failure included."""
    name, target, case_file, folder = sys.argv[1:]
    try:
        result = compile_case(name, target, Path(case_file), Path(folder))
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        lines = (str(error) or "no text").strip().splitlines()
        result = {"error": f"{type(error).__name__}: {lines[0]}"}
    (Path(folder) / "result.json").write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
