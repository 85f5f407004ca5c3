"""Files of a project: whatever kernels it has, all that their sources include is there."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from mizzen.package.c import encode
from mizzen.package.c.kernel_rows import KERNELS
from mizzen.package.c.project import project_files
from mizzen.package.device import KernelCall
from mizzen.package.firmware import Surroundings

from .programs import quantizing

AROUND = Surroundings("", "", "cortex-m55", "u55")
INCLUDED = re.compile(r'^#include "(.+)"$', re.MULTILINE)


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_the_sources_of_a_kernel_include_is_in_the_project(kernel: str) -> None:
    program = quantizing()
    calling = replace(program, calls=(KernelCall(kernel, (), ()),))
    files = project_files(encode(program, None), calling, AROUND)
    names = {PurePosixPath(path).name for path in files}
    for path, text in files.items():
        if path.startswith("runtime/"):
            missing = {PurePosixPath(name).name for name in INCLUDED.findall(text.decode())} - names
            assert missing <= {"ethosu_driver.h"}, path
