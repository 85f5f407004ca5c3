"""What is known of the firmware that an artifact fails in: what a person says, and its log."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from mizzen.analysis.doctor.causes import Cause
from mizzen.analysis.doctor.log import LogReading
from mizzen.analysis.doctor.messages import readable

OTHER_NPU = (Cause.OTHER_PRODUCT, Cause.OTHER_SIZE)
_PREFIX = "ethos-"


@dataclass(frozen=True, slots=True)
class Firmware:
    """What a person says of firmware and chip; None of what is not known.

    accelerator    the NPU that the chip has, as ``ethos-u55-128``
    driver         version of Arm's core driver, as ``0.16.0``
    arena_bytes    of the interpreter, or of the C runtime
    fast_bytes     of the memory that `ethosu_init` was given
    model_address  where the model lies, or base address 0
    arena_address  where the arena lies, or base address 1
    operators      that the resolver has, by their names in a network
    memory_mode    as `vela.ini` calls it
    npu_address    of the NPU's registers, as `ethosu_init` was given it
    invoked        the operator that failed to invoke: arena and resolver were enough for it
    """

    accelerator: str | None = None
    driver: str | None = None
    arena_bytes: int | None = None
    fast_bytes: int | None = None
    model_address: int | None = None
    arena_address: int | None = None
    operators: tuple[str, ...] | None = None
    memory_mode: str | None = None
    npu_address: int | None = None
    invoked: str | None = None

    def with_log(self, log: LogReading, own: str | None = None) -> Firmware:
        """Return it with what a log says, where the person said nothing.

        own  the accelerator of the artifact, whose product a log may leave out
        """
        told = {
            "accelerator": _accelerator(log, "product", "log2") or _refusing(log, own),
            "fast_bytes": _number(log.facts.get("fast_bytes")),
            "npu_address": _number(log.facts.get("npu_address")),
            "invoked": log.invoked,
            "model_address": _number(log.facts.get("model_address")),
            "arena_address": _number(log.facts.get("arena_address")),
        }
        missing = {field.name for field in fields(self) if getattr(self, field.name) is None}
        return replace(self, **{name: told[name] for name in told if name in missing})


def stream_of(log: LogReading) -> str | None:
    """Return the accelerator that the log says the stream is for."""
    return _accelerator(log, "own_product", "own_log2")


def _accelerator(log: LogReading, product: str, macs: str) -> str | None:
    named, number = log.facts.get(product), log.facts.get(macs)
    if named is None or number is None or not named.lower().startswith(_PREFIX):
        return None
    return f"{named.lower()}-{number}"


def _refusing(log: LogReading, own: str | None) -> str | None:
    """Return the chip of a driver that refuses a stream for its number of MACs alone."""
    refused = [each.groups for each in log.sightings if each.cause in OTHER_NPU]
    macs = next((groups["log2_npu"] for groups in refused if "log2_npu" in groups), None)
    if own is None or macs is None or any("product_npu" in groups for groups in refused):
        return None
    return f"{own.rpartition('-')[0]}-{readable('log2', macs)}"


def _number(text: str | None) -> int | None:
    """Read an address or a size; drivers write 64 bits as two words with ``_`` between."""
    if text is None:
        return None
    plain = text.replace("_", "")
    try:
        return int(plain, 16 if plain.lower().startswith("0x") else 10)
    except ValueError:
        return None
