"""Compile a TOSA network for Ethos-U: all of it is on the NPU, or an error says why not.

Whoever writes TOSA has decided what is for the NPU; there is no framework that could compute the
rest. The network is one unit, its variables too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.reading import contents_of
from mizzen.compiler.codegen import RegionCode, RegionRefusal
from mizzen.compiler.edges import edges_of_graph
from mizzen.compiler.ethos_u.proof import prove_alone
from mizzen.compiler.ethos_u.regions import OwnCode, OwnRegions
from mizzen.compiler.proof.findings import RegionFindings, Wrong
from mizzen.compiler.proof.options import ProofOptions
from mizzen.compiler.refusals import RefusalSearch, Refused, settle
from mizzen.compiler.report import compile_report, timed_report
from mizzen.compiler.shapes import shapes_of_graph
from mizzen.compiler.ways import Failed, first_right
from mizzen.diagnostics import MizzenError, Origin, ProgressCallback, Reason, fail
from mizzen.flatbuffer.tosa import ENDING
from mizzen.frontends import tosa as frontend
from mizzen.graph import Graph, Operation
from mizzen.ops.control_flow import Constant, OfVariable, Variable
from mizzen.ops.verify import require_valid
from mizzen.partition import Extracted, extract_operations
from mizzen.partition.placement import macs_of
from mizzen.report import CompileReport, Device, OperatorPlacement
from mizzen.report.board_figures import BoardFigures
from mizzen.report.code import Tried
from mizzen.report.proof import NOT_PROVED, Proof
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration

MOST_NAMED = 5
"""Operators that an error names; more would hide the first."""


def read_tosa(data: bytes, name: str, ignore_ops: Sequence[str]) -> Graph:
    """Read a file's network. E15x for a file that cannot be read, E80x for one that TOSA does not
    allow, E223 for operators to keep on the CPU."""
    if ignore_ops:
        raise fail(
            "E223",
            "every operator of a TOSA network must run on the NPU, and "
            f"{', '.join(ignore_ops)} should stay on the CPU",
            help="leave out `--ignore-ops`; split the network where it was made",
        )
    graph = frontend.read(data, name)
    require_valid(graph)
    return graph


def compile_tosa(
    file: bytes,
    name: str,
    configuration: EthosUConfiguration,
    options: ProofOptions,
    on_progress: ProgressCallback | None,
) -> Artifact:
    """Compile a file's network, and prove what comes.

    Raises as `read_tosa`, E301 for operators that no rule takes, E307 if no way gives right code.
    """
    graph = _unit(read_tosa(file, name, configuration.ignore_ops)).graph
    regions = TosaRegions(configuration)
    outcome = first_right(
        lambda: _unit(frontend.read(file, name)),
        regions.ways,
        lambda code: _findings(code, graph, options),
        on_progress,
    )
    if isinstance(outcome, Failed):
        code, proof = _inexact(outcome, options)
        if code is None:
            raise _failure(graph, regions, outcome, options)
        return _artifact(graph, name, code, proof, outcome.tried, configuration)
    return _artifact(graph, name, outcome.code, outcome.proof, outcome.tried, configuration)


class TosaRegions(OwnRegions):
    """Compiles networks that are in TOSA's form already, as their writer wants them."""

    passes = None


def _unit(graph: Graph) -> Extracted:
    """Return a whole graph; each of the file's operators is a group of its own."""
    for operation in graph:
        operation.group = index_of(operation)
    return Extracted(graph, tuple(graph.inputs), tuple(graph.outputs))


def _findings(code: RegionCode, graph: Graph, options: ProofOptions) -> RegionFindings:
    assert isinstance(code, OwnCode), "it is our own"
    if not options.inputs:
        return RegionFindings(NOT_PROVED)
    return prove_alone(code, _unit(graph), options)


def _inexact(failed: Failed, options: ProofOptions) -> tuple[RegionCode | None, Proof]:
    """Return wrong code that was asked for all the same."""
    if failed.findings is None or not options.allow_inexact:
        return None, NOT_PROVED
    return failed.code, replace(failed.findings.proof, differing=("an output",))


def _artifact(
    graph: Graph,
    name: str,
    code: RegionCode,
    proof: Proof,
    tried: tuple[Tried, ...],
    configuration: EthosUConfiguration,
) -> Artifact:
    assert isinstance(code, OwnCode), "it is our own"
    origins = dict(code.origins)
    (choice,) = code.costs.code
    report = compile_report(
        name,
        configuration,
        placements_of(graph, {}),
        [replace(code.costs, code=(replace(choice, tried=tried),))],
        compiler=code.compiler,
        flash_bytes=len(code.network),
        origins=[origins],
        proof=proof,
    )
    contents = contents_of(code.model, [origins])
    return Artifact(code.network, f"{name.removesuffix(ENDING)}_vela.tflite", contents, report)


