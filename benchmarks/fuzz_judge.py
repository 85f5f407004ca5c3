"""Compile one random TFLite network, execute it on inputs of its own, and compare.

The reference is TensorFlow Lite Micro, and the graph's reference where that has no kernel. Ethos-N
rounds in its own way: what its code gives must be what the code's network means, on inputs that the
proof of the compilation has not seen, and a single operator may be one step from the kernel's.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import read_network
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.compile import compile_file, source_of
from mizzen.compiler.options import CompileOptions
from mizzen.compiler.proof.difference import RULE
from mizzen.compiler.proof.options import Effort, ProofOptions
from mizzen.compiler.proof.stimuli import stimuli, stimulus
from mizzen.compiler.tflite_reference import Kernels, evaluate
from mizzen.cpu.tflm import CpuKernels
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite import Model
from mizzen.frontends.tflite.lower import lower
from mizzen.package.tflite.extract import extract
from mizzen.partition import Device
from mizzen.targets.ethos_n.config import INLINE, VARIANTS
from mizzen.targets.ethos_u.machine.config import ACCELERATORS

Array = npt.NDArray[Any]

INPUTS = 64
REFERENCE_INPUTS = 12
"""Inferences where the reference is the graph's, which takes them one by one."""

MOST_STEPS_OF_N = 32
SMALL_PART = 0.05
"""Likewise of the roundings of Ethos-N, of which each operator has one; a small part of an output
may differ by more, where its scale is small."""

NO_KERNEL = frozenset(("E702", "E703"))
SEED = 977
"""Added to a program's number: the inputs are not those of a proof."""


@dataclass
class Verdict:
    """What a program showed; `kind` is right, silent, raw, refused, slow or nothing.

    said   codes of diagnostics, and how often
    moved  operators on the CPU because the proof would not have their code on the NPU
    """

    kind: str
    text: str = ""
    accelerator: str = ""
    seconds: float = 0.0
    operators: int = 0
    on_npu: int = 0
    said: dict[str, int] = field(default_factory=dict[str, int])
    moved: list[str] = field(default_factory=list[str])

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        return {**asdict(replace(self, said={})), "said": dict(self.said)}


def accelerators(family: str) -> list[str]:
    """Return the accelerators of a family."""
    if family == "n78":
        return sorted(VARIANTS)
    return sorted(name for name in ACCELERATORS if name.startswith(f"ethos-{family}"))


def options_of(family: str, number: int) -> dict[str, Any]:
    """Return what else to ask for; small regions stay on Ethos-N in most programs."""
    if family != "n78" or number % 5 == 0:
        return {}
    return {"target_options": {INLINE: "false"}}


def judge(family: str, number: int, data: bytes) -> Verdict:
    """Compile a program, execute what comes, and compare."""
    accelerator = random.Random(number).choice(accelerators(family))
    options = options_of(family, number)
    start = time.monotonic()
    try:
        artifact = mizzen.compile(data, accelerator, **options)
    except MizzenError as error:
        code = error.diagnostic.code
        return Verdict("refused", f"{code} {error.diagnostic.message}", accelerator, said={code: 1})
    seconds = time.monotonic() - start
    report = artifact.report
    assert report is not None
    on_npu = sum(row.device is Device.NPU for row in report.placements)
    said = Counter(row.code for row in report.diagnostics)
    verdict = Verdict("right", "", accelerator, seconds, len(report.placements), on_npu, said)
    verdict.moved = [
        f"{row.kind} {why.rule}" for row in report.placements for why in row.reasons
        if why.rule == RULE
    ]  # fmt: skip
    found = compare(data, artifact, number, said)
    if family == "n78":
        found = _of_n(data, artifact, accelerator, number, found)
    elif found is not None and found.kind != "nothing":
        found = replace(found, kind="silent")
    if found is not None:
        verdict.kind, verdict.text = found.kind, found.text
    return verdict


@dataclass(frozen=True)
class Off:
    """How outputs differ: `kind` is off, run (an error), or nothing (no reference)."""

    kind: str
    text: str
    steps: int = 0
    share: float = 0.0


