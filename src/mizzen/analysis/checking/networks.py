"""Check a network against an NPU: what would be on the CPU and why, and whether it fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from typing import Any, Unpack

from mizzen.analysis.checking.budget import Again, again, sram_failures
from mizzen.artifact.artifact import Artifact
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.compile import front_end_for, source_of
from mizzen.compiler.options import CompileKeywords, options_of
from mizzen.diagnostics import Diagnostic, ProgressCallback
from mizzen.report import CompileReport, OperatorPlacement
from mizzen.report.compilation import as_dict


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The needs of a network, and whether they are allowed.

    compilation        where every operator went and why, memory, estimates
    max_cpu_ops        operators that may be on the CPU; None for any number
    sram_budget_bytes  SRAM that may be used; None for any amount
    failures           what is not as allowed
    artifact           what was compiled; None of a `.tosa`, whose other operators nothing runs
    """

    compilation: CompileReport
    max_cpu_ops: int | None
    sram_budget_bytes: int | None
    failures: tuple[Diagnostic, ...]
    artifact: Artifact | None = None

    def __str__(self) -> str:
        """Return what the command line prints of it."""
        from mizzen.notebook import text_of

        return text_of(self)

    def _repr_html_(self) -> str | None:
        """Return the HTML that a notebook shows; None for its text."""
        from mizzen.notebook import html_of

        return html_of(self)

    @property
    def holds(self) -> bool:
        """Whether everything is as allowed."""
        return not self.failures

    @property
    def placements(self) -> tuple[OperatorPlacement, ...]:
        """Every operator: where it goes, why, the limit and the actual value, what to change."""
        return self.compilation.placements

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready data."""
        return {
            "holds": self.holds,
            "max_cpu_ops": self.max_cpu_ops,
            "sram_budget_bytes": self.sram_budget_bytes,
            "failures": [failure.as_dict() for failure in self.failures],
            **as_dict(self.compilation),
        }


def check(
    model: str | PathLike[str] | bytes,
    accelerator: str | None = None,
    *,
    max_cpu_ops: int | None = 0,
    sram_budget: int | None = None,
    on_progress: ProgressCallback | None = None,
    **options: Unpack[CompileKeywords],
) -> CheckReport:
    """Compile a network to see what becomes of it, without keeping the artifact.

    `sram_budget` is in bytes; the other keywords and the errors are those of `compile`. Operators
    of a `.tosa` that the NPU does not take are no error here, but on the CPU, with their reasons.
    """
    target = resolve_target(options_of(accelerator, options, CompileKeywords, check))
    source = source_of(model)
    checked = front_end_for(source, target).check(source, target, on_progress)
    failures = failures_of(
        checked.report,
        checked.artifact,
        max_cpu_ops=max_cpu_ops,
        sram_budget_bytes=sram_budget,
        compile_again=again(model, accelerator, **options),
    )
    return CheckReport(checked.report, max_cpu_ops, sram_budget, tuple(failures), checked.artifact)


def failures_of(
    report: CompileReport,
    artifact: Artifact | None = None,
    *,
    max_cpu_ops: int | None,
    sram_budget_bytes: int | None,
    compile_again: Again | None = None,
) -> Iterator[Diagnostic]:
    """Return errors for what is not as allowed: E401 for the CPU, E402 for the SRAM.

    compile_again  tries what would help; without it, what would is not known
    """
    on_cpu = len(report.on_cpu)
    if max_cpu_ops is not None and on_cpu > max_cpu_ops:
        allowed = f"at most {max_cpu_ops} of {len(report.placements)} operators"
        off_npu = report.macs - report.macs_on_npu
        count = "1 is" if on_cpu == 1 else f"{on_cpu} are"
        work = f" with {off_npu} of {report.macs} MACs" if report.macs else ""
        yield Diagnostic(
            "E401",
            f"{allowed} may be on the CPU, but {count}{work}",
            rule="--max-cpu-ops",
            help="change the network as each operator's reason says, or allow more",
        )
    if sram_budget_bytes is not None:
        yield from sram_failures(report, artifact, sram_budget_bytes, compile_again)
