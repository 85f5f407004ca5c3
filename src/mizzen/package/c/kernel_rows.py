"""The kernels that the runtime has, and the sources that they are in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mizzen.package.c.layout import kernel_id


@dataclass(frozen=True, slots=True)
class KernelRow:
    """A kernel: its name in calls; in `kernels/<source>.c` it is `mz_kernel_<name>`.

    needs  other sources of that folder that it is linked with
    """

    name: str
    source: str
    needs: tuple[str, ...] = ()

    @property
    def function(self) -> str:
        """Its function in C."""
        return f"mz_kernel_{self.name}"


KERNELS: Mapping[str, KernelRow] = {
    row.name: row
    for row in (
        KernelRow("quantize", "quantize", ("elements",)),
        KernelRow("dequantize", "quantize", ("elements",)),
        KernelRow("move", "move", ("elements",)),
        KernelRow("cast", "cast", ("elements",)),
        KernelRow("binary", "binary", ("compare", "elements", "strides")),
        KernelRow(
            "binary_scaled", "binary_scaled",
            ("compare", "elements", "fixed_point", "numbers", "strides"),
        ),
        KernelRow("table", "table", ("elements",)),
        KernelRow("convolve", "convolve", ("elements", "fixed_point", "numbers", "window")),
        KernelRow("pool", "pool", ("elements", "numbers", "window")),
        KernelRow("select", "select", ("elements", "strides")),
        KernelRow("unary", "unary", ("elements", "functions")),
        KernelRow("reduce", "reduce", ("elements", "rows")),
        KernelRow("scan", "scan", ("elements", "rows")),
        KernelRow("sort", "sort", ("elements", "rows")),
        KernelRow("softmax", "softmax", ("elements", "functions", "rows")),
        KernelRow("softmax_int8", "softmax_int8", ("elements", "fixed_point", "rows")),
        KernelRow("softmax_int16", "softmax_int16", ("elements", "fixed_point", "rows")),
        KernelRow("squash", "squash", ("elements",)),
        KernelRow("interpolate", "interpolate", ("elements", "numbers", "window")),
        KernelRow("normalize", "normalize", ("elements", "functions")),
        KernelRow("take", "take", ("elements",)),
        KernelRow("narrow_index", "take", ("elements",)),
        KernelRow("gather", "gather", ("elements", "strides")),
        KernelRow("rescale", "rescale", ("elements", "fixed_point")),
        *(
            KernelRow(f"signal_{name}", "signal", ("elements",))
            for name in (
                "window", "scale", "spectrum", "energy", "bank", "root", "subtract", "gain",
                "logarithm",
            )
        ),
    )
}  # fmt: skip


def sources_of(names: Iterable[str]) -> Sequence[str]:
    """Return the files of `firmware/runtime/kernels` that some kernels are linked with."""
    rows = [KERNELS[name] for name in names]
    return sorted({f"{stem}.c" for row in rows for stem in (row.source, *row.needs)})


def kernel_table(names: Iterable[str]) -> str:
    """Return the C source of the table of some kernels, `mz_kernels`, for `mz_open`."""
    rows = [KERNELS[name] for name in names]
    declared = "".join(f"mz_status {row.function}(const mz_call *call);\n" for row in rows)
    listed = "".join(f"    {{{kernel_id(row.name):#010x}u, {row.function}}},\n" for row in rows)
    return (
        "/* The kernels that the container calls, and no others: made by Mizzen. */\n"
        '#include "mizzen.h"\n\n'
        f"extern const mz_kernel mz_kernels[];\n{declared}\n"
        f"const mz_kernel mz_kernels[] = {{\n{listed}    {{0, NULL}},\n}};\n"
    )
