"""The kernels that the runtime has, and the sources that they are in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mizzen.package.c.layout import kernel_id


@dataclass(frozen=True, slots=True)
class KernelRow:
    """A kernel: its name in calls; in `kernels/<source>.c` it is `mz_kernel_<name>`.

    doc    what it computes
    needs  other sources of that folder that it is linked with
    """

    name: str
    source: str
    doc: str
    needs: tuple[str, ...] = ()

    @property
    def function(self) -> str:
        """Its function in C."""
        return f"mz_kernel_{self.name}"


KERNELS: Mapping[str, KernelRow] = {
    kernel.name: kernel
    for kernel in (
        KernelRow("quantize", "quantize", "floats as integers of a scale", ("elements",)),
        KernelRow("dequantize", "quantize", "integers of a scale as floats", ("elements",)),
        KernelRow("move", "move", "elements from one pattern of strides to another", ("elements",)),
        KernelRow("cast", "cast", "elements in another type", ("elements",)),
        KernelRow(
            "binary",
            "binary",
            "one element of two, shapes broadcast",
            ("compare", "elements", "strides"),
        ),
        KernelRow(
            "binary_scaled",
            "binary_scaled",
            "the same of quantised tensors, in fixed point",
            ("compare", "elements", "fixed_point", "numbers", "strides"),
        ),
        KernelRow(
            "table",
            "table",
            "elements looked up in a table of all numbers of 8 or 16 bits",
            ("elements",),
        ),
        KernelRow(
            "convolve",
            "convolve",
            "sums of products of windows and weights, quantised or real",
            ("elements", "fixed_point", "numbers", "window"),
        ),
        KernelRow(
            "pool", "pool", "the mean or the greatest of windows", ("elements", "numbers", "window")
        ),
        KernelRow(
            "select", "select", "one of two elements, by a condition", ("elements", "strides")
        ),
        KernelRow("unary", "unary", "a function of one element", ("elements", "functions")),
        KernelRow(
            "reduce",
            "reduce",
            "one element of each row: sums, means, extremes and where they are",
            ("elements", "rows"),
        ),
        KernelRow("scan", "scan", "sums so far along rows", ("elements", "rows")),
        KernelRow(
            "sort",
            "sort",
            "the first elements of rows in order, and where they were",
            ("elements", "rows"),
        ),
        KernelRow(
            "softmax",
            "softmax",
            "softmax of floats along rows",
            ("elements", "functions", "rows"),
        ),
        KernelRow(
            "softmax_int8",
            "softmax_int8",
            "softmax of 8 bits in fixed point",
            ("elements", "fixed_point", "rows"),
        ),
        KernelRow(
            "softmax_int16",
            "softmax_int16",
            "softmax of 16 bits by tables",
            ("elements", "fixed_point", "rows"),
        ),
        KernelRow("squash", "squash", "sigmoid and tangent of 16 bits by a table", ("elements",)),
        KernelRow(
            "interpolate",
            "interpolate",
            "images of another size, between four pixels each",
            ("elements", "numbers", "window"),
        ),
        KernelRow(
            "normalize",
            "normalize",
            "rows to a mean of 0 and a variance of 1",
            ("elements", "functions"),
        ),
        KernelRow(
            "unit_length",
            "unit_length",
            "rows of a length of 1, quantised or real",
            ("elements", "fixed_point", "functions"),
        ),
        KernelRow("take", "take", "slices along an axis, by indices", ("elements",)),
        KernelRow("narrow_index", "take", "indices of a table in fewer bits", ("elements",)),
        KernelRow(
            "gather", "gather", "elements by an index along one axis each", ("elements", "strides")
        ),
        KernelRow(
            "rescale",
            "rescale",
            "integers of one scale as those of another",
            ("elements", "fixed_point"),
        ),
        *(
            KernelRow(f"signal_{name}", "signal", f"sound: {doc}", ("elements",))
            for name, doc in (
                ("window", "samples times a window"),
                ("scale", "samples shifted as far as they go"),
                ("spectrum", "the spectrum of samples of 16 bits"),
                ("energy", "squares of a spectrum"),
                ("bank", "energies of overlapping channels"),
                ("root", "square roots"),
                ("subtract", "energies less an estimate of noise"),
                ("gain", "automatic gain of each channel"),
                ("logarithm", "logarithms of energies"),
            )
        ),
    )
}


def sources_of(names: Iterable[str]) -> Sequence[str]:
    """Return the files of `firmware/runtime/kernels` that some kernels are linked with."""
    kernels = [KERNELS[name] for name in names]
    return sorted({f"{stem}.c" for kernel in kernels for stem in (kernel.source, *kernel.needs)})


def kernel_table(names: Iterable[str]) -> str:
    """Return the C source of the table of some kernels, `mz_kernels`, for `mz_open`."""
    kernels = [KERNELS[name] for name in names]
    declared = "".join(f"mz_status {kernel.function}(const mz_call *call);\n" for kernel in kernels)
    listed = "".join(
        f"    {{{kernel_id(kernel.name):#010x}u, {kernel.function}}},\n" for kernel in kernels
    )
    return (
        "/* The kernels that the container calls, and no others: made by Mizzen. */\n"
        '#include "mizzen.h"\n\n'
        f"extern const mz_kernel mz_kernels[];\n{declared}\n"
        f"const mz_kernel mz_kernels[] = {{\n{listed}    {{0, NULL}},\n}};\n"
    )
