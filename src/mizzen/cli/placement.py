"""How a report reads: what is on the NPU, what is not and why, memory, estimates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mizzen.cli.layout import (
    conversions,
    count,
    exact_size,
    fields,
    inference,
    inference_energy,
    named_table,
    paragraph,
    share,
    size,
)
from mizzen.diagnostics import Reason
from mizzen.report.code import Maker
from mizzen.report.memory import Use
from mizzen.report.words import memory_name

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact
    from mizzen.boards import Board
    from mizzen.compiler.backend import ResolvedTarget
    from mizzen.report import CompileReport, OperatorPlacement
    from mizzen.report.code import CodeChoice, NetworkChoice, StreamCost
    from mizzen.report.cost import CostReport, InferenceTime
    from mizzen.report.energy import InferenceEnergy
    from mizzen.report.memory import MemoryReport
    from mizzen.report.proof import Proof

SHOWN_SETTINGS = (("system_config", "system"), ("memory_mode", "memory mode"))
REASON_INDENT = "    "
GONE = {"folded": "constants of the artifact now", "unused": "nothing takes what they give"}
"""What became of operators that nothing computes at an inference, by the rule of their reason."""


def configuration_text(chosen: ResolvedTarget, *, width: int) -> str:
    """Say which configuration is in force, and what of it was not asked for."""
    facts = [] if chosen.board is None else [("board", board_title(chosen.board))]
    facts += clock_rows(chosen)
    for line in chosen.backend.configuration_lines(chosen.configuration):
        value = line.value if isinstance(line.value, str) else size(line.value)
        facts.append((line.label, f"{value} (default)" if line.is_default else value))
    if chosen.configuration.ignore_ops:
        facts.append(("on the CPU", ", ".join(chosen.configuration.ignore_ops)))
    return fields(facts, width=width)


def clock_rows(chosen: ResolvedTarget) -> Iterator[tuple[str, str]]:
    """Say which clock times are told at, where a board or the command line has one."""
    figures = chosen.board_figures
    if figures is None:
        return
    if figures.clock_hz:
        yield "clock", f"{figures.clock_hz / 1e6:g} MHz"
    else:
        yield "clock", "the system's: the board file has no NPU clock; --clock gives it"


def board_title(board: Board) -> str:
    """Return a board as people and as options call it."""
    return f"{board.title} ({board.name})"


def artifact_text(artifact: Artifact, *, width: int) -> str:
    """Say what an artifact is, and which configuration it was compiled for."""
    from mizzen.artifact.control_step import ControlStep
    from mizzen.artifact.host_steps import TorchStep
    from mizzen.artifact.kernel_step import KernelStep
    from mizzen.artifact.onnx_steps import OrtStep
    from mizzen.artifact.resources import VariableStep
    from mizzen.artifact.steps import CpuStep

    kinds = (CpuStep, ControlStep, VariableStep, TorchStep, OrtStep, KernelStep)
    steps = [step for part in artifact.subgraphs for step in part.steps]
    on_cpu = sum(len(step.kinds) for step in steps if isinstance(step, kinds))
    on_npu = count(sum(step.on_npu for step in steps), "NPU operator")
    operators = f"{on_npu}, {count(on_cpu, 'CPU operator')}" if on_cpu else on_npu
    facts = [("artifact", f"{artifact.name}, {operators}")]
    if len(artifact.signatures) > 1:
        facts += [("signatures", ", ".join(artifact.signatures))]
    facts += [("accelerator", artifact.accelerator)] if artifact.accelerator else []
    if artifact.report is not None:
        configuration = artifact.report.configuration
        facts += [
            (label, configuration[name]) for name, label in SHOWN_SETTINGS if name in configuration
        ]
    return fields(facts, width=width)


def summary_rows(
    report: CompileReport, memory: MemoryReport | None = None
) -> list[tuple[str, str]]:
    """Return the lines that one looks at first: placement, memory, cycles."""
    operators = f"{len(report.on_npu)} of {count(len(report.placements), 'operator')}"
    work = f", {share(report.macs_on_npu, report.macs)} of {count(report.macs, 'MAC')}"
    areas = [
        (
            area.name,
            f"{exact_size(area.used_bytes)} in {memory_name(area.memory)}",
        )
        for area in report.areas
    ]
    return [
        ("on the NPU", operators + (work if report.macs else "")),
        *_gone_rows(report),
        *_subgraph_rows(report),
        *areas,
        *_runtime_rows(report, memory),
        ("estimate", estimate(report)),
        *([] if report.time is None else conversion_rows(report.time)),
        *energy_rows(report.energy),
        *code_rows(report.code, report.choice),
        *([("proof", proof_text(report.proof))] if report.proof.is_told else ()),
    ]


def _subgraph_rows(report: CompileReport) -> Iterator[tuple[str, str]]:
    """Say for each of several subgraphs where its operators are, and what one execution takes."""
    for subgraph in report.subgraphs:
        text = f"{len(subgraph.on_npu)} of {count(len(subgraph.placements), 'operator')}"
        yield (
            f"- {subgraph.subgraph}",
            text + (f", {count(subgraph.cycles, 'cycle')}" if subgraph.on_npu else ""),
        )


def _gone_rows(report: CompileReport) -> Iterator[tuple[str, str]]:
    """Say which of the operators that nothing computes any more are in the figures."""
    for rule in dict.fromkeys(reason.rule for place in report.on_npu for reason in place.reasons):
        gone = [place for place in report.on_npu if any(it.rule == rule for it in place.reasons)]
        kinds = ", ".join(dict.fromkeys(place.kind for place in gone))
        yield rule, f"{count(len(gone), 'operator')} of these ({kinds}): {GONE.get(rule, rule)}"


def _runtime_rows(report: CompileReport, memory: MemoryReport | None) -> Iterator[tuple[str, str]]:
    """Say what the runtime takes, states of CPU operators included, or that it was not counted."""
    if memory is None:
        if report.on_cpu:
            yield (
                "not counted",
                "what the runtime takes for operators on the CPU; `mizzen check` counts it",
            )
        return
    for area in memory.areas:
        if area.area == Use.RUNTIME.value:
            yield area.area, f"{exact_size(area.used_bytes)} in {memory_name(area.memory)}"


def proof_text(proof: Proof) -> str:
    """Say what was proved of what is on the NPU, and what was not compared."""
    from mizzen.report.proof import not_compared

    if not proof.compares:
        return f"none; {not_compared(proof)}" if proof.unproved else "none: nothing was compared"
    if proof.differing:
        return f"wrong at {', '.join(proof.differing)}"
    exact = "bit-exact" if not proof.bounded else "exact but for documented roundings"
    seen = f", {count(proof.watched, 'operator')} seen inside" if proof.watched else ""
    to = f" to {proof.against}" if proof.against else ""
    text = f"{exact}{to} on {count(proof.inputs, 'input')}{seen}, no hazards"
    if proof.unproved:
        text += f"; {not_compared(proof)}"
    return text


def code_rows(
    choices: Sequence[CodeChoice], choice: NetworkChoice | None = None
) -> Iterator[tuple[str, str]]:
    """Say whose code the network has, against what it was held, and which ways gave none."""
    if choice is not None:
        yield "code", choice_text(choice)
    elif choices:
        yield "code", "Mizzen's own"
    for number, of_operator in enumerate(choices):
        for tried in of_operator.tried:
            yield "passed over", f"NPU operator {number}, {tried.way}: {tried.why_not}"


def choice_text(choice: NetworkChoice) -> str:
    """Say which of two compilations was taken, and what it saves."""
    mine, other = ("Mizzen's own", "Vela's")
    costs = choice.mizzen, choice.vela
    if choice.maker is Maker.VELA:
        mine, other, costs = "Vela's", "Mizzen's own", costs[::-1]
    if costs[0] is None or costs[1] is None:
        return f"{mine}: {choice.reason}"
    return f"{mine}, for {choice.reason}: {_saving(costs[0], costs[1], other)}"


def _saving(mine: StreamCost, other: StreamCost, whose: str) -> str:
    """Say what one network costs beside another, by the timing model."""
    changes = (
        _change(mine.cycles, other.cycles, "fewer", "cycles"),
        _change(mine.memory_bytes, other.memory_bytes, "less", "memory"),
        _change(mine.constant_bytes, other.constant_bytes, "less", "flash"),
    )
    told = [change for change in changes if change]
    if not told:
        return f"as much of everything as {whose}"
    return f"{', '.join(told)} than {whose} (timing model)"


def _change(mine: int, other: int, less: str, what: str) -> str:
    """Say by what part a number is below or above another; nothing where they are equal."""
    if mine == other:
        return ""
    percent = max(100 * abs(mine - other) / max(other, 1), 0.1)
    return f"{percent:.1f} % {less if mine < other else 'more'} {what}"


def cost_of(artifact: Artifact | None) -> CostReport | None:
    """Return the costs of an artifact; None without one, and of a family without a timing model."""
    from mizzen.analysis.cost import cost_report
    from mizzen.compiler.report import NO_TIMING_MODEL
    from mizzen.diagnostics import MizzenError

    if artifact is None:
        return None
    try:
        return cost_report(artifact)
    except MizzenError as error:
        if error.diagnostic.code == NO_TIMING_MODEL:
            return None
        raise


def conversion_rows(time: InferenceTime) -> list[tuple[str, str]]:
    """Return the line of what a program's floats take besides, if the file takes integers."""
    return [("conversions", conversions(time))] if time.conversion_cycles else []


