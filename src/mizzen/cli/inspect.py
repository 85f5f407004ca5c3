"""Show what an artifact holds, or how a network becomes commands (--between)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mizzen.cli.artifacts import add_data_option, load_artifact, networks_in
from mizzen.cli.between import between, require_artifact
from mizzen.cli.configuration import add_system_options
from mizzen.cli.console import Answer, Console
from mizzen.cli.decisions import decisions_text
from mizzen.cli.layout import count, fields, shape, size, table
from mizzen.cli.manifest import manifest_text
from mizzen.cli.placement import artifact_text

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact
    from mizzen.artifact.control_step import ControlStep
    from mizzen.artifact.interface import TensorInfo
    from mizzen.artifact.program import ProgramView
    from mizzen.artifact.steps import CpuStep, HostSide
    from mizzen.diagnostics import Diagnostic
    from mizzen.embedded.search import Payload

SUMMARY = "what an artifact holds: commands, regions, memory map"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "artifact",
        metavar="ARTIFACT",
        help="a compiled .tflite, .zip or .pte, or Vela's raw .npz; with --between, a network "
        "that is not compiled: a quantised .tflite, .onnx or .pt2 file, or a .tosa file",
    )
    add_data_option(parser)
    parser.add_argument("--listing", action="store_true", help="list every command")
    parser.add_argument(
        "--hazards",
        action="store_true",
        help="find memory accesses whose order no wait and no block dependency guarantees, and "
        "reads of memory that nothing wrote",
    )
    parser.add_argument(
        "--why",
        action="store_true",
        help="for Ethos-U, list each operation's block, traversal, layouts and waits, and the cost"
        " of the next best block; on U55 and U65 also its use of the shared buffer",
    )
    parser.add_argument(
        "--between",
        metavar="STAGE[,STAGE...]",
        help="for Ethos-U, show a network after each of these steps of Mizzen's generator: lower "
        "(graph and NPU operations), arrange (operations that are changed, for instance into "
        "stripes that fit --arena-cache-size), schedule (blocks, layouts, addresses, "
        "transfers)",
    )
    add_system_options(
        parser, "of a network; with an artifact, --accelerator-config is the NPU it must be for"
    )


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Describe the artifact, as far as its streams can be read, or a network on its way."""
    if options.between is not None:
        return between(options, console)
    require_artifact(options)
    return _artifact(options, console)


def _artifact(options: argparse.Namespace, console: Console) -> Answer:

    several = networks_in(options)
    if several:
        return _networks(options, several, console)
    artifact = load_artifact(options, options.artifact)
    console.note(artifact_text(artifact, width=console.width))
    found = [_looked_at(row, options, console) for row in artifact.subgraphs]
    manifest = artifact.manifest
    document = {
        **found[0].document,
        "manifest": None if manifest is None else manifest.as_dict(),
        **({} if len(found) == 1 else {"subgraphs": [row.document for row in found]}),
    }
    head = [] if manifest is None else [manifest_text(manifest, width=console.width)]
    text = "\n\n".join((*head, *(part for row in found for part in row.parts)))
    stopped = [error for row in found for error in row.stopped]
    if stopped:
        return Answer(document, text, diagnostics=artifact.doubts, error=stopped[0])
    failures = artifact.hazards if options.hazards else ()
    return Answer(document, text, failures=list(failures), diagnostics=artifact.doubts)


def _networks(options: argparse.Namespace, held: Sequence[Payload], console: Console) -> Answer:
    """List the networks in a source or an image, of which none is chosen."""
    cells = [
        (str(place), f"{each.offset:#x}", size(len(each.data)), each.kind.value,
         each.accelerator or "none", each.symbol or "-")
        for place, each in enumerate(held)
    ]  # fmt: skip
    headings = ("payload", "offset", "size", "kind", "NPU", "symbol")
    text = table(cells, width=console.width, headings=headings, right=(0, 1, 2))
    document = {
        "artifact": options.artifact,
        "payloads": [each.as_dict() for each in held],
    }
    return Answer(document, f"{text}\n\nChoose one\n  --payload N")


@dataclass(frozen=True, slots=True)
class _Seen:
    """What there is to say of a subgraph, and why streams of it cannot be read to their ends."""

    document: dict[str, object]
    parts: list[str]
    stopped: list[Diagnostic]


