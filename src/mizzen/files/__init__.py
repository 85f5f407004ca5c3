"""Files for users, whole or not at all; and temporary ones, which never stay.

Everything that Mizzen writes where a user wants it goes through `write_files`: beside the place,
flushed, renamed over. What belongs together, an artifact and its report, is one call: all of it is
ready before any of it is replaced. `temporary_folder` is for what a process of ours needs a folder
for. What a killed process could not take away, the next one does (`leftovers`).

It must not know what is in a file.
"""

from mizzen.files.leftovers import (
    take_all_away,
    take_leftovers_away,
    temporary_folder,
    temporary_place,
)
from mizzen.files.signals import ENDING, held, must_wait
from mizzen.files.writing import write_file, write_files

__all__ = [
    "ENDING",
    "held",
    "must_wait",
    "take_all_away",
    "take_leftovers_away",
    "temporary_folder",
    "temporary_place",
    "write_file",
    "write_files",
]
