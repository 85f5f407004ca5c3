"""How much of a microcontroller the C runtime takes, without kernels.

Run ``python benchmarks/runtime_size.py`` for a table, with ``--json`` for the figures: bytes of
code and constants (`core_text_bytes`), and of memory beyond the arena (`core_ram_bytes`: static
data, the context, and the record of the NPU). Compiled for a Cortex-M55 with ``-Os`` by
arm-none-eabi-gcc; the NPU is driven by its registers.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

from mizzen.package.firmware import firmware_folder

CORE = ("mizzen.c", "arguments.c", "cache.c", "npu_registers.c")
FLAGS = ("-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard", "-std=c99", "-Os")
RECORDS = '#include "npu_registers.h"\nchar records[sizeof(mz_context) + sizeof(mz_npu)];\n'


def sizes(folder: Path, source: Path) -> tuple[int, int]:
    """Compile a file; return bytes of code and constants, and of memory."""
    target = folder / f"{source.stem}.o"
    include = f"-I{firmware_folder() / 'runtime'}"
    command = ["arm-none-eabi-gcc", *FLAGS, include, "-c", str(source), "-o", str(target)]
    subprocess.run(command, check=True)
    said = subprocess.run(
        ["arm-none-eabi-size", str(target)], check=True, capture_output=True, text=True
    )
    text, data, bss = (int(word) for word in said.stdout.splitlines()[1].split()[:3])
    return text + data, data + bss


def main() -> None:
    """Measure, and print a table or the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        records = folder / "records.c"
        records.write_text(RECORDS)
        found = {part: sizes(folder, firmware_folder() / "runtime" / part) for part in CORE}
        found["context and NPU"] = (0, sizes(folder, records)[1])
    text = sum(row[0] for row in found.values())
    memory = sum(row[1] for row in found.values())
    if as_json:
        print(json.dumps({"figures": {"core_text_bytes": text, "core_ram_bytes": memory}}))
        return
    for part, row in {**found, "together": (text, memory)}.items():
        print(f"{part:20}{row[0]:8} B of text{row[1]:8} B of memory")


if __name__ == "__main__":
    main()
