"""No module writes a file but through the writer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "mizzen"

WRITES = {
    "write_bytes", "write_text", "save", "savez", "savez_compressed", "savetxt", "tofile", "dump",
    "mkdir", "makedirs", "rename", "touch", "copy2", "copyfile", "copytree", "link",
    "mkstemp", "mkdtemp", "NamedTemporaryFile", "TemporaryDirectory", "open_memmap", "symlink_to",
    "hardlink_to", "symlink", "truncate",
}  # fmt: skip
"""Calls that make or change a file, by their last name."""

ALLOWED = {
    ("emulate/qemu_process.py", "write_bytes"): "firmware, in a temporary folder",
    ("emulate/qemu_process.py", "truncate"): "the machine's memory, in a temporary folder",
    ("emulate/qemu_process.py", "open"): "the machine's memory, in a temporary folder",
    ("conformance/compilers.py", "write_bytes"): "a network for Vela, in a temporary folder",
    ("cpu/c_library.py", "mkdir"): "the user's cache",
    ("artifact/archive.py", "save"): "into bytes",
    ("artifact/archive.py", "ZipFile"): "into bytes",
    ("artifact/host_steps.py", "save"): "into bytes",
    ("calibration/exported.py", "save"): "into bytes",
    ("calibration/onnx.py", "save"): "a network to prepare, in a temporary folder",
    ("calibration/onnx_quantiser.py", "save"): "a network to quantise, in a temporary folder",
    ("archives/unpacking.py", "ZipFile"): "into bytes",
    ("targets/ethos_u/vela/raw/archive.py", "ZipFile"): "into bytes",
    ("targets/ethos_u/vela/raw/archive.py", "open"): "a member of an archive in bytes",
    ("cli/outputs.py", "save"): "into bytes",
    ("cli/console.py", "open"): "/dev/null in the place of a pipe that is closed",
}


def _opens(call: ast.Call) -> bool:
    """Whether it opens something to write: by a mode of letters, or by flags of the system's."""
    arguments = [*call.args, *(row.value for row in call.keywords)]
    words = [row.value for row in arguments if isinstance(row, ast.Constant)]
    modes = [word for word in words if isinstance(word, str) and set(word) <= set("rwaxbt+")]
    flags = {
        node.attr for row in arguments for node in ast.walk(row) if isinstance(node, ast.Attribute)
    }
    return bool(set("wax+") & set("".join(modes)) or {"O_WRONLY", "O_RDWR", "O_CREAT"} & flags)


def written(path: Path) -> Iterator[tuple[str, int]]:
    """Return what a module calls that writes files, and where."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in WRITES or (name in {"open", "ZipFile"} and _opens(node)):
            yield name, node.lineno


def test_nothing_else_writes() -> None:
    found: dict[tuple[str, str], list[int]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).as_posix()
        if not place.startswith("files/"):
            for name, line in written(path):
                found.setdefault((place, name), []).append(line)
    unknown = {key: lines for key, lines in found.items() if key not in ALLOWED}
    assert not unknown, f"{unknown}: write through mizzen.files, or say here why not"
    assert not ALLOWED.keys() - found.keys(), "these write nothing any more"