def energy_rows(energy: InferenceEnergy | None) -> list[tuple[str, str]]:
    """Return the line of what an inference takes of energy, where that is known."""
    return [] if energy is None else [("energy", inference_energy(energy))]


def estimate(report: CompileReport) -> str:
    """Say how long an inference takes by the timing model."""
    if report.time is None:
        return "none: no timing model knows this NPU"
    is_part = report.on_cpu and not report.subgraphs and not report.time.cpu_cycles
    return inference(report.time) + ("; NPU part only" if is_part else "")


def operators_text(report: CompileReport, *, width: int) -> str:
    """List every operator with its placement and what it costs."""
    lines = [
        (
            str(placement.index),
            placement.kind,
            placement.device.value,
            f"{placement.macs:,}",
            f"{placement.cycles:,}" if placement.device.value == "NPU" else "-",
        )
        for placement in report.placements
    ]
    headings = ("#", "type", "on", "MACs", "cycles", "output")
    names = [f"{placement.subgraph}: {placement.name}" if placement.subgraph else placement.name
             for placement in report.placements]  # fmt: skip
    text = named_table(lines, names, width=width, headings=headings, right=(0, 3, 4))
    return f"Operators (cycles are estimates)\n{text}"


def cpu_text(placements: Sequence[OperatorPlacement], *, width: int) -> str:
    """Say which operators are on the CPU and why, operators of one kind and reason together."""
    groups: dict[tuple[str, str, tuple[Reason, ...]], list[OperatorPlacement]] = {}
    for placement in placements:
        groups.setdefault((placement.subgraph, placement.kind, placement.reasons), []).append(
            placement
        )
    parts = ["On the CPU"]
    for (_, kind, reasons), members in groups.items():
        parts.append(_members(kind, members, width=width))
        parts += [line for reason in reasons for line in _reason_lines(reason, width=width)]
    return "\n".join(parts)


def _members(kind: str, members: Sequence[OperatorPlacement], *, width: int) -> str:
    subgraph = members[0].subgraph
    of = f"{subgraph}, " if subgraph else ""
    if len(members) == 1:
        (only,) = members
        text = f"{of}operator {only.index} {kind}" + (f' -> "{only.name}"' if only.name else "")
        return paragraph(text, width=width, indent="  ")
    indices = ", ".join(str(member.index) for member in members)
    return paragraph(f"{of}operators {indices} {kind}", width=width, indent="  ")


def _reason_lines(reason: Reason, *, width: int) -> Iterator[str]:
    told = bool(reason.actual) and reason.actual in reason.message
    facts = [
        ("why", reason.message),
        ("limit", "" if told else reason.limit),
        ("actual", "" if told else reason.actual),
        ("rule", reason.source),
        ("help", reason.help),
    ]
    facts = [(label, text) for label, text in facts if text]
    yield fields(facts, width=width, indent=REASON_INDENT)
