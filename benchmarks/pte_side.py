"""One side of `pte.py`: a network, quantised by the side's own quantizer, to a `.pte`.

``python pte_side.py ours|theirs NETWORK TARGET CASE_FILE`` prints JSON with `seconds` of the
processor, all threads, from the converted program to the file's bytes, and how many `bytes`.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import against_executorch_case as case_files

Lower = Callable[[Any], bytes]


def ours(target: str) -> tuple[Any, Lower]:
    """Return Mizzen's quantizer, and what makes a file of a converted program."""
    quantize: Any = import_module("mizzen.quantize")
    compile_converted = import_module("mizzen.torch").compile_converted
    import_module("mizzen.artifact.device")
    import_module("mizzen.package.executorch.writing")
    quantizer = quantize.EthosUQuantizer(target)
    quantizer.set_global(quantize.get_symmetric_quantization_config())

    def lower(program: Any) -> bytes:
        artifact = compile_converted(program, accelerator=target)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "net.pte"
            artifact.save(path)
            return path.read_bytes()

    return quantizer, lower


def theirs(target: str) -> tuple[Any, Lower]:
    """Return the same of ExecuTorch's Arm backend."""
    exir: Any = import_module("executorch.exir")
    arm: Any = import_module("executorch.backends.arm.ethosu")
    quantizers: Any = import_module("executorch.backends.arm.quantizer")
    spec = arm.EthosUCompileSpec(target)
    quantizer = quantizers.EthosUQuantizer(spec)
    quantizer.set_global(quantizers.get_symmetric_quantization_config())

    def lower(program: Any) -> bytes:
        partitioner = [arm.EthosUPartitioner(spec)]
        edge = exir.to_edge_transform_and_lower(program, partitioner=partitioner)
        config = exir.ExecutorchBackendConfig(extract_delegate_segments=False)
        return edge.to_executorch(config=config).buffer

    return quantizer, lower


def main() -> None:
    """Quantise, then lower on the clock."""
    side, network, target, case_file = sys.argv[1:]
    import torch
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    quantizer, lower = {"ours": ours, "theirs": theirs}[side](target)
    case = case_files.load(network, Path(case_file))
    exported = torch.export.export(case.module, case.example)
    prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    for inputs in case.calibration:
        prepared(*inputs)
    program = torch.export.export(convert_pt2e(prepared), case.example)
    start = time.process_time()
    data = lower(program)
    print(json.dumps({"seconds": time.process_time() - start, "bytes": len(data)}))


if __name__ == "__main__":
    main()
