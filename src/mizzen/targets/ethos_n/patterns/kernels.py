"""What the kernels of the programmable layer engine get wrong, though the library supports it.

Ref: Ethos-N driver stack 25.03, `kernels/ple` (public since 23.11): registers have 16 bits.
"""

from __future__ import annotations

from mizzen.targets.ethos_n.patterns.findings import Findings
from mizzen.targets.ethos_n.tensors import QuantizationInfo, TensorInfo

LARGEST_RESCALED = (1 << 14) - 256
"""Magnitude of a number in the output's steps up to which nothing wraps round: the kernels hold
twice of it in 16 bits, and two of them with the output's zero point."""

LARGEST_EXPONENT_SCALE = 1024.0
"""Input scales from about here on leave the kernel of sigmoid and tanh no multiplier (1419 for
tanh, 2839 for sigmoid)."""

COARSEST_MEAN = 4.0
"""What a step of a mean, which is the input's, may be in steps of the output that it is requantised
to: a mean is that far from the exact one."""

LEAST_PLANE = 2
"""Rows and columns of a plane whose means of 3x3 are right: in a single one the kernel divides by
6, though there are 3 elements."""


def need_no_wrapping(findings: Findings, source: TensorInfo, output: QuantizationInfo) -> None:
    """Note an input whose largest number, in the output's steps, is beyond a kernel's registers."""
    factor = source.quantization.scale / output.scale
    zero_point, data_type = source.quantization.zero_point, source.data_type
    limit = LARGEST_RESCALED / max(data_type.highest - zero_point, zero_point - data_type.lowest)
    findings.need(
        factor <= limit,
        "register-range",
        f"input scale / output scale={factor:g}, it must be <= {limit:g}, or numbers wrap round",
        limit=f"an output scale of at least 1/{limit:g} of the input's",
        actual=f"1/{factor:g}",
        help="quantise the network again: such an output is at its bounds almost everywhere",
    )


def need_exponents(findings: Findings, source: TensorInfo) -> None:
    """Note an input whose scale is beyond what sigmoid and tanh are computed with."""
    scale = source.quantization.scale
    findings.need(
        scale < LARGEST_EXPONENT_SCALE,
        "exponent-range",
        f"input scale={scale:g}, input scale must be < {LARGEST_EXPONENT_SCALE:g}",
        limit=f"an input scale under {LARGEST_EXPONENT_SCALE:g}",
        actual=f"{scale:g}",
        help="quantise the network again: almost every number is saturated",
    )


def need_plane(findings: Findings, source: TensorInfo, kernel: tuple[int, int]) -> None:
    """Note a padded average over a plane of a single row or column."""
    least = min(source.height, source.width)
    findings.need(
        kernel != (3, 3) or least >= LEAST_PLANE,
        "thin-plane",
        f"plane={source.height}x{source.width}, a plane must have at least {LEAST_PLANE} rows and "
        "columns, or its means are divided by too much",
        limit=f"at least {LEAST_PLANE} rows and columns",
        actual=f"{source.height}x{source.width}",
        help="leave the pooling to the CPU, or average along one axis by a convolution",
    )


def need_fine_mean(findings: Findings, source: QuantizationInfo, output: QuantizationInfo) -> None:
    """Note a mean whose output is much finer than its input, in whose steps it is rounded first."""
    factor = source.scale / output.scale
    findings.need(
        factor <= COARSEST_MEAN,
        "mean-steps",
        f"input scale / output scale={factor:g}, it must be <= {COARSEST_MEAN:g} for a mean",
        limit=f"an output scale of at least 1/{COARSEST_MEAN:g} of the input's",
        actual=f"1/{factor:g}",
        help="let the mean have its input's quantisation, or average a plane of 7x7",
    )