def _failure(
    graph: Graph, regions: TosaRegions, failed: Failed, options: ProofOptions
) -> MizzenError:
    """Return why there is no code, at the operator because of which there is none."""
    if failed.findings is not None and failed.findings.wrong is not None:
        return _wrong(graph, regions, failed.findings.wrong, options)
    assert failed.refusal is not None, "there is at least one way"
    operations = {row.group: row for row in reversed(graph.sorted())}
    refused = sorted(failed.refusal.reasons, key=lambda group: index_of(operations[group]) or 0)
    first = operations[refused[0]]
    named = ", ".join(str(index_of(operations[group])) for group in islice(refused, MOST_NAMED))
    more = " and more" if len(refused) > MOST_NAMED else ""
    others = f" (operators {named}{more})" if len(refused) > 1 else ""
    reason = failed.refusal.reasons[refused[0]]
    return fail(
        "E301",
        f"{regions.configuration.accelerator.name} must run every operator, and cannot run "
        f"{first.kind}{others}: {reason.message}",
        origin=first.origin,
        rule=reason.source or None,
        help="lower it to other operators, choose another accelerator, or split the network there",
    )


def _wrong(graph: Graph, regions: TosaRegions, wrong: Wrong, options: ProofOptions) -> MizzenError:
    """Return what is wrong at the first operator whose beginning of the network is."""
    operations = [row for row in graph.sorted() if not isinstance(row, Constant | Variable)]

    def attempt(units: Sequence[Operation]) -> Wrong | None:
        part, before = (extract_operations(graph, units).graph for _ in range(2))
        code = regions.compile(_unit(part), None)
        return None if isinstance(code, RegionRefusal) else _findings(code, before, options).wrong

    keeps = any(isinstance(row, OfVariable) for row in graph)
    found = None if keeps else RefusalSearch(operations, attempt).first(wrong)
    operation, why = (operations[-1], wrong) if found is None else found
    what = f"gives wrong numbers: {why}"
    if isinstance(why, MizzenError):
        what = f"cannot be executed: {why.diagnostic.message}"
    return fail(
        "E307",
        f"the compiler's code must compute what the network does, and that for {operation.kind} "
        f"{what}",
        origin=operation.origin,
        help="write the operator in another form, or compile with --allow-inexact",
    )


def check_tosa(
    file: bytes,
    name: str,
    configuration: EthosUConfiguration,
    figures: BoardFigures | None,
    on_progress: ProgressCallback | None,
) -> CompileReport:
    """Place a file's operators; memory and cycles are of those that the NPU takes.

    Raises as `read_tosa`.
    """
    graph = _unit(read_tosa(file, name, configuration.ignore_ops)).graph
    regions = TosaRegions(configuration)

    def attempt(refused: dict[int, Reason]) -> OwnCode | Refused | None:
        unit = _unit(frontend.read(file, name))
        left = [row for row in unit.graph.sorted() if row.group not in refused and _computes(row)]
        if not left:
            return None
        part = extract_operations(unit.graph, left) if refused else unit
        code = regions.compile(_unit(part.graph), on_progress)
        return Refused(code.reasons) if isinstance(code, RegionRefusal) else code

    refused: dict[int, Reason] = {}
    code = settle(attempt, refused)
    reasons: dict[int | None, tuple[Reason, ...]] = {
        group: (reason,) for group, reason in refused.items()
    }
    if not isinstance(code, OwnCode):
        return compile_report(name, configuration, placements_of(graph, reasons), [])
    origins = [dict(code.origins)]
    report = compile_report(
        name,
        configuration,
        placements_of(graph, reasons),
        [code.costs],
        compiler=code.compiler,
        flash_bytes=len(code.network),
        origins=origins,
    )
    part = Artifact(code.network, name, contents_of(code.model, origins), report)
    return timed_report(part, report, figures)


def _computes(operation: Operation) -> bool:
    return not isinstance(operation, Constant | Variable)


def index_of(operation: Operation) -> int | None:
    """Return an operation's index among the file's operators; None for one that was added."""
    return operation.origin.operator if operation.origin else None


def placements_of(
    graph: Graph,
    refused: Mapping[int | None, tuple[Reason, ...]],
) -> Iterator[OperatorPlacement]:
    """Return file's operators that compute, each once; reasons are by their index."""
    edges = edges_of_graph(graph, lambda row: None if isinstance(row, Constant) else index_of(row))
    shapes = shapes_of_graph(graph, index_of)
    by_index = {index_of(operation): operation for operation in reversed(graph.sorted())}
    for index in sorted(index for index in by_index if index is not None):
        operation = by_index[index]
        if isinstance(operation, Constant):
            continue
        origin: Origin | None = operation.origin
        yield OperatorPlacement(
            index=index,
            kind=operation.kind,
            name=(origin.name if origin else None) or "",
            device=Device.CPU if index in refused else Device.NPU,
            shape=shapes.get(index, ""),
            macs=macs_of(operation),
            reasons=refused.get(index, ()),
            after=edges[index],
        )
