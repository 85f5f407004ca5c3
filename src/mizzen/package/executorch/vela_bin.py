"""The payload of an Ethos-U delegate: what an ExecuTorch runtime hands to the NPU's driver.

A sequence of blocks, each a head of 32 bytes (name, size, whether its contents are elsewhere) and
contents padded to 16 bytes, so that all of them can be used where the file lies: the driver's
command payload, region 0, the size of region 1, and where inputs and outputs lie in it.

Before version 1.0 of ExecuTorch, shapes had four dimensions, with zeros after those that there are,
and the memory of region 1 lay in the payload. The backend was called `ArmBackend` at first.

Ref: ExecuTorch 1.5, backends/arm/arm_vela.py (writer), runtime/VelaBinStream.h and .cpp (reader);
the same files of ExecuTorch 0.4 and 0.6.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mizzen.diagnostics import MizzenError, fail

ALIGNMENT_BYTES = 16
"""Contents start at multiples of this, and so must the payload; the reader refuses others."""

BACKENDS = ("EthosUBackend", "ArmBackend")
"""What the backend of such a delegate is called: now, and up to ExecuTorch 0.5."""

RANK = 6
"""Dimensions that shapes are padded to with leading ones."""

OLD_RANK = 4
"""The same before ExecuTorch 1.0."""

SCRATCH_REGION = 1
"""The region of inputs and outputs: a microcontroller's runtime copies them there, whatever the
payload says."""

OWN_REGIONS = range(3, 8)
"""Regions that a tensor may have for itself, where Linux's driver gives each a buffer."""

ELEMENT_BYTES = (1, 2, 4, 8)
"""Sizes of an element that a runtime's tensor can have."""

FIRST, LAST = "vela_bin_stream", "vela_end_stream"
COMMANDS, WEIGHTS, SCRATCH, INPUTS, OUTPUTS = (
    "cmd_data",
    "weight_data",
    "scratch_size",
    "inputs",
    "outputs",
)
CONTENTS = (COMMANDS, WEIGHTS, SCRATCH, INPUTS, OUTPUTS)

OLD_SCRATCH = "scratch_data"
"""Before ExecuTorch 1.0: the memory of region 1, instead of its size."""

_HEAD = struct.Struct("<16sIB11x")
_COUNT = struct.Struct("<i")
_SIZE = struct.Struct("<I")
_TENSOR, _OLD_TENSOR = (struct.Struct(f"<{rank}i3i") for rank in (RANK, OLD_RANK))
_RULE = "ExecuTorch 1.5, backends/arm/runtime/VelaBinStream.cpp"


@dataclass(frozen=True, slots=True)
class VelaTensor:
    """An input or output of the delegate.

    shape         full shape in elements, in the order of the delegate's own tensors
    offset_bytes  from the start of its region
    """

    shape: tuple[int, ...]
    element_bytes: int
    offset_bytes: int
    region: int = SCRATCH_REGION

    @property
    def size_bytes(self) -> int:
        """Bytes of the tensor, densely packed."""
        return math.prod(self.shape) * self.element_bytes

    @property
    def end(self) -> int:
        """One past its last byte in the region."""
        return self.offset_bytes + self.size_bytes


@dataclass(frozen=True, slots=True)
class VelaBin:
    """One NPU call.

    commands       the driver's payload, ``COP1`` or ``COP2``
    weights        region 0: encoded weights and tables
    scratch_bytes  size of region 1
    """

    commands: bytes
    weights: bytes
    scratch_bytes: int
    inputs: tuple[VelaTensor, ...]
    outputs: tuple[VelaTensor, ...]


def write(content: VelaBin, weights_key: str | None = None) -> bytes:
    """Return the payload. E171 for a tensor, or a size, that it cannot say or that does not fit.

    weights_key  the name of region 0 in a file of data beside the program; None to hold it

    Shapes of more than six dimensions are written with the leading ones multiplied: runtimes
    compare sizes.
    """
    if not 0 <= content.scratch_bytes < 1 << 32:
        raise _wrong(f"region 1 must have fewer than 2**32 bytes, not {content.scratch_bytes}")
    blocks = (
        (FIRST, b""),
        (COMMANDS, content.commands),
        (WEIGHTS, content.weights if weights_key is None else weights_key.encode("ascii")),
        (SCRATCH, _SIZE.pack(content.scratch_bytes)),
        (INPUTS, _packed(INPUTS, content.inputs, content.scratch_bytes)),
        (OUTPUTS, _packed(OUTPUTS, content.outputs, content.scratch_bytes)),
        (LAST, b""),
    )
    elsewhere = {WEIGHTS} if weights_key is not None else set[str]()
    return b"".join(_block(name, contents, name in elsewhere) for name, contents in blocks)


