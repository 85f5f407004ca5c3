"""An artifact as a container of the C runtime."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from mizzen.artifact.device import device_program
from mizzen.artifact.verifying import is_as_written
from mizzen.cpu.tables import tabulated
from mizzen.diagnostics import fail
from mizzen.package.c import encode
from mizzen.package.c.layout import WORD_BYTES
from mizzen.package.c.lowering import lower
from mizzen.package.c.reader import decode
from mizzen.package.device import DeviceProgram, NpuCall
from mizzen.report.manifest import Manifest, NpuCode
from mizzen.targets.ethos_u.machine import driver

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact


@dataclass(frozen=True, slots=True, eq=False)
class CContainer:
    """A container, and the program that is in it: kernel calls are the runtime's own."""

    data: bytes
    program: DeviceProgram


def c_container(artifact: Artifact) -> CContainer:
    """Return the container of an artifact.

    E450 to E454 for what no device executes, E460 and E462 for what does not fit a container, E464
    and E465 for operators that the runtime does not have.
    """
    program = lower(device_program(artifact), tabulated)
    return CContainer(encode(program, _npu(program)), program)


def container_manifest(container: CContainer, artifact: Artifact) -> Manifest | None:
    """Return the manifest of a container: what its artifact's says, with digests of its own parts.

    None where the artifact has none, or was changed.
    """
    manifest = artifact.manifest
    if manifest is None or not is_as_written(artifact):
        return None
    header = decode(container.data).header
    tables = container.data[: header["pool_at"] + WORD_BYTES * header["pool_count"]]
    calls = [call for call in container.program.calls if isinstance(call, NpuCall)]
    return Manifest(
        bytes=len(container.data),
        file_sha256=_digest(container.data),
        tables_sha256=_digest(tables),
        npu=tuple(NpuCode(_digest(call.payload), _digest(call.read_only)) for call in calls),
        facts=manifest.facts,
    )


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def _npu(program: DeviceProgram) -> tuple[int, int] | None:
    """Return CONFIG and ID of the NPU that all calls are for. E466 if they are for several."""
    identities = {
        driver.parse(call.payload).hardware for call in program.calls if isinstance(call, NpuCall)
    }
    if not identities:
        return None
    (hardware,) = identities if len(identities) == 1 else (None,)
    if hardware is None:
        raise fail(
            "E466",
            "all payloads of a container must be for one NPU, and say which",
            help="compile the network again",
        )
    return hardware.config_word, hardware.id_word
