"""The least that a family of NPUs is: here one whose programs are TOSA files, interpreted."""

from collections.abc import Sequence

import numpy as np

from mizzen.artifact.interface import Array, Origins
from mizzen.artifact.program import CompiledPart, NpuFamily, RunOutcome, constant_of
from mizzen.compiler.backend import PlainBackend, PlainConfiguration
from mizzen.compiler.codegen import Costs, OperatorCode, PlainRegions, operator_code
from mizzen.compiler.proof.options import ProofOptions
from mizzen.diagnostics import Diagnostic, ProgressCallback
from mizzen.frontends import tosa
from mizzen.frontends.tflite import Model, Operator
from mizzen.package.tosa import write
from mizzen.partition import Extracted
from mizzen.reference import evaluate
from mizzen.targets.families import Family

ACCELERATORS = ("toy-1",)
TOY = Family("Toy", "toy", "toy_npu:ACCELERATORS", "toy_npu:PROGRAMS", "toy_npu:BACKEND")


class ToyRegions(PlainRegions):
    operations = frozenset({"CLAMP", "CONST", "RESCALE"})

    def compile(self, part: Extracted, on_progress: ProgressCallback | None) -> OperatorCode:
        return operator_code(part, TOY, write(part.graph), Costs(()), "Toy compiler")


class ToyBackend(PlainBackend):
    family, suffix = TOY, "toy"

    def region_compiler(self, configuration: PlainConfiguration, proof: ProofOptions) -> ToyRegions:
        return ToyRegions()


class ToySimulator:
    notes: tuple[Diagnostic, ...] = ()

    def __init__(self, program: bytes) -> None:
        self.graph = tosa.read(program, "toy")

    def run(self, arrays: Sequence[Array], batch: int) -> RunOutcome:
        rows = [evaluate(self.graph, [array[index] for array in arrays]) for index in range(batch)]
        return RunOutcome(tuple(np.stack(side) for side in zip(*rows, strict=True)))


class ToyPrograms(NpuFamily):
    def read(self, model: Model, operator: Operator, origins: Origins) -> CompiledPart:
        return CompiledPart(constant_of(model, operator, 0), operator.inputs[1:], operator.outputs)

    def accelerator_of(self, program: bytes) -> str:
        return ACCELERATORS[0]

    def simulator(self, program: bytes) -> ToySimulator:
        return ToySimulator(program)


BACKEND, PROGRAMS = ToyBackend(), ToyPrograms()
