"""The driver payload: what a runtime hands to Arm's Ethos-U core driver for one NPU operator.

Little-endian 32-bit words: the magic ``COP1``, then driver actions, the low byte of a word saying
which. One action carries the command stream, one the CONFIG and ID register images of the hardware
that the stream was compiled for; the driver compares them with the hardware it finds.

Later drivers also take ``COP2``: a head of four words, then records that say how long they are. One
has a head of its own, with the same register images, and the command stream after it.

Ref: Arm Ethos-U core driver 0.16, `ethosu_driver.c` (actions) and `ethosu*_interface.h` (CONFIG
and ID registers); of ``COP2``, what Vela 5.2 writes with ``--cop-format COP2``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError, fail
from mizzen.isa import Register, bits, choice, number
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.program import HardwareId, PayloadForm

HEADS = (b"COP1", b"COP2")
"""How payloads begin."""

MAGIC, _MAGIC_COP2 = (int.from_bytes(head, "little") for head in HEADS)

STREAM_ALIGNMENT_BYTES = 16
"""The stream's address must be a multiple of this; `ethosu_driver.c` checks it."""

COP2_VERSION = 1
"""The only version of ``COP2`` that there is."""

LONGEST_HEAD = 64
"""Driver actions before a command stream, where a payload is looked for among other bytes."""

STREAM_RECORD = 1
"""The record of ``COP2`` that has the command stream."""

_COP2_HEAD_WORDS = 4  # magic, version, bytes that follow the head, zero
_RECORD_HEAD_WORDS = 2  # type, bytes that follow the two
_HARDWARE_TAG = int.from_bytes(b"VEUM", "little")
_HARDWARE_FROM_WORD = 3  # of a record's own head: tag, version, bytes, CONFIG, ID

_WORD_BYTES = 4
_RULE = "Ethos-U core driver, ethosu_driver.c"


class Action(IntEnum):
    """What a driver action asks for. Current drivers refuse all but three of them."""

    RESERVED = 0
    OPTIMIZER_CONFIG = 1
    COMMAND_STREAM = 2
    READ_APB = 3
    DUMP_SHRAM = 4
    NOP = 5


class Product(IntEnum):
    """CONFIG.product."""

    U55 = 0
    U65 = 1
    U85 = 2


_ACTION = number("action", bits(7, 0), doc="Driver action")

OPTIMIZER_CONFIG = Register(
    "OPTIMIZER_CONFIG",
    (
        _ACTION,
        number("release", bits(19, 16), doc="Release of the compiler's configuration"),
        number("patch", bits(23, 20), doc="Patch of the compiler's configuration"),
    ),
    doc="The hardware compiled for; the CONFIG and ID images follow",
    source=f"{_RULE}: struct opt_cfg_s",
)

COMMAND_STREAM = Register(
    "COMMAND_STREAM",
    (
        _ACTION,
        number("length", bits(31, 16), bits(15, 8), doc="Length of the stream", unit="words"),
    ),
    doc="The command stream follows",
    source=f"{_RULE}: COMMAND_STREAM",
)

CONFIG = Register(
    "CONFIG",
    (
        number("macs_log2", bits(3, 0), doc="log2 of 8-bit MACs per cycle, over all cores"),
        number("stream_version", bits(7, 4), doc="Version of the command stream"),
        number("custom_dma", bits(27), doc="Custom DMA present"),
        choice("product", Product, bits(31, 28), doc="Product"),
    ),
    doc="What every product's configuration says",
    source="ethosu55_interface.h, ethosu65_interface.h, ethosu85_interface.h: config_r",
)

CONFIG_SHRAM = Register(
    "CONFIG",
    (number("shram", bits(15, 8), doc="Shared buffer over all cores", unit="KiB"),),
    doc="What U55 and U65 say beside",
    source="ethosu55_interface.h, ethosu65_interface.h: config_r",
)

