"""What becomes of each field of a file format: a table beside its schema.

A field that nothing reads may change what a file means, and the numbers with it. So each field has
an entry, and a schema with a field more fails its test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Use(Enum):
    """What becomes of a field.

    The kernels that compute an operator read what is carried: nothing else does, since the operator
    has no other form.
    """

    READ = "read"
    CARRIED = "read by the kernels of the operator"
    REFUSED = "must be absent or default"
    SILENT = "says nothing about numbers"


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a table by what becomes of them, names with spaces between.

    refused  names, with what a file would mean by such a field
    """

    read: str = ""
    carried: str = ""
    silent: str = ""
    refused: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def uses(self) -> dict[str, Use]:
        """What becomes of each field, by its name."""
        groups = ((Use.READ, self.read), (Use.CARRIED, self.carried), (Use.SILENT, self.silent))
        uses = {name: use for use, names in groups for name in names.split()}
        return uses | dict.fromkeys(self.refused, Use.REFUSED)


Table = Mapping[str, Fields]
"""The fields of a format, by the name of their table."""