def _block(name: str, contents: bytes, elsewhere: bool) -> bytes:
    padding = bytes(-len(contents) % ALIGNMENT_BYTES)
    return _HEAD.pack(name.encode(), len(contents), elsewhere) + contents + padding


def _packed(block: str, tensors: Sequence[VelaTensor], scratch_bytes: int) -> bytes:
    parts: list[bytes] = [_COUNT.pack(len(tensors))]
    for place, tensor in enumerate(tensors):
        lead, rest = tensor.shape[: 1 - RANK], tensor.shape[1 - RANK :]
        shape = (math.prod(lead), *rest)
        padded = (1,) * (RANK - len(shape)) + shape
        held = VelaTensor(padded, tensor.element_bytes, tensor.offset_bytes, tensor.region)
        if held.region != SCRATCH_REGION:
            what = f"{block}[{place}] must lie in region {SCRATCH_REGION}, not in {held.region}"
            raise _wrong(what)
        _require_place(f"{block}[{place}]", held, scratch_bytes)
        parts.append(_TENSOR.pack(*padded, held.element_bytes, held.offset_bytes, held.region))
    return b"".join(parts)


def read(data: bytes, name: str, external: Mapping[str, bytes] | None = None) -> VelaBin:
    """Read a payload; `name` is what diagnostics call it. Shapes have six dimensions, or four.

    external  contents of blocks that are kept apart, by their key

    E170 for a damaged payload, E171 for a tensor that does not lie in its region, E172 for contents
    that are elsewhere and not given.
    """
    blocks = {
        block: _external(contents, block, name, external or {}) if elsewhere else contents
        for block, contents, elsewhere in _blocks(data, name)
    }
    scratch = blocks[SCRATCH]
    if len(scratch) != _SIZE.size:
        raise _damaged(name, f"{SCRATCH} must have {_SIZE.size} bytes, not {len(scratch)}")
    (scratch_bytes,) = _SIZE.unpack(scratch)
    tensors = {block: tuple(_tensors(blocks[block], block, name)) for block in (INPUTS, OUTPUTS)}
    for block, listed in tensors.items():
        for place, tensor in enumerate(listed):
            _require_place(f"{name}: {block}[{place}]", tensor, scratch_bytes)
    _require_apart(name, tensors[INPUTS])
    return VelaBin(
        blocks[COMMANDS], blocks[WEIGHTS], scratch_bytes, tensors[INPUTS], tensors[OUTPUTS]
    )


def external_keys(data: bytes, name: str) -> tuple[str, ...]:
    """Return the keys of contents that are kept apart. E170 for a damaged payload."""
    return tuple(_key(contents) for _, contents, elsewhere in _blocks(data, name) if elsewhere)


def _blocks(data: bytes, name: str) -> Iterator[tuple[str, bytes, bool]]:
    """Return the blocks between the first and the last, each once: name, contents, or their key.

    The last says whether it is the key of contents that are kept apart.
    """
    missing = list(CONTENTS)
    at = _marker(data, 0, FIRST, name)
    while missing:
        block, size, elsewhere = _head(data, at, name)
        size_of_memory = _SIZE.pack(size) if block == OLD_SCRATCH else None
        if size_of_memory is not None:
            block = SCRATCH
        if block not in missing:
            known = block in (*CONTENTS, FIRST, LAST)
            reason = f"must not be {block!r} there" if known else f"is {block!r}, which is unknown"
            raise _damaged(name, f"the block at byte {at} {reason}; missing yet: {missing}")
        missing.remove(block)
        start = at + _HEAD.size
        at = start + size + -size % ALIGNMENT_BYTES
        if at > len(data):
            raise _damaged(name, f"{block} must have {size} bytes, and the payload ends")
        yield block, size_of_memory or bytes(data[start : start + size]), elsewhere
    end = _marker(data, at, LAST, name)
    if any(data[end:]):
        raise _damaged(name, f"it must end at byte {end}, and goes on to {len(data)}")


