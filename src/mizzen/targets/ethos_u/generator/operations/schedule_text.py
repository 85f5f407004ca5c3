"""The text of a schedule: the lines of its sequence, with all that was decided.

.. code-block:: text

    schedule(%x: tensor<8x8x16xi8, NHWC> at SCRATCH+2048) {
      region SCRATCH = 4096 bytes
      staging 0 = 720 bytes at SCRATCH+3072
      blob 0 = dense<uint8[720] #3fa9c1d2e4b5> scales 0:160 weights 160:720
      fetch blob 0 bytes 0:720 to staging 0
      %y = CONV(%x zp -128) {...} : tensor<8x8x16xi8, NHCWB16> at SCRATCH+0 \\
    block 4x8x16 kernel_first blob 0 in staging 0
      return %y
    }

Lines stand in the order of the stream. A type has the layout that was chosen, and after it stands
where the tensor lies: a region, and the offset in bytes. Constants have no place: they are packed
when words are written. A block has rows, columns and channels; an operation some of whose channels
are computed has them after it, ``channels 0:16``. A blob stands before it is used for the first
time, with the bytes of each core's scale records and weights; it is read where constants lie unless
it is in a staging.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from mizzen.graph.notation import array_text
from mizzen.targets.ethos_u.generator.operations.items import (
    Blob,
    Fetch,
    Issue,
    Place,
    Staging,
    WeightPart,
)
from mizzen.targets.ethos_u.generator.operations.operations import Operation, convolution_of
from mizzen.targets.ethos_u.generator.operations.text import INDENT, SequenceText, traversal_text
from mizzen.targets.ethos_u.machine.program import RegionIndex

REGIONS = {int(region): region.name for region in RegionIndex}


def place_text(place: Place | None) -> str:
    """Return where something lies, ``at SCRATCH+64``; nothing for nowhere."""
    return "" if place is None else f"at {_region(place.region)}+{place.offset_bytes}"


def region_lines(region_bytes: Mapping[int, int]) -> Iterator[str]:
    """Yield the sizes of regions."""
    for region, size_bytes in sorted(region_bytes.items()):
        yield f"region {_region(region)} = {size_bytes} bytes"


def staging_lines(stagings: Sequence[Staging]) -> Iterator[str]:
    """Yield where blobs are fetched to."""
    for index, staging in enumerate(stagings):
        yield f"staging {index} = {staging.size_bytes} bytes {place_text(staging.place)}"


def item_lines(
    items: Sequence[Issue | Fetch],
    operations: Sequence[Operation],
    blobs: Sequence[Blob],
    text: SequenceText,
    told: set[int],
) -> Iterator[str]:
    """Yield the lines of transfers and operations, in the order of the stream.

    told  tensors that are declared already
    """
    known: set[int] = set()
    for item in items:
        if item.blob is not None and item.blob not in known:
            known.add(item.blob)
            yield _blob_line(item.blob, blobs[item.blob])
        if isinstance(item, Fetch):
            yield _fetch_line(item)
            continue
        operation = operations[item.operation]
        yield from text.declarations(operation, told)
        yield from text.lines(operation, *_how(item, operation))


def _region(region: int) -> str:
    return REGIONS.get(region, str(region))


def _offset(offset_bytes: int) -> str:
    return f"+{offset_bytes}" if offset_bytes else ""


def _blob_line(index: int, blob: Blob) -> str:
    data = array_text(np.frombuffer(blob.data, np.uint8)).text
    return " ".join((f"blob {index} =", data, *map(_core, blob.cores)))


def _core(part: WeightPart) -> str:
    scales, weights = part.scales_offset_bytes, part.weights_offset_bytes
    return (
        f"scales {scales}:{scales + part.scales_bytes} "
        f"weights {weights}:{weights + part.weights_bytes}"
    )


def _fetch_line(fetch: Fetch) -> str:
    target = f"staging {fetch.staging}{_offset(fetch.offset_bytes)}"
    return f"fetch blob {fetch.blob} bytes {fetch.start}:{fetch.stop} to {target}"


def _how(issue: Issue, operation: Operation) -> Iterator[str]:
    """Yield how an operation is done."""
    if issue.blocking is not None:
        yield f"block {'x'.join(map(str, issue.blocking.block))}"
        if convolution_of(operation) is not None:
            yield traversal_text(issue.blocking.part_kernel)
    if issue.channels is not None:
        yield f"channels {issue.channels[0]}:{issue.channels[1]}"
    if issue.blob is not None:
        yield f"blob {issue.blob}"
    if issue.staging is not None:
        yield f"in staging {issue.staging}{_offset(issue.offset_bytes)}"


def schedule_lines(interface: str, lines: Iterator[str], returned: str) -> str:
    """Return a schedule's text, of its lines without indentation."""
    return "\n".join(
        (f"schedule({interface}) {{", *(INDENT + line for line in lines), INDENT + returned, "}")
    )
