"""The runtimes that projects are made for, by the name that `mizzen export --to` takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mizzen.diagnostics import fail
from mizzen.export.c.project import c_project
from mizzen.export.checkouts import DRIVER, EXECUTORCH, TFLM, Checkout, checked
from mizzen.export.executorch.project import executorch_project
from mizzen.export.project import Project, Request
from mizzen.export.tflite import tflite_project
from mizzen.export.tflm.project import tflm_project

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact


@dataclass(frozen=True, slots=True)
class Runtime:
    """What executes a network on a board.

    project    makes a project of an artifact
    checkouts  of others, that its projects compile from
    builders   make, CMake or both
    """

    title: str
    project: Callable[[Artifact, Request], Project]
    checkouts: tuple[Checkout, ...]
    builders: tuple[str, ...] = ("make", "cmake")

    def commands(self, folder: str, missing: Sequence[str]) -> Sequence[str]:
        """Return the commands that build a project, variables to be given among them."""
        if not self.builders:
            return ()
        if "make" in self.builders:
            return (f"make -C {folder}{''.join(f' {name}=DIR' for name in missing)}",)
        given = "".join(f" -D{name}=DIR" for name in missing)
        toolchain = "-DCMAKE_TOOLCHAIN_FILE=toolchain.cmake"
        build = f"{folder}/build"
        return (f"cmake -S {folder} -B {build} {toolchain}{given}", f"cmake --build {build}")


RUNTIMES: Mapping[str, Runtime] = {
    "c": Runtime("Mizzen's runtime", c_project, (DRIVER,)),
    "tflm": Runtime("TensorFlow Lite Micro", tflm_project, (TFLM, DRIVER)),
    "executorch": Runtime("ExecuTorch", executorch_project, (EXECUTORCH, DRIVER), ("cmake",)),
    "tflite": Runtime("a runtime that loads the file", tflite_project, (), ()),
}


def checkouts_for(name: str, folders: Mapping[str, str]) -> Mapping[str, str]:
    """Return checkouts by variable, given by the names of their options.

    E469 for a folder that is none, E470 for one that projects of the runtime do not take.
    """
    runtime = RUNTIMES[name]
    known = {checkout.variable.lower(): checkout for checkout in runtime.checkouts}
    for option in folders:
        if option not in known:
            takes = " and ".join(f"--{name}" for name in known)
            raise fail(
                "E470",
                f"a project for {runtime.title} must be given {takes}, not --{option}",
                help=f"leave --{option} out, or choose another runtime with --to",
            )
    return checked({known[option]: folder for option, folder in folders.items()})