ID = Register(
    "ID",
    (
        number("arch_patch", bits(19, 16), doc="Architecture version, patch"),
        number("arch_minor", bits(27, 20), doc="Architecture version, minor"),
        number("arch_major", bits(31, 28), doc="Architecture version, major"),
    ),
    doc="Identity of the hardware",
    source="ethosu55_interface.h, ethosu65_interface.h, ethosu85_interface.h: id_r",
)

MACS: dict[Arch, tuple[int, ...]] = {
    Arch.U55: (32, 64, 128, 256),
    Arch.U65: (256, 512),
    Arch.U85: (128, 256, 512, 1024, 2048),
}
"""MACs per cycle that there are, over all cores (product briefs of the three)."""


@dataclass(frozen=True, slots=True)
class HardwareDescription:
    """The hardware that CONFIG and ID describe, in words.

    macs          8-bit MACs per cycle, over all cores
    shram_kib     shared buffer in KiB over all cores; None for U85, which has none
    arch_version  major, minor and patch of the architecture
    """

    arch: Arch
    macs: int
    shram_kib: int | None
    stream_version: int
    custom_dma: bool
    arch_version: tuple[int, int, int]

    @property
    def accelerator(self) -> str:
        """The configuration's name as compilers spell it, such as ``ethos-u55-128``."""
        return f"{self.arch.value.lower()}-{self.macs}"


