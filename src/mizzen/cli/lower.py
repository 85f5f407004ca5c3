"""Lower an exported PyTorch program to TOSA."""

from __future__ import annotations

import argparse
from pathlib import Path

from mizzen.cli.console import Answer, Console
from mizzen.cli.layout import fields, size

SUMMARY = "PyTorch .pt2 -> TOSA file"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("model", metavar="MODEL", help="a .pt2 that torch.export.save wrote")
    parser.add_argument(
        "--profile",
        choices=("INT", "FP"),
        default="INT",
        help="TOSA's profile: INT for a quantised program, FP for another (default: INT)",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the TOSA file (default: MODEL's name with .tosa)"
    )


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Lower, write the file, and say how large it is."""
    from mizzen.cli.configuration import read_file
    from mizzen.compiler.torch.exported import load_exported
    from mizzen.files import write_file
    from mizzen.torch.lowering import to_tosa

    source = Path(options.model)
    data = read_file(source)
    with console.progress(f"lowering {options.model}"):
        network = to_tosa(load_exported(data, source.name), source.stem, options.profile)
    path = Path(options.output) if options.output else Path(f"{source.stem}.tosa")
    write_file(path, network)
    return Answer(
        {"tosa": str(path), "profile": options.profile, "bytes": len(network)},
        fields([(str(path), f"{size(len(network))}, profile {options.profile}")],
               width=console.width),
    )  # fmt: skip
