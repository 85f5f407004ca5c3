"""All elements of a program as C, at work at the same time, with slots and credits.

Each is a library with a memory and a thread of its own. A message is written to its targets as soon
as they have credits for it, which is what `mesh_port.h` says and all that it says.
"""

from __future__ import annotations

import ctypes
import subprocess
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mizzen.graph import Array
from mizzen.mesh.execution.tiles import dtypes_of
from mizzen.mesh.export import export_element
from mizzen.mesh.network.boxes import Box, shape_of, slices
from mizzen.mesh.program import ElementProgram, Fetch, Give, MeshProgram, Receive
from mizzen.package.firmware import write_project

HOOK = ctypes.CFUNCTYPE(
    None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32
)
FETCH, RECEIVE, SEND, GIVE, CLAIM, RELEASE, FAULT = range(7)
PORT = Path(__file__).with_name("shared_port.c")
SOURCES = ("element.c", "mesh_box.c", "mesh_array.c")
LONGEST_WAIT_S = 20


class Together:
    """A network at work on some images; `outputs` is `[images, *shape]` by tensor."""

    def __init__(self, program: MeshProgram, inputs: Sequence[Array], folder: Path) -> None:
        network, dtypes = program.network, dtypes_of(program.network)
        self.program = program
        self.inputs = dict(zip(network.inputs, inputs, strict=True))
        self.images = len(inputs[0])
        self.outputs = {
            tensor: np.zeros((self.images, *network.tensors[tensor].shape), dtypes[tensor])
            for tensor in network.outputs
        }
        self.changed = threading.Condition()
        self.elements = {row.element: _Element(self, row, folder) for row in program.elements}
        self.wrong: list[str] = []

    def run(self) -> None:
        """Let every element work on all images."""
        threads = [threading.Thread(target=each.work) for each in self.elements.values()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for something that another element does."""
        if not self.changed.wait_for(lambda: holds() or self.wrong, LONGEST_WAIT_S):
            self.wrong.append(what)


class _Element:
    def __init__(self, whole: Together, row: ElementProgram, folder: Path) -> None:
        self.whole = whole
        self.row = row
        self.library = _library(whole.program, row.element, folder / str(row.element))
        self.memory = np.full(row.data_bytes + 4096, 0xA5, np.uint8)
        self.hook = HOOK(self.called)
        self.library.attach(self.hook)
        self.came: dict[int, int] = defaultdict(int)
        self.released: dict[int, int] = defaultdict(int)
        self.regions: dict[int, list[int]] = defaultdict(list)
        for each in row.instructions:
            if isinstance(each, Receive):
                self.regions[each.message].append(each.region)
        self.fetched = [each for each in row.instructions if isinstance(each, Fetch)]
        self.given = [each for each in row.instructions if isinstance(each, Give)]
        self.counts: dict[int, int] = defaultdict(int)

    @property
    def begin(self) -> Any:
        """Where data memory begins, at a multiple of 16 bytes."""
        address = self.memory.ctypes.data
        return ctypes.c_void_p(-(-address // 16) * 16)

    def work(self) -> None:
        for image in range(self.whole.images):
            if not self.whole.wrong:
                self.library.element_image(self.begin, image)

    def has_credit(self, message: int, image: int) -> bool:
        return all(
            image < self.released[region] + self.row.regions[region].slots
            for region in self.regions[message]
        )

    def called(self, kind: int, number: int, image: int, data: int, count: int) -> None:
        with self.whole.changed:
            if not self.whole.wrong:
                self.answer(kind, number, image, data, count)
            self.whole.changed.notify_all()

    def answer(self, kind: int, number: int, image: int, data: int, count: int) -> None:
        match kind:
            case 0:
                tensor, box = self.next_box(FETCH, self.fetched)
                assert tensor == number
                values = np.ascontiguousarray(self.whole.inputs[tensor][(image, *slices(box))])
                assert values.nbytes == count
                ctypes.memmove(data, values.ctypes.data, count)
            case 1:
                self.whole.until(
                    lambda: self.came[number] > image, f"message {number} of image {image}"
                )
            case 2:
                self.send(number, image, ctypes.string_at(data, count))
            case 3:
                tensor, box = self.next_box(GIVE, self.given)
                assert tensor == number
                output = self.whole.outputs[tensor]
                flat = np.frombuffer(ctypes.string_at(data, count), output.dtype)
                output[(image, *slices(box))] = flat.reshape(shape_of(box))
            case 5:
                self.released[number] = image + 1
            case 6:
                self.whole.wrong.append(f"fault {number}")
            case _:
                pass

    def next_box(self, kind: int, rows: Sequence[Fetch | Give]) -> tuple[int, Box]:
        each = rows[self.counts[kind] % len(rows)]
        self.counts[kind] += 1
        box = each.box if isinstance(each, Give) else self.row.regions[each.region].box
        assert box is not None
        return each.tensor, box

    def send(self, message: int, image: int, content: bytes) -> None:
        targets = [self.whole.elements[each] for each in self.whole.program.routes[message].targets]
        for target in targets:
            self.whole.until(
                partial(target.has_credit, message, image),
                f"credits for message {message} of image {image}",
            )
            target.library.deliver(target.begin, message, image, content)
            target.came[message] += 1


def _library(program: MeshProgram, element: int, folder: Path) -> ctypes.CDLL:
    write_project(export_element(program, element), folder)
    built = folder / "element.so"
    runtime = ["mesh_kernel.c", "kernels.c", *_below(folder / "runtime")]
    sources = [*SOURCES, *(name for name in runtime if (folder / name).is_file())]
    command = ["gcc", "-std=c99", "-O1", "-fno-strict-aliasing", "-ffp-contract=off", "-shared"]
    command += ["-fPIC", "-Wl,-Bsymbolic", "-I.", "-Iruntime", "-Iruntime/kernels"]
    done = subprocess.run(
        [*command, *sources, str(PORT), "-o", str(built)],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(built))


def _below(folder: Path) -> list[str]:
    return [str(path.relative_to(folder.parent)) for path in sorted(folder.rglob("*.c"))]