def _moved_by_proof(
    data: bytes, artifact: Artifact, accelerator: str, number: int, **options: Any
) -> Off | None:
    """Return what a proof on a program's own inputs moves to the CPU that the other did not."""
    chosen = resolve_target(CompileOptions(accelerator, **options))
    proof = ProofOptions(Effort.THOROUGH, seed=SEED + number)
    again = compile_file(source_of(data), replace(chosen, proof=proof)).report
    assert again is not None
    assert artifact.report is not None
    for before, after in zip(artifact.report.placements, again.placements, strict=True):
        wrong = [row for row in after.reasons if row.rule == RULE]
        if wrong and not any(row.rule == RULE for row in before.reasons):
            return Off("silent", f"{after.kind} {after.index}: {wrong[0].message}")
    return None


def _alone(
    model: Model, operators: Sequence[int], accelerator: str, number: int, **options: Any
) -> Iterator[Off]:
    """Return how operators differ, each by itself."""
    for row in operators:
        alone = extract(model.record, [row]).network
        try:
            off = compare(alone, mizzen.compile(alone, accelerator, **options), number)
        except MizzenError:
            continue
        if off is not None:
            yield replace(off, text=f"{model.main.operators[row].kind} {row}: {off.text}")


def _of_n(
    data: bytes, artifact: Artifact, accelerator: str, number: int, found: Off | None
) -> Off | None:
    """Say how a program on Ethos-N is wrong, if it is."""
    report, model = artifact.report, read_network(data, "network")
    assert report is not None
    on_npu = [row.index for row in report.placements if row.device is Device.NPU]
    if not on_npu or (found is not None and found.kind != "off"):
        return found if found is None or found.kind == "nothing" else replace(found, kind="silent")
    options = options_of("n78", number)
    moved = _moved_by_proof(data, artifact, accelerator, number, **options)
    if moved is not None:
        return moved
    if found is None or found.steps <= 1:
        return None
    for off in _alone(model, on_npu, accelerator, number, **options):
        if off.steps > 1:
            return Off("silent", off.text, off.steps)
    near = found.steps <= MOST_STEPS_OF_N or found.share <= SMALL_PART
    return None if near else replace(found, kind="silent")


def compare(
    data: bytes,
    artifact: Artifact,
    number: int,
    said: Counter[str] | None = None,
    first: Mapping[str, Array] | None = None,
) -> Off | None:
    """Return how the artifact differs from the network, None if it does not.

    first  by the names of inputs, what they are in one inference before all others
    """
    model = read_network(data, "network")
    tensors = model.main.present(model.main.inputs)
    rows = [
        stimulus(row.shape, row.dtype or np.int8,
                 row.quantization.zero_point[0] if row.quantization else 0)
        for row in tensors
    ]  # fmt: skip
    inputs = stimuli(rows, INPUTS, SEED + number)
    for row, array in zip(tensors, inputs, strict=True):
        array[:1] = (first or {}).get(row.name, array[:1])
    said = Counter() if said is None else said
    try:
        expected = CpuKernels(data).run(inputs, INPUTS)
    except MizzenError as error:
        if error.diagnostic.code not in NO_KERNEL:
            raise
        said["graph's reference"] += 1
        inputs = [row[:REFERENCE_INPUTS] for row in inputs]
        try:
            expected = _reference(model, inputs)
        except MizzenError as why:
            said[f"no reference: {why.diagnostic.code}"] += 1
            return Off("nothing", f"no reference: {why.diagnostic.message}")
    try:
        results = artifact.run(*inputs)
    except MizzenError as error:
        said[f"run: {error.diagnostic.code}"] += 1
        missing = error.diagnostic.code in NO_KERNEL
        return Off("nothing" if missing else "run", f"run: {error}")
    every = results if isinstance(results, tuple) else (results,)
    for place, (ours, theirs) in enumerate(zip(every, expected, strict=True)):
        wide = np.abs(ours.astype(np.int64).reshape(theirs.shape) - theirs.astype(np.int64))
        if wide.any():
            share, most = f"{int((wide > 0).sum())} of {wide.size}", int(wide.max())
            return Off(
                "off",
                f"output {place}: {share} differ, by up to {most}",
                most,
                float((wide > 0).mean()),
            )
    return None


def _reference(model: Model, inputs: list[Array]) -> list[Array]:
    lowered, kernels = lower(model), Kernels(model)
    rows = [
        evaluate(lowered, [array[index] for array in inputs], kernels=kernels)
        for index in range(len(inputs[0]))
    ]
    return [np.stack(each) for each in zip(*rows, strict=True)]