def _looked_at(artifact: Artifact, options: argparse.Namespace, console: Console) -> _Seen:
    """Describe the steps of a subgraph."""
    from mizzen.artifact.steps import NpuStep

    views = {i: step.view for i, step in enumerate(artifact.steps) if isinstance(step, NpuStep)}
    parts = [f"Subgraph {artifact.title}"] if artifact.title else []
    parts.append(_interface(artifact, console))
    data: list[dict[str, object]] = []
    for i, step in enumerate(artifact.steps):
        if isinstance(step, NpuStep):
            parts += _npu_text(i, views[i], console)
            data.append(_npu_data(views[i], options.listing))
        else:
            parts.append(_cpu_text(i, step, console))
            data.append({"region": "CPU", "operators": list(step.kinds)})
        if options.listing and i in views:
            parts.append(f"Commands of step {i}\n{views[i].listing}")
    document = {**_interface_data(artifact), "steps": data}
    stopped = [row.listing.stopped_by for row in views.values() if row.listing.stopped_by]
    if not stopped and options.why:
        with console.progress(f"reading decisions out of {options.artifact}"):
            parts += _decision_texts(artifact, data, console)
    if not stopped and options.hazards:
        with console.progress(f"looking for hazards in {options.artifact}"):
            parts += _hazard_texts(artifact, data, console)
    return _Seen(document, parts, stopped)


def _decision_texts(
    artifact: Artifact, data: list[dict[str, object]], console: Console
) -> Iterator[str]:
    """Say how operations are done, and put it into the data of their steps."""
    from mizzen.analysis.decisions import decisions

    for index, rows in decisions(artifact).items():
        data[index]["decisions"] = [row.as_dict() for row in rows]
        yield decisions_text(index, rows, console.width)


def _hazard_texts(
    artifact: Artifact, data: list[dict[str, object]], console: Console
) -> Iterator[str]:
    """Say for each NPU operator how many hazards there are, and put them into its data."""
    from mizzen.artifact.steps import NpuStep

    for i, step in enumerate(artifact.steps):
        if isinstance(step, NpuStep):
            report = step.hazards
            data[i]["hazards"] = report.as_dict()
            rows = [
                ("checked", f"{count(report.operations, 'operation')} of {report.accelerator}"),
                ("found", count(len(report.diagnostics), "hazard")),
            ]
            yield f"Hazards of step {i}\n{fields(rows, width=console.width)}"


def _interface(artifact: Artifact, console: Console) -> str:
    rows = [
        (word, f"{info.name} {info.dtype}{shape(info.shape)}{_quantization(info)}")
        for word, infos in (("input", artifact.inputs), ("output", artifact.outputs))
        for info in infos
    ]
    return f"Interface\n{fields(rows, width=console.width)}"


def _quantization(info: TensorInfo) -> str:
    quantization = info.quantization
    if quantization is None or len(quantization.scale) != 1:
        return ""
    return f", scale {quantization.scale[0]:.6g}, zero point {quantization.zero_point[0]}"


def _interface_data(artifact: Artifact) -> dict[str, object]:
    def infos(tensors: Sequence[TensorInfo]) -> list[dict[str, object]]:
        return [
            {
                "name": info.name,
                "shape": list(info.shape),
                "dtype": str(info.dtype),
                "scale": list(info.quantization.scale) if info.quantization else [],
                "zero_point": list(info.quantization.zero_point) if info.quantization else [],
            }
            for info in tensors
        ]

    return {
        "artifact": artifact.name,
        **({"subgraph": artifact.title} if artifact.title else {}),
        "accelerator": artifact.accelerator,
        "inputs": infos(artifact.inputs),
        "outputs": infos(artifact.outputs),
    }


def _npu_text(index: int, view: ProgramView, console: Console) -> Iterator[str]:
    kinds = ", ".join(f"{number} {name}" for name, number in view.operations.items())
    rows = [
        ("hardware", view.hardware),
        ("stream", f"{size(view.stream_bytes)}, {count(view.commands, 'command')}"),
        ("operations", kinds or "none"),
    ]
    yield f"Step {index}: NPU operator\n{fields(rows, width=console.width)}"
    regions = [(str(row.region), row.holds, size(row.size_bytes)) for row in view.regions]
    headings = ("region", "holds", "size")
    yield f"Regions of step {index}\n" + table(
        regions, width=console.width, headings=headings, right=(0,)
    )
    cells = [
        (str(row.region), f"{row.offset_bytes:#08x}", size(row.size_bytes), row.role, row.name)
        for row in view.tensors
    ]
    headings = ("region", "offset", "size", "", "tensor")
    yield f"Memory map of step {index}\n" + table(
        cells, width=console.width, headings=headings, right=(0, 2)
    )


def _npu_data(view: ProgramView, with_commands: bool) -> dict[str, object]:
    data: dict[str, object] = {
        "region": "NPU",
        "stream_bytes": view.stream_bytes,
        "commands": view.commands,
        "operations": dict(view.operations),
        "regions": [row.as_dict() for row in view.regions],
        "memory_map": [row.as_dict() for row in view.tensors],
    }
    if with_commands:
        data["listing"] = view.listing.as_dict()["commands"]
    return data


def _cpu_text(
    index: int,
    step: CpuStep | ControlStep | HostSide,
    console: Console,
) -> str:
    rows = [("operators", ", ".join(step.kinds))]
    return f"Step {index}: CPU\n{fields(rows, width=console.width)}"