def configuration(hardware: HardwareId | None) -> HardwareDescription:
    """Read the CONFIG and ID words. E505 or E526 if no such hardware is made, or none is named."""
    if hardware is None:
        raise fail("E526", "the payload must say which NPU it is for, but has no OPTIMIZER_CONFIG")
    config = CONFIG.unpack(hardware.config_word)
    identity = ID.unpack(hardware.id_word)
    arch = Arch[Product(config["product"]).name]
    macs = 1 << config["macs_log2"]
    if macs not in MACS[arch]:
        choices = ", ".join(map(str, MACS[arch]))
        message = f"CONFIG of an {arch.value} must say one of {choices} MACs, not {macs}"
        raise fail("E526", message, rule=CONFIG.source)
    shram = None if arch is Arch.U85 else CONFIG_SHRAM.unpack(hardware.config_word)["shram"]
    return HardwareDescription(
        arch=arch,
        macs=macs,
        shram_kib=shram,
        stream_version=config["stream_version"],
        custom_dma=bool(config["custom_dma"]),
        arch_version=(identity["arch_major"], identity["arch_minor"], identity["arch_patch"]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Payload:
    """A parsed payload.

    words         the command stream, uint32 [words], a view of the payload
    hardware      CONFIG and ID images; None if the payload has none
    version       release and patch of the compiler's configuration; None like `hardware`, and of
                  ``COP2``
    offset_bytes  where the stream starts in the payload
    form          how the payload is laid out
    """

    words: npt.NDArray[np.uint32]
    hardware: HardwareId | None
    version: tuple[int, int] | None
    offset_bytes: int
    form: PayloadForm = PayloadForm.COP1


def parse(payload: bytes | memoryview | npt.NDArray[np.uint8]) -> Payload:
    """Read a driver payload, without copying the command stream.

    E520 to E525 say what the driver would refuse: a size that is not a multiple of 4, another
    magic, an unknown or truncated action, no command stream or two, or one at an unaligned place.
    """
    words = _words(payload)
    if int(words[0]) == _MAGIC_COP2:
        return _parse_cop2(words)
    return _parse_actions(words)


def size_of(data: bytes | memoryview) -> int:
    """Return how many bytes the payload has at whose start `data` begins, whatever follows it.

    It ends with its command stream. Raises as `parse`.
    """
    whole = len(data) - len(data) % _WORD_BYTES
    words = _words(data[:whole])
    if int(words[0]) == _MAGIC_COP2:
        size = int(words[2]) if len(words) >= _COP2_HEAD_WORDS else 0
        return _end_of(words, _COP2_HEAD_WORDS, size, len(words), "a COP2 payload") * _WORD_BYTES
    for action, at in islice(_actions(words), LONGEST_HEAD):
        if action is Action.COMMAND_STREAM:
            return _stream_end(words, at) * _WORD_BYTES
    raise fail("E525", "a driver payload must have a command stream, but has none")


def _actions(words: npt.NDArray[np.uint32]) -> Iterator[tuple[Action, int]]:
    """Return the driver actions of ``COP1``, and the word of each."""
    at = 1
    while at < len(words):
        match int(words[at]) & 0xFF:
            case Action.OPTIMIZER_CONFIG:
                yield Action.OPTIMIZER_CONFIG, at
                at += 3
            case Action.COMMAND_STREAM:
                yield Action.COMMAND_STREAM, at
                at = _stream_end(words, at)
            case Action.NOP:
                yield Action.NOP, at
                at += 1
            case other:
                raise _refused(other, at)


def _parse_actions(words: npt.NDArray[np.uint32]) -> Payload:
    stream: tuple[int, int] | None = None
    identity: tuple[HardwareId, tuple[int, int]] | None = None
    for action, at in _actions(words):
        match action:
            case Action.OPTIMIZER_CONFIG:
                identity = _identity(words, at)
            case Action.COMMAND_STREAM if stream is not None:
                raise fail("E525", "a driver payload must have one command stream, not two")
            case Action.COMMAND_STREAM:
                stream = (at + 1, _stream_end(words, at))
            case _:
                pass
    if stream is None:
        raise fail("E525", "a driver payload must have a command stream, but has none")
    hardware, version = identity or (None, None)
    return Payload(words[stream[0] : stream[1]], hardware, version, stream[0] * _WORD_BYTES)


def _words(payload: bytes | memoryview | npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    """View the payload as words; check size and magic."""
    size = len(payload)
    if size % _WORD_BYTES or not size:
        message = f"a driver payload must be whole words of 4 bytes, not {size} bytes"
        raise fail("E520", message, rule=_RULE)
    words = np.frombuffer(payload, dtype=np.dtype("<u4"))
    magic = int(words[0])
    if magic not in (MAGIC, _MAGIC_COP2):
        came = magic.to_bytes(_WORD_BYTES, "little")
        message = f"a driver payload must start with COP1 or COP2, not {came!r}"
        raise fail("E521", message, rule=_RULE)
    return words


def _parse_cop2(words: npt.NDArray[np.uint32]) -> Payload:
    """Read records up to the one with the command stream, which must be the last."""
    if len(words) < _COP2_HEAD_WORDS or int(words[1]) != COP2_VERSION:
        came = int(words[1]) if len(words) > 1 else None
        message = f"a COP2 payload must be of version {COP2_VERSION}, not {came}"
        raise fail("E521", message, help="compile with `--cop-format COP1`")
    at = _COP2_HEAD_WORDS
    end = _end_of(words, at, int(words[2]), len(words), "a COP2 payload")
    if at == end:
        raise fail("E525", "a driver payload must have a command stream, but has none")
    if at + _RECORD_HEAD_WORDS > end:
        raise fail("E524", f"a record of COP2 at word {at} must have a head: the payload ends")
    kind, start = int(words[at]), at + _RECORD_HEAD_WORDS
    if kind != STREAM_RECORD:
        message = f"the record of COP2 at word {at} must be a command stream"
        raise fail("E522", f"{message} ({STREAM_RECORD}), not {kind}")
    stop = _end_of(words, start, int(words[at + 1]), end, "the command stream's record")
    if stop != end:
        raise fail("E525", "a driver payload must have one command stream, not two")
    return _stream_record(words, start, stop)


def _stream_record(words: npt.NDArray[np.uint32], start: int, stop: int) -> Payload:
    """Read the record's own head, whose first word says how long it is, and what is after it."""
    if start >= stop:
        raise fail("E524", f"the record at word {start} must have a head: the payload ends")
    first = start + 1
    stream = _end_of(words, first, int(words[start]), stop, "the head of the command stream")
    _require_aligned(stream)
    head = words[first:stream].tolist()
    hardware = None
    if head[:1] == [_HARDWARE_TAG] and len(head) >= _HARDWARE_FROM_WORD + 2:
        hardware = HardwareId(head[_HARDWARE_FROM_WORD], head[_HARDWARE_FROM_WORD + 1])
    return Payload(words[stream:stop], hardware, None, stream * _WORD_BYTES, PayloadForm.COP2)


def _end_of(
    words: npt.NDArray[np.uint32], start: int, size_bytes: int, limit: int, what: str
) -> int:
    """Return the word after `size_bytes` from word `start`, which must be whole and there."""
    if size_bytes % _WORD_BYTES or start + size_bytes // _WORD_BYTES > limit:
        held = (limit - start) * _WORD_BYTES
        raise fail(
            "E524", f"{what} must have {size_bytes} bytes after word {start - 1}, not {held}"
        )
    return start + size_bytes // _WORD_BYTES


def _identity(words: npt.NDArray[np.uint32], at: int) -> tuple[HardwareId, tuple[int, int]]:
    if at + 3 > len(words):
        message = f"OPTIMIZER_CONFIG at word {at} must have 3 words, not {len(words) - at}"
        raise fail("E524", f"{message}: the payload ends", rule=_RULE)
    head = OPTIMIZER_CONFIG.unpack(int(words[at]))
    return HardwareId(int(words[at + 1]), int(words[at + 2])), (head["release"], head["patch"])


def _stream_end(words: npt.NDArray[np.uint32], at: int) -> int:
    length = COMMAND_STREAM.unpack(int(words[at]))["length"]
    start = at + 1
    if start + length > len(words):
        message = f"COMMAND_STREAM at word {at} must be followed by its {length} words"
        raise fail("E524", f"{message}, not {len(words) - start}: the payload ends", rule=_RULE)
    _require_aligned(start)
    return start + length


def _require_aligned(start: int) -> None:
    if start * _WORD_BYTES % STREAM_ALIGNMENT_BYTES:
        message = (
            f"the command stream must start at a multiple of {STREAM_ALIGNMENT_BYTES} bytes in the "
            f"payload, not at byte {start * _WORD_BYTES}"
        )
        raise fail("E523", message, rule=_RULE)


def _refused(action: int, at: int) -> MizzenError:
    named = Action(action).name if action in set(Action) else "unknown"
    message = (
        f"the driver action at word {at} must be OPTIMIZER_CONFIG (1), COMMAND_STREAM (2) or "
        f"NOP (5), not {action} ({named})"
    )
    return fail("E522", message, rule=_RULE)


def build(
    words: npt.NDArray[np.uint32] | Sequence[int],
    hardware: HardwareId | None,
    version: tuple[int, int] = (0, 1),
) -> bytes:
    """Make a payload as Vela lays it out: configuration, NOPs up to the alignment, the stream.

    `version` is release and patch of the compiler's configuration. E511 if the stream is longer
    than the 24-bit length can say.
    """
    head = [MAGIC]
    if hardware is not None:
        values = {
            "action": Action.OPTIMIZER_CONFIG,
            "release": version[0],
            "patch": version[1],
        }
        head += [OPTIMIZER_CONFIG.pack(values), hardware.config_word, hardware.id_word]
    while (len(head) + 1) * _WORD_BYTES % STREAM_ALIGNMENT_BYTES:
        head.append(Action.NOP)
    stream = np.asarray(words, dtype=np.dtype("<u4"))
    head.append(COMMAND_STREAM.pack({"action": Action.COMMAND_STREAM, "length": len(stream)}))
    return np.array(head, dtype=np.dtype("<u4")).tobytes() + stream.tobytes()
