"""Show what an artifact holds: steps, hardware, regions, memory map, commands."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mizzen.cli.console import Answer, Console
from mizzen.cli.layout import count, fields, shape, size, table
from mizzen.cli.placement import artifact_text

if TYPE_CHECKING:
    from mizzen.artifact import Artifact, CpuStep, NpuStep, TensorInfo
    from mizzen.diagnostics import Diagnostic
    from mizzen.host import HostStep
    from mizzen.targets.ethos_u.listing import ProgramListing
    from mizzen.targets.ethos_u.program import Placement, Program

SUMMARY = "listing of the command stream, regions, memory map"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "artifact", metavar="ARTIFACT", help="a compiled .tflite, or Vela's raw .npz"
    )
    parser.add_argument("--listing", action="store_true", help="list every command")
    parser.add_argument(
        "--hazards",
        action="store_true",
        help="find accesses to memory whose order no wait and no block dependency guarantees, and "
        "reads of what nothing wrote",
    )
    parser.add_argument(
        "--accelerator-config", metavar="NAME", help="the NPU that the artifact must be for"
    )


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Describe the artifact, as far as its streams can be read."""
    import mizzen
    from mizzen.artifact import NpuStep
    from mizzen.targets.ethos_u.listing import list_program

    artifact = mizzen.load(options.artifact, options.accelerator_config)
    console.note(artifact_text(artifact, width=console.width))
    listings = {
        i: list_program(step.program)
        for i, step in enumerate(artifact.steps)
        if isinstance(step, NpuStep)
    }
    parts = [_interface(artifact, console)]
    data: list[dict[str, object]] = []
    for i, step in enumerate(artifact.steps):
        if isinstance(step, NpuStep):
            parts += _npu_text(i, step, listings[i], console)
            data.append(_npu_data(step, listings[i], options.listing))
        else:
            parts.append(_cpu_text(i, step, console))
            data.append({"region": "CPU", "operators": list(step.kinds)})
        if options.listing and i in listings:
            parts.append(f"Commands of step {i}\n{listings[i]}")
    document = {**_interface_data(artifact), "steps": data}
    stopped = [listing.stopped_by for listing in listings.values() if listing.stopped_by]
    if stopped:
        return Answer(document, "\n\n".join(parts), error=stopped[0])
    failures: list[Diagnostic] = []
    if options.hazards:
        with console.progress(f"looking for hazards in {options.artifact}"):
            failures += artifact.hazards
        parts += _hazard_texts(artifact, data, console)
    return Answer(document, "\n\n".join(parts), failures=failures)


def _hazard_texts(
    artifact: Artifact, data: list[dict[str, object]], console: Console
) -> Iterator[str]:
    """Say for each NPU operator how many hazards there are, and put them into its data."""
    from mizzen.artifact import NpuStep

    for i, step in enumerate(artifact.steps):
        if isinstance(step, NpuStep):
            report = step.hazards
            data[i]["hazards"] = report.as_dict()
            rows = [
                ("checked", f"{count(report.operations, 'operation')} of {report.accelerator}"),
                ("found", count(len(report.findings), "hazard")),
            ]
            yield f"Hazards of step {i}\n{fields(rows, width=console.width)}"


def _interface(artifact: Artifact, console: Console) -> str:
    rows = [
        (word, f"{info.name} {info.dtype}{shape(info.shape)}{_quantisation(info)}")
        for word, infos in (("input", artifact.inputs), ("output", artifact.outputs))
        for info in infos
    ]
    return f"Interface\n{fields(rows, width=console.width)}"


def _quantisation(info: TensorInfo) -> str:
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
        "accelerator": artifact.accelerator,
        "inputs": infos(artifact.inputs),
        "outputs": infos(artifact.outputs),
    }


def _kinds(listing: ProgramListing) -> dict[str, int]:
    """Count the operation commands by name, those that occur most first."""
    from mizzen.isa import Kind

    names = [line.name for line in listing.lines if line.kind is Kind.OPERATION]
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def _npu_text(
    index: int, step: NpuStep, listing: ProgramListing, console: Console
) -> Iterator[str]:
    program = step.program
    kinds = ", ".join(f"{number} {name}" for name, number in _kinds(listing).items())
    rows = [
        ("hardware", _hardware(program)),
        ("stream", f"{size(program.words.nbytes)}, {count(len(listing.lines), 'command')}"),
        ("operations", kinds or "none"),
    ]
    yield f"Step {index}: NPU operator\n{fields(rows, width=console.width)}"
    regions = [(str(region), role, size(held)) for region, role, held in _regions(program)]
    headings = ("region", "holds", "size")
    yield f"Regions of step {index}\n" + table(
        regions, width=console.width, headings=headings, right=(0,)
    )
    cells = [
        (str(place.region), f"{place.offset:#08x}", size(place.size_bytes), role, place.name)
        for role, place in _places(program)
    ]
    headings = ("region", "offset", "size", "", "tensor")
    yield f"Memory map of step {index}\n" + table(
        cells, width=console.width, headings=headings, right=(0, 2)
    )


def _hardware(program: Program) -> str:
    from mizzen.targets.ethos_u.driver import configuration

    hardware = configuration(program.hardware)
    version = ".".join(str(number) for number in hardware.arch_version)
    buffer = "" if hardware.shram_kib is None else f", {hardware.shram_kib} KiB shared buffer"
    return f"{hardware.accelerator}, architecture {version}{buffer}"


def _regions(program: Program) -> Iterator[tuple[int, str, int]]:
    from mizzen.targets.ethos_u.regions import base_pointers

    roles = base_pointers(0, 0)
    for region, held in sorted(program.region_bytes.items()):
        yield region, roles[region] if region < len(roles) else "-", held


def _places(program: Program) -> list[tuple[str, Placement]]:
    """Give the tensors that the operator takes and gives, by address."""
    inputs = [("state" if place.variable else "input", place) for place in program.inputs]
    places = [*inputs, *(("output", place) for place in program.outputs)]
    return sorted(places, key=lambda row: (row[1].region, row[1].offset))


def _npu_data(step: NpuStep, listing: ProgramListing, with_commands: bool) -> dict[str, object]:
    program = step.program
    data: dict[str, object] = {
        "region": "NPU",
        "stream_bytes": program.words.nbytes,
        "commands": len(listing.lines),
        "operations": _kinds(listing),
        "regions": [
            {"region": region, "holds": role, "size_bytes": held}
            for region, role, held in _regions(program)
        ],
        "memory_map": [
            {
                "name": place.name,
                "role": role,
                "region": place.region,
                "offset_bytes": place.offset,
                "size_bytes": place.size_bytes,
                "shape": list(place.shape),
                "dtype": str(place.dtype),
            }
            for role, place in _places(program)
        ],
    }
    if with_commands:
        data["listing"] = listing.as_dict()["commands"]
    return data


def _cpu_text(index: int, step: CpuStep | HostStep, console: Console) -> str:
    rows = [("operators", ", ".join(step.kinds))]
    return f"Step {index}: CPU\n{fields(rows, width=console.width)}"
