"""Quantise and compile one random PyTorch module, and compare.

What an NPU region gives is compared, bit for bit, with the region's graph of integers, on inputs
that the proof of the compilation has not seen; the graph of each operator with what PyTorch has
for it, to a step or two; what the artifact gives with what PyTorch gives, as numbers are near.
"""

from __future__ import annotations

import random
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

import mizzen
from fuzz_judge import SEED, Verdict, accelerators, options_of
from fuzz_modules import Random
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.options import CompileOptions
from mizzen.compiler.proof.options import Effort, ProofOptions
from mizzen.compiler.proof.regions import prove_region
from mizzen.compiler.torch.compile import assemble
from mizzen.compiler.torch.placement import lowered_program
from mizzen.compiler.torch.placement import place as place_program
from mizzen.diagnostics import MizzenError
from mizzen.frontends.torch.int_lowering.int_lower import Lowered
from mizzen.graph import Value
from mizzen.ops.elementwise import Table
from mizzen.partition import Device, extract
from mizzen.quantize import (
    EthosUQuantizer,
    get_symmetric_a16w8_quantization_config,
    get_symmetric_quantization_config,
    without_import_messages,
)
from mizzen.quantize.observers import ActivationObserver
from mizzen.reference import evaluate

Array = npt.NDArray[Any]

CALLS = 4
WIDE_PART = 0.15
"""Of programs that have 16 bits."""

MOST_STEPS = {1: 2, 2: 256}
"""By how much a graph may differ from PyTorch's floating-point numbers, by bytes of an integer: a
rounding of each.
"""

MOST_STEPS_OF_TABLE = 1 << 13
"""Likewise of a function of 16 bits, whose table has 513 entries and lines between them."""

FAR = 0.15
"""Of the range of an output: what half of its numbers may not differ by from PyTorch's."""


def judge(family: str, seed: int, number: int) -> Verdict:
    """Quantise, compile and execute a module, and compare."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    ActivationObserver._non_linear_param_search = _whole  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue] the search for the best range takes most of the time, and any range will do
    accelerator = random.Random(number).choice(accelerators(family))
    module = Random(f"{family} {seed} {number}").eval()
    start = time.monotonic()
    try:
        exported = quantized(module, accelerator, number, wide=family != "n78")
        return compiled(exported, module.example, family, accelerator, number, start)
    except MizzenError as error:
        code = error.diagnostic.code
        return Verdict("refused", f"{code} {error.diagnostic.message}", accelerator, said={code: 1})


def _whole(observer: ActivationObserver) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the whole range that an observer has seen."""
    return observer.min_val, observer.max_val


def quantized(module: Random, accelerator: str, number: int, *, wide: bool) -> Any:
    """Return a module's program in integers, calibrated on random calls."""
    with without_import_messages():
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    rng = random.Random(f"bits {number}")
    quantizer = EthosUQuantizer(accelerator)
    if wide and rng.random() < WIDE_PART:
        quantizer.set_global(get_symmetric_a16w8_quantization_config())
    else:
        quantizer.set_global(get_symmetric_quantization_config())
    exported = torch.export.export(module, module.example)
    prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    with torch.no_grad():
        for _ in range(CALLS):
            prepared(*(torch.randn(row.shape) for row in module.example))
    return torch.export.export(convert_pt2e(prepared), module.example)


def compiled(
    exported: Any,
    example: tuple[torch.Tensor, ...],
    family: str,
    accelerator: str,
    number: int,
    start: float,
) -> Verdict:
    """Compile a quantised program, and compare."""
    chosen = resolve_target(CompileOptions(accelerator, **options_of(family, number)))
    compiler = chosen.backend.region_compiler(chosen.configuration, chosen.proof)
    lowered = lowered_program(exported, "module", compiler.window_limits)
    placed = place_program(lowered, compiler, (), chosen.proof, None)
    artifact = assemble(lowered, placed, chosen)
    report = artifact.report
    assert report is not None
    verdict = Verdict("right", "", accelerator, time.monotonic() - start, len(report.placements))
    verdict.on_npu = sum(row.device is Device.NPU for row in report.placements)
    verdict.said = Counter(row.code for row in report.diagnostics)
    calls = [tuple(torch.randn(row.shape) for row in example) for _ in range(CALLS)]
    wrong = [
        *_regions(lowered, placed.code, number),
        *_operators(exported, lowered, calls[0]),
        *_outputs(exported, artifact, calls),
    ]
    return replace(verdict, kind="silent", text="; ".join(wrong)) if wrong else verdict


def _regions(lowered: Lowered, code: Mapping[Any, Any], number: int) -> Iterator[str]:
    """Say which NPU regions give something else than their graph."""
    proof = ProofOptions(Effort.THOROUGH, seed=SEED + number)
    for groups, region in code.items():
        found = prove_region(region, extract(lowered.graph, groups, "module"), proof).wrong
        if found is not None:
            kinds = ", ".join(dict.fromkeys(str(lowered.origins[row].kind) for row in groups))
            said = found.diagnostic.message if isinstance(found, MizzenError) else str(found)
            yield f"region of {kinds}: {said}"


class _Recording(torch.fx.Interpreter):
    """Keeps what every node of a program gives."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.given: dict[str, Any] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        self.given[n.name] = found = super().run_node(n)
        return found


def _operators(exported: Any, lowered: Lowered, call: tuple[torch.Tensor, ...]) -> Iterator[str]:
    """Say which operators' graphs are far from PyTorch, each on the integers that it has."""
    recording = _Recording(exported.module(check_guards=False))
    with torch.no_grad():
        recording.run(*call)
    known: dict[Value, Array] = {}
    for value, node in lowered.node_of.items():
        given = recording.given.get(node.name)
        if isinstance(given, torch.Tensor) and not given.is_floating_point():
            known[value] = given.numpy()
    for group in sorted(lowered.origins):
        part = extract(lowered.graph, (group,), "operator")
        if not part.inputs or not all(row in known for row in (*part.inputs, *part.outputs)):
            continue
        try:
            found = evaluate(part.graph, [known[row] for row in part.inputs])
        except MizzenError:
            continue
        for value, array in zip(part.outputs, found, strict=True):
            steps = np.abs(array.astype(np.int64) - known[value]).max(initial=0)
            table = array.itemsize == 2 and any(isinstance(row, Table) for row in part.graph)
            if steps > (MOST_STEPS_OF_TABLE if table else MOST_STEPS.get(array.itemsize, 0)):
                yield f"{lowered.origins[group].kind}: {steps} steps from PyTorch"


def _outputs(
    exported: Any, artifact: mizzen.Artifact, calls: list[tuple[torch.Tensor, ...]]
) -> Iterator[str]:
    """Say which outputs are nothing like PyTorch's; theirs may lack the axis of a batch."""
    module = exported.module(check_guards=False)
    for call in calls[:2]:
        with torch.no_grad():
            expected = module(*call)
        results = artifact.run(*(row.numpy() for row in call))
        every = results if isinstance(results, tuple) else (results,)
        for place, (ours, theirs) in enumerate(zip(every, expected, strict=True)):
            wanted = theirs.numpy()
            found = ours.reshape(wanted.shape)
            range_ = max(float(np.ptp(wanted)), float(np.abs(wanted).max()), 1e-6)
            off = float(np.median(np.abs(found.astype(np.float64) - wanted)))
            if off > FAR * range_:
                yield f"output {place} is off by {off:.3g} in a range of {range_:.3g}"
