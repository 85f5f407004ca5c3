"""How text that came from a file leaves: escaped by what the place that it goes to would read.

Names of networks, tensors and boards, paths, and what firmware writes are strangers' texts. Inside,
they stay as they are, and JSON has them so. `terminal` is for what people read: texts, messages,
tables, pages. `tables` is for CSV and Markdown, `sources` for generated C, make, CMake and linker
scripts. It must not know what any text is about.
"""

from mizzen.escaping.sources import c_comment, c_string, cmake_argument, make_value
from mizzen.escaping.tables import csv_cell, markdown_code
from mizzen.escaping.terminal import cut, one_line, quoted_lines, shown

__all__ = [
    "c_comment",
    "c_string",
    "cmake_argument",
    "csv_cell",
    "cut",
    "make_value",
    "markdown_code",
    "one_line",
    "quoted_lines",
    "shown",
]
