"""Code that is not what its generator says, or says of itself what is not the network."""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.compiler.proof.difference import RULE
from mizzen.diagnostics import Origin, Reason


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A fact about one operation of a command stream of which two parties say different things.

    operation  what the operation is, in words
    origin     where it comes from in the user's model
    field      what the fact is
    index      of the first element that differs, of an array
    wanted     what must be, and `wanted_by` says so
    came       what is there, and `came_from` says so
    """

    operation: str
    origin: Origin
    field: str
    index: tuple[int, ...]
    wanted: object
    wanted_by: str
    came: object
    came_from: str

    def __str__(self) -> str:
        place = f" at [{', '.join(map(str, self.index))}]" if self.index else ""
        return (
            f"{self.field} of {self.operation}{place}: {self.came} in {self.came_from}, "
            f"{self.wanted} in {self.wanted_by}"
        )

    def reason(self, kind: str, source: str) -> Reason:
        """Return the reason for which an operator of this type is on the CPU."""
        return Reason(
            RULE,
            f"the compiler's code for this {kind} is not what it has to be: {self}",
            help="nothing needs doing if the CPU has time for it; "
            "`--allow-inexact` leaves it on the NPU",
            source=source,
        )
