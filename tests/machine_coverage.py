"""What of the simulated machines the tests of a run executed, and what they did not.

A fact is an operation with its mode, and one field of a register with the value it had. What could
be executed is read from the tables of commands: nothing is left out by hand but what an operation
does not look at. Programs count when they run, not when they are only planned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from mizzen.isa.command import Instruction
from mizzen.targets.ethos_u.judge.sim import Outcome, Simulator
from mizzen.targets.ethos_u.judge.sim.hardware import hardware_of
from mizzen.targets.ethos_u.machine.commands import Arch, decode, instruction_set
from mizzen.targets.ethos_u.machine.program import Program

Fact = tuple[str, str, str, str]
"""Family, operation and mode, field, value."""
Combination = tuple[str, str, str]
"""Family, operation and mode, then formats, precisions and rounding."""

MAPS = ("SET_IFM_PRECISION", "SET_OFM_PRECISION")
RESULT = ("SET_OFM_SCALE", "SET_ACTIVATION", "SET_ACC_FORMAT")
WINDOW = ("SET_KERNEL_STRIDE", "SET_IFM_UPSCALE")
SECOND = ("SET_IFM2_PRECISION", "SET_IFM2_BROADCAST", "SET_IFM_BROADCAST")
SCALES = ("SET_IFM_SCALE", "SET_IFM2_SCALE")
REGISTERS: dict[str, tuple[str, ...]] = {
    "OP_CONV": (*MAPS, *RESULT, *WINDOW, "SET_WEIGHT_FORMAT", "SET_PARALLEL_MODE"),
    "OP_DEPTHWISE": (*MAPS, *RESULT, *WINDOW, "SET_PARALLEL_MODE"),
    "OP_POOL": (*MAPS, *RESULT, *WINDOW),
    "OP_ELEMENTWISE": (*MAPS, *RESULT[:2], *SECOND, *SCALES),
    "OP_RESIZE": (*MAPS, *RESULT[:2]),
    "OP_DMA_START": ("SET_DMA0_SRC_REGION", "SET_DMA0_DST_REGION"),
}
"""Registers that an operation looks at; those that a family lacks do not count."""
COMBINED = (
    "IFM_PRECISION.activation_format",
    "IFM_PRECISION.activation_precision",
    "OFM_PRECISION.activation_format",
    "OFM_PRECISION.activation_precision",
    "OFM_PRECISION.round_mode",
    "OFM_SCALE.round_mode",
)
"""Fields whose combinations are counted: formats, precisions and rounding."""


def record() -> Coverage:
    """Note every program that the simulator runs from here on."""
    coverage = Coverage()
    run = Simulator.run

    def recorded(self: Simulator, inputs: Sequence[Any], batch: int) -> Outcome:
        coverage.execute(self.program)
        return run(self, inputs, batch)

    Simulator.run = recorded
    return coverage


class Coverage:
    """The facts and combinations of a run."""

    def __init__(self) -> None:
        self.facts: set[Fact] = set()
        self.combinations: set[Combination] = set()
        self._seen: set[int] = set()

    def execute(self, program: Program) -> None:
        """Note a program that runs."""
        arch = hardware_of(program.hardware).arch
        identity = hash((arch, program.words.tobytes()))
        if identity in self._seen:
            return
        self._seen.add(identity)
        registers: dict[str, Instruction] = {}
        for instruction in decode(program.words, arch):
            if instruction.name in REGISTERS:
                self._operation(arch, instruction, registers)
            else:
                registers[instruction.name] = instruction

    def _operation(
        self, arch: Arch, operation: Instruction, registers: Mapping[str, Instruction]
    ) -> None:
        kind = _kind(operation)
        found = {
            f"{name.removeprefix('SET_')}.{field}": value.name
            for name in REGISTERS[operation.name]
            if name in registers
            for field, value in registers[name].values.items()
            if isinstance(value, Enum)
        }
        self.facts |= {(arch.name, kind, field, value) for field, value in found.items()}
        self.facts.add((arch.name, kind, "", ""))
        if operation.name != "OP_DMA_START":
            combined = " ".join(found[field] for field in COMBINED if field in found)
            self.combinations.add((arch.name, kind, combined))

    def summary(self, *, holes: bool) -> Iterator[str]:
        """A few lines for each family that ran; with `holes`, what was not executed too."""
        for arch in self._families():
            total = sum(family == arch.name for family, *_ in self.combinations)
            yield f"{arch.value}: {total} combinations of mode, formats, precisions and rounding"
            if holes:
                missing = [kind for kind in kinds(arch) if not self._ran(arch, kind)]
                yield f"  {arch.value}, modes not executed: {', '.join(missing) or 'none'}"
                absent = "; ".join(self._values(arch))
                yield f"  {arch.value}, values not executed: {absent or 'none'}"

    def listing(self) -> Iterator[str]:
        """Every combination that was executed, and every value that an operation did not have."""
        for arch in self._families():
            for kind in kinds(arch):
                yield f"{arch.value} {kind}{'' if self._ran(arch, kind) else ': not executed'}"
                if self._ran(arch, kind):
                    found = (arch.name, kind)
                    yield from sorted(f"  + {c[2]}" for c in self.combinations if c[:2] == found)
                    for field, values in fields(arch, kind):
                        absent = [v for v in values if (*found, field, v) not in self.facts]
                        yield from (f"  - {field} {value}" for value in absent)

    def _families(self) -> list[Arch]:
        return [arch for arch in Arch if any(fact[0] == arch.name for fact in self.facts)]

    def _ran(self, arch: Arch, kind: str) -> bool:
        return (arch.name, kind, "", "") in self.facts

    def _values(self, arch: Arch) -> Iterator[str]:
        """Values that a field had in no operation at all."""
        had = {(field, value) for family, _, field, value in self.facts if family == arch.name}
        every = dict(pair for kind in kinds(arch) for pair in fields(arch, kind))
        for field, values in every.items():
            absent = [value for value in values if (field, value) not in had]
            if absent:
                yield f"{field} {' '.join(absent)}"


def _kind(operation: Instruction) -> str:
    modes = [value.name for value in operation.values.values() if isinstance(value, Enum)]
    if operation.values.get("weights_ifm2"):
        modes = ["IFM2"]
    return " ".join([operation.name.removeprefix("OP_"), *modes])


def kinds(arch: Arch) -> Iterator[str]:
    """Every operation with every mode that a family has."""
    for name in REGISTERS:
        command = next((c for c in instruction_set(arch).commands if c.name == name), None)
        if command is None:
            continue
        label = name.removeprefix("OP_")
        choices = [field.enum for field in command.fields if field.enum is not None]
        yield from [f"{label} {mode.name}" for mode in choices[0]] if choices else [label]
        if any(field.name == "weights_ifm2" for field in command.fields):
            yield f"{label} IFM2"


def fields(arch: Arch, kind: str) -> Iterator[tuple[str, list[str]]]:
    """The fields that an operation looks at, with their values."""
    names = REGISTERS[f"OP_{kind.split(maxsplit=1)[0]}"]
    for command in instruction_set(arch).commands:
        if command.name in names:
            for field in command.fields:
                if field.enum is not None:
                    label = f"{command.name.removeprefix('SET_')}.{field.name}"
                    yield label, [value.name for value in field.enum]