def _head(data: bytes, at: int, name: str) -> tuple[str, int, bool]:
    if at + _HEAD.size > len(data):
        raise _damaged(name, f"a block must be at byte {at}, and the payload has {len(data)}")
    field, size, elsewhere = _HEAD.unpack_from(data, at)
    if elsewhere > 1:
        raise _damaged(name, f"the block at byte {at} must say 0 or 1 of where it is")
    return field.rstrip(b"\0").decode("ascii", errors="backslashreplace"), size, bool(elsewhere)


def _marker(data: bytes, at: int, wanted: str, name: str) -> int:
    """Check the block that starts or ends the payload; returns where the next one is."""
    block, size, elsewhere = _head(data, at, name)
    if block != wanted or size or elsewhere:
        raise _damaged(name, f"{wanted!r} must be at byte {at}, not {block!r} of {size} bytes")
    return at + _HEAD.size


def _external(key: bytes, block: str, name: str, external: Mapping[str, bytes]) -> bytes:
    contents = external.get(_key(key))
    if contents is None:
        raise fail(
            "E172",
            f"{name}: the contents of {block} must be given, and are in another file",
            rule=_RULE,
            help="give it with --ptd FILE, or put the .ptd beside the program",
        )
    return contents


def _key(contents: bytes) -> str:
    return contents.decode("ascii", errors="backslashreplace")


def _tensors(contents: bytes, block: str, name: str) -> Iterator[VelaTensor]:
    count = _COUNT.unpack_from(contents)[0] if len(contents) >= _COUNT.size else -1
    forms = [form for form in (_TENSOR, _OLD_TENSOR)
             if count >= 0 and len(contents) == _COUNT.size + count * form.size]  # fmt: skip
    if not forms:
        raise _damaged(name, f"{block} cannot have {len(contents)} bytes for {count} tensors")
    for values in forms[0].iter_unpack(contents[_COUNT.size :]):
        *shape, element_bytes, offset, region = values
        while forms[0] is _OLD_TENSOR and len(shape) > 1 and shape[-1] == 0:
            shape.pop()
        yield VelaTensor(tuple(shape), element_bytes, offset, region)


def _require_place(what: str, tensor: VelaTensor, scratch_bytes: int) -> None:
    if min(tensor.shape) < 1 or max(tensor.shape) >= 1 << 31:
        raise _wrong(f"{what} must have positive extents of 32 bits, not {list(tensor.shape)}")
    if tensor.element_bytes not in ELEMENT_BYTES:
        sizes = ", ".join(map(str, ELEMENT_BYTES))
        raise _wrong(f"{what} must have elements of {sizes} bytes, not {tensor.element_bytes}")
    if tensor.region != SCRATCH_REGION and tensor.region not in OWN_REGIONS:
        raise _wrong(f"{what} must lie in region {SCRATCH_REGION}, or in one of its own, not in "
                     f"{tensor.region}")  # fmt: skip
    held = scratch_bytes if tensor.region == SCRATCH_REGION else 1 << 31
    if tensor.offset_bytes < 0 or tensor.end > min(held, (1 << 31) - 1):
        message = f"{what} must lie in the {held} bytes of region {tensor.region}, not at"
        raise _wrong(f"{message} {tensor.offset_bytes}..{tensor.end}")


def _require_apart(name: str, tensors: Sequence[VelaTensor]) -> None:
    """Check that no two inputs share bytes: the runtime writes one after the other."""
    ordered = sorted(tensors, key=lambda tensor: (tensor.region, tensor.offset_bytes))
    for before, after in pairwise(ordered):
        if after.region == before.region and after.offset_bytes < before.end:
            raise _wrong(
                f"{name}: inputs must not share bytes, and those at {before.offset_bytes} and "
                f"{after.offset_bytes} do: the first ends at {before.end}"
            )


def _damaged(name: str, reason: str) -> MizzenError:
    return fail(
        "E170",
        f"{name} must be a whole payload of an Ethos-U delegate: {reason}",
        rule=_RULE,
        help="make the program again",
    )


def _wrong(message: str) -> MizzenError:
    return fail("E171", message, rule=_RULE, help="make the program again")
