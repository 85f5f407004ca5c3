"""Artifacts and Linux's driver: what the verb `check` asks and says."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import mizzen
from mizzen.analysis.checking.linux import linux_check
from mizzen.diagnostics import MizzenError
from mizzen.package.tflite.builder import NetworkBuilder


def resized() -> bytes:
    """A network of one bilinear resize by three."""
    builder = NetworkBuilder()
    image = builder.tensor("image", (1, 6, 8, 4), np.int8, 0.5)
    large = builder.tensor("large", (1, 18, 24, 4), np.int8, 0.5)
    size = builder.constant("size", np.array([18, 24], np.int32))
    options = ("ResizeBilinearOptions", {"half_pixel_centers": True})
    builder.operator("RESIZE_BILINEAR", [image, size], [large], options)
    return builder.finish([image], [large])


def test_a_refusal_names_the_operator_and_its_help_helps() -> None:
    artifact = mizzen.compile(resized(), "ethos-u85-256")
    (finding,) = linux_check(artifact).findings
    assert str(MizzenError(finding)) == (
        "error[E680]: OP_RESIZE: Linux would refuse the stream: OP_RESIZE must not be used, and "
        "it is\n"
        '  at   model.tflite, operator 0 RESIZE_BILINEAR -> "large"\n'
        "  rule Linux, drivers/accel/ethosu/ethosu_gem.c, ethosu_gem_cmdstream_copy_and_validate\n"
        "  help compile with --ignore-ops and the operator's type, which leaves it to the CPU"
    )
    on_cpu = mizzen.compile(resized(), "ethos-u85-256", ignore_ops=["RESIZE_BILINEAR"])
    assert linux_check(on_cpu).reports == ()


def test_the_sram_of_a_board(repository: Path) -> None:
    digits = repository / "examples" / "digits" / "digits.tflite"
    artifact = mizzen.compile(digits, "ethos-u65-256", prove="off")
    (report,) = (report for _, report in linux_check(artifact).reports)
    assert linux_check(artifact, report.region_bytes[2]).findings == ()
    small = 1 << 10
    (finding,) = linux_check(artifact, small).findings
    assert finding.help == "compile with --arena-cache-size and the bytes of the SRAM"
    less = mizzen.compile(digits, "ethos-u65-256", prove="off", arena_cache_size=small)
    assert linux_check(less, small).findings == ()
