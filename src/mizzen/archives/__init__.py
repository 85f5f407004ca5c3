"""ZIP archives and NumPy files from strangers, read in bounded memory and without executing them.

An archive says how large its members are before they are unpacked, and may lie: `unpacked` takes
no member beyond what it declares, and no archive beyond a bound that follows from the file's own
size. `array_of` reads an `.npy` whose size is that of its bytes, and no pickle.

It knows containers and no contents: what the members mean, and which diagnostic a user gets for a
file that breaks a rule, is for those who know what the file should be.
"""

from mizzen.archives.numpy_file import NUMBERS, array_of
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
    "array_of",
    "largest_unpacked",
    "member_names",
    "packed",
    "unpacked",
]
