"""The inputs that a program was exported with, out of its file, as bytes.

PyTorch keeps them as a pickle beside the tensors' contents. The pickle is not read: contents lie
in the order of the inputs, and what they are is known from the program.

Ref: PyTorch 2.13, torch/serialization.py (`data/N`).
"""

from __future__ import annotations

from mizzen.archives import ArchiveError, unpacked

SAMPLES = "data/sample_inputs/model.pt"


def stored_inputs(data: bytes) -> tuple[bytes, ...]:
    """Return the contents of a file's example inputs in order; none where it has none to read."""
    try:
        members = _without_folder(data)
        inner = _without_folder(members.get(SAMPLES, b""))
    except ArchiveError:
        return ()
    if inner.get("byteorder") != b"little":
        return ()
    count = sum(name.startswith("data/") for name in inner)
    stored = [inner.get(f"data/{index}") for index in range(count)]
    return tuple(contents for contents in stored if contents is not None)


def _without_folder(data: bytes) -> dict[str, bytes]:
    return {name.partition("/")[2]: held for name, held in unpacked(data).items()}
