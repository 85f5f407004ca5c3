"""Unquantised PyTorch programs as TOSA operations on floating-point numbers.

A node is computed as PyTorch computes it, in the element type of its tensor, so that results
agree to a few units of the last place. There is no CPU beside the file: an operator that has no
form is an error with its place. What only moves numbers is beside this folder, for both profiles.
"""

from mizzen.frontends.torch.fp_lowering.fp_lower import lower_float
from mizzen.frontends.torch.fp_lowering.fp_reading import read_float

__all__ = ["lower_float", "read_float"]
