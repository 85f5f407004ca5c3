"""Build the firmware that runs any artifact, for each board and product: ``make runner``.

Needs arm-none-eabi-gcc. The files are part of the sources, so that users need none.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from mizzen.boards import find_board
from mizzen.export.runner import BUILT, name_of, runner_project
from mizzen.package.firmware import write_project

FOLDER = Path(__file__).parent
STRIP = "arm-none-eabi-strip"


def build(board: str, product: str, target: Path) -> None:
    """Write the ELF file of a board and a product."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_project(runner_project(find_board(board), product), folder)
        subprocess.run(["make", "--silent", "-C", name], check=True)
        elf = folder / "build" / "firmware.elf"
        subprocess.run([STRIP, "--strip-all", "-o", str(target), str(elf)], check=True)


def main() -> int:
    """Build all of them."""
    for board, products in BUILT.items():
        for product in products:
            target = FOLDER / name_of(board, product)
            build(board, product, target)
            print(f"{target.name}  {target.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
