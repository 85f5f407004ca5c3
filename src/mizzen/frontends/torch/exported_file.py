"""Exported programs from strangers' files, `.pt2`, of which only tensors and operators are read.

PyTorch's own reader executes pickles: of sample inputs, objects, weights that are no plain tensors.
So a file is unpacked here, within bounds; what it describes is checked by `exported_rules`; and
PyTorch reads an archive that is made of the checked parts alone.

Ref: PyTorch 2.13, torch/export/pt2_archive.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import re
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from mizzen.archives import largest_unpacked, packed, unpacked
from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.frontends.torch.exported_rules import (
    DynamicShapeError,
    UnsafeProgramError,
    cleaned,
    layout,
    require_path,
    tensor_bytes,
)
from mizzen.frontends.torch.program import DYNAMIC

if TYPE_CHECKING:
    from torch.export import ExportedProgram

FOLDER = "program"
"""Where the members of the archive for PyTorch lie; PyTorch takes any name."""
FIXED = {
    "archive_format": b"pt2",
    "archive_version": b"0",
    ".data/version": b"6\n",
    "byteorder": b"little",
    "data/sample_inputs/model.pt": b"",
}
PROGRAM = "models/model.json"
WEIGHTS, CONSTANTS = "data/weights/", "data/constants/"
CONFIGURATIONS = {WEIGHTS: "model_weights_config.json", CONSTANTS: "model_constants_config.json"}
_PAYLOAD = re.compile(r"(weight|tensor)_\d{1,9}", re.ASCII)


def read_exported(data: bytes, name: str) -> ExportedProgram:
    """Read a program; needs PyTorch, and its quantised operators registered.

    Raises E160 for shapes that are expressions, E164 for a file that is not a program, E169 for one
    that has more than tensors and operators, or tensors that are larger than the file allows.
    """
    import torch

    origin = Origin(model=name)
    try:
        checked = packed(_checked(data))
        with _quiet():
            program = torch.export.load(io.BytesIO(checked))
            if not has_symbols(program):
                _require_shapes(program)
            return program
    except MizzenError:
        raise
    except DynamicShapeError as error:
        message = f"every shape must be static, and this one is {error}"
        raise fail("E160", message, origin=origin, help=DYNAMIC) from None
    except UnsafeProgramError as error:
        raise fail(
            "E169",
            f"a file's program must be tensors and operators on them, and {error}",
            origin=origin,
            help="a file from elsewhere may do harm, and nothing of it was executed; to compile a "
            "program of your own, give it to mizzen.torch in memory",
        ) from None
    except Exception as error:  # a description may say anything in place of what it should
        raise fail(
            "E164",
            f"{name} must be a program that torch.export.save wrote: {_first_line(error)}",
            help="write it with torch.export.save(torch.export.export(model, inputs), path)",
        ) from None


def has_symbols(program: ExportedProgram) -> bool:
    """Whether a tensor's shape is known only when the program runs: readers refuse it with E160."""
    values = (node.meta.get("val") for node in program.graph.nodes)
    return any(not isinstance(extent, int) for value in values for extent in _extents(value))


def _extents(value: Any) -> Iterator[Any]:
    if not isinstance(value, (tuple, list)):
        yield from getattr(value, "shape", ())
        return
    for item in cast("Sequence[Any]", value):
        yield from _extents(item)


def _require_shapes(program: ExportedProgram) -> None:
    """Check that operators give what the description says: a size may be hidden in an argument.

    They are executed on tensors without contents, which take no memory.
    """
    import torch

    class Comparing(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> Any:
            result = super().run_node(n)
            _require_same(n.name, result, n.meta.get("val"))
            return result

    inputs = [node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"]
    modes = {value.fake_mode for value in inputs if hasattr(value, "fake_mode")}
    with contextlib.ExitStack() as stack, torch.no_grad():
        for mode in modes:
            stack.enter_context(mode)
        Comparing(program.graph_module).run(*inputs, enable_io_processing=False)


def _require_same(name: str, result: Any, said: Any) -> None:
    if isinstance(said, (tuple, list)):
        for pair in zip(result, cast("Sequence[Any]", said), strict=True):
            _require_same(name, *pair)
    elif hasattr(said, "shape") and result.shape != said.shape:
        raise ValueError(f"{name} has shape {list(result.shape)}, not {list(said.shape)}")


def _checked(data: bytes) -> dict[str, bytes]:
    members = {key.partition("/")[2]: held for key, held in unpacked(data).items()}
    if PROGRAM not in members:
        raise ValueError(f"there is no {PROGRAM} in it")
    files = dict(FIXED)
    most_bytes = largest_unpacked(data)
    for folder in CONFIGURATIONS:
        most_bytes -= _add_payload(members, folder, files, most_bytes)
    files[PROGRAM] = json.dumps(cleaned(json.loads(members[PROGRAM]))).encode()
    return {f"{FOLDER}/{key}": held for key, held in files.items()}


def _add_payload(
    members: Mapping[str, bytes], folder: str, files: dict[str, bytes], most_bytes: int
) -> int:
    """Add the tensors of a folder to what was found; returns how many bytes they are."""
    path = folder + CONFIGURATIONS[folder]
    config = json.loads(members[path])["config"]
    payloads = {require_path(key): _payload(each) for key, each in config.items()}
    total = sum(tensor_bytes(each["tensor_meta"]) for each in payloads.values())
    if total > most_bytes:
        raise UnsafeProgramError(f"its tensors have {total} bytes, of which {most_bytes} may be")
    for payload in payloads.values():
        member = folder + payload["path_name"]
        if not members[member] and tensor_bytes(payload["tensor_meta"]):
            raise UnsafeProgramError(f"{payload['path_name']} is empty, and a tensor is made of it")
        files[member] = members[member]
    files[path] = json.dumps({"config": payloads}).encode()
    return total


def _payload(payload: Any) -> dict[str, Any]:
    if payload["use_pickle"] is not False or not _PAYLOAD.fullmatch(payload["path_name"]):
        raise UnsafeProgramError("it has an object of a Python class, which only a pickle can hold")
    meta = payload["tensor_meta"]
    if meta["device"]["type"] != "cpu":
        raise UnsafeProgramError("a tensor is not on the CPU")
    layout(meta["layout"])
    return {
        "path_name": payload["path_name"],
        "is_param": bool(payload["is_param"]),
        "use_pickle": False,
        "tensor_meta": {**meta, "device": {"type": "cpu", "index": None}},
    }


@contextmanager
def _quiet() -> Generator[None]:
    """Keep what PyTorch says about its own files from the user's terminal."""
    logger = logging.getLogger("torch.export")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
