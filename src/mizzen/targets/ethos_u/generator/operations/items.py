"""What stands in a schedule: operations in blocks, constants as they are encoded, transfers."""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.targets.ethos_u.generator.operations.maps import Shape


@dataclass(frozen=True, slots=True)
class Blocking:
    """The block of the output that is computed at once, and how weights come.

    part_kernel  whether kernel elements come before most of the input's channels
    fast         whether U85 decodes them fast
    """

    block: Shape
    part_kernel: bool = False
    fast: bool = False


@dataclass(frozen=True, slots=True)
class WeightPart:
    """Where a core's scale records and weight stream lie in a blob, in bytes; multiples of 16."""

    scales_offset_bytes: int
    scales_bytes: int
    weights_offset_bytes: int
    weights_bytes: int


@dataclass(frozen=True, slots=True)
class Blob:
    """Encoded constants of some channels of a convolution, for a block depth and a traversal.

    cores   a part for each core, or of U85 for each weight stream, whose first has all records
    fast    whether weights are a stream that U85 decodes fast
    sparse  whether they are in the order in which U85 takes half of them
    """

    data: bytes
    cores: tuple[WeightPart, ...]
    fast: bool = False
    sparse: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where something lies: `region` is a `RegionIndex`."""

    region: int
    offset_bytes: int


@dataclass(frozen=True, slots=True)
class Staging:
    """Memory into which blobs are fetched; whatever is in it when is up to the schedule's items."""

    place: Place
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Fetch:
    """A transfer of bytes `start .. stop` of a blob; byte 0 of the blob goes to `offset_bytes`."""

    blob: int
    start: int
    stop: int
    staging: int
    offset_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Issue:
    """An operation, or some channels of its output.

    operation     index in the sequence
    channels      first channel of the output, and the one after the last; None for all (of a copy
                  too, whose blocking is None)
    blob          of a convolution, index of its constants
    staging       where the blob was fetched to, and at which offset; None if the NPU reads it
                  where constants lie
    """

    operation: int
    blocking: Blocking | None
    channels: tuple[int, int] | None = None
    blob: int | None = None
    staging: int | None = None
    offset_bytes: int = 0
