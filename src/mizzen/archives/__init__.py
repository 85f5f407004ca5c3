"""ZIP archives and NumPy files from strangers, read in bounded memory and without executing them.

An archive says how large its members are before they are unpacked, and may lie: `unpacked` takes
no member beyond what it declares, and no archive beyond a bound that follows from the file's own
size. `array_of` reads an `.npy` whose size is that of its bytes, and no pickle; `mapped_array`
leaves one where it lies, and `arrays_in` reads a whole `.npz`.

It knows containers and no contents: what the members mean, and which diagnostic a user gets for a
file that breaks a rule, is for those who know what the file should be.
"""

from mizzen.archives.numpy_file import NUMBERS, are_characters, array_of, arrays_in, mapped_array
from mizzen.archives.unpacking import (
    ArchiveError,
    largest_unpacked,
    member_names,
    packed,
    unpacked,
)

__all__ = [
    "NUMBERS",
    "ArchiveError",
    "are_characters",
    "array_of",
    "arrays_in",
    "largest_unpacked",
    "mapped_array",
    "member_names",
    "packed",
    "unpacked",
]
