"""Artifacts as verbs take them: the file, and what belongs to it in others."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.cli.layout import read_size

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact
    from mizzen.embedded.search import Payload


def add_data_option(parser: argparse.ArgumentParser) -> None:
    """Add the options for artifacts that are not a file of their own."""
    parser.add_argument(
        "--payload",
        metavar="N",
        type=int,
        help="which network or command stream of a C source (.h, .c, .cpp) or an image of firmware "
        "(.elf, .bin, .hex, .srec, .uf2), as `mizzen inspect` numbers them, where it has several",
    )
    parser.add_argument(
        "--ptd",
        metavar="FILE",
        action="append",
        default=[],
        help="data that an ExecuTorch program keeps in a file of its own; may be repeated "
        "(default: those .ptd files beside the program that have what it needs)",
    )

    parser.add_argument(
        "--region",
        metavar="N=FILE|BYTES",
        action="append",
        type=_region,
        default=[],
        help="ARTIFACT is a bare command stream, with or without a driver's head, or what Mesa "
        "serialises: what region N starts with, or the size, as 64K, of one that holds nothing yet "
        "(a region with an input needs a FILE); needs --accelerator-config unless the head names "
        "the NPU",
    )
    parser.add_argument(
        "--expect",
        metavar="N=FILE",
        action="append",
        type=_region,
        default=[],
        help="what region N of a bare stream holds after it: run and check compare",
    )


def _region(word: str) -> tuple[int, str]:
    number, _, value = word.partition("=")
    if not number.isdecimal() or not value:
        raise argparse.ArgumentTypeError(f"must be N=FILE or N=BYTES, not {word!r}")
    return int(number), value


def is_size(value: str) -> bool:
    """Whether a value of `--region` is a size, as 64K for KiB, and not a file."""
    try:
        read_size(value)
    except ValueError:
        return False
    return True


def _contents(value: str) -> bytes | int:
    """Return a size, or what a file has. Raises as `contents_of_region`."""
    from mizzen.artifact.opening import contents_of_region

    return read_size(value) if is_size(value) else contents_of_region(Path(value))


def networks_in(options: argparse.Namespace) -> Sequence[Payload]:
    """Return the networks of a source or image that has several, where none is chosen."""
    from mizzen.artifact.opening import read_file
    from mizzen.embedded.search import is_carrier, payloads

    if options.payload is not None or options.region:
        return ()
    path = Path(options.artifact)
    data = read_file(path)
    held = payloads(data, path.name) if is_carrier(data, path.name) else ()
    return held if len(held) > 1 else ()


def load_artifact(options: argparse.Namespace, path: str | Path) -> Artifact:
    """Read the artifact of a verb. Raises as `mizzen.load`."""
    import mizzen
    from mizzen.artifact.loading import load_stream
    from mizzen.artifact.opening import read_file

    if options.region:
        regions = {number: _contents(value) for number, value in options.region}
        expected = {number: read_file(Path(value)) for number, value in options.expect}
        return load_stream(path, options.accelerator_config, regions, expected, options.payload)
    return mizzen.load(path, options.accelerator_config, ptd=options.ptd, payload=options.payload)
