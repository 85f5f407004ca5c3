"""What was proved of a compiled network: on how many inputs, of which seed, and what came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256


@dataclass(frozen=True, slots=True)
class Proof:
    """What executing the compiled code on chosen inputs showed.

    inputs      inferences that each NPU operator executed; 0 if nothing was proved
    seed        of the inputs
    digest      SHA-256, in hexadecimal, of the inputs and of what they gave
    parts       NPU operators that were executed
    equal       outputs of NPU operators that equal the reference bit for bit
    watched     operators of the model whose own results were seen inside of these and are equal
    bounded     operators whose results differ from the reference within a documented bound
    unproved    what has no reference to be compared with, and why
    differing   operators that are on the NPU though they were found to be wrong
    """

    inputs: int
    seed: int
    digest: str = ""
    parts: int = 0
    equal: int = 0
    watched: int = 0
    bounded: tuple[str, ...] = ()
    unproved: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()

    @property
    def is_told(self) -> bool:
        """Whether there is something to say: it was tried."""
        return bool(self.inputs or self.unproved)


NOT_PROVED = Proof(0, 0)
"""Of a network that was compiled without a proof, or of which nothing is on the NPU."""


def joined(proofs: Sequence[Proof]) -> Proof:
    """Return the proof of a network of several parts that were proved each on its own."""
    if not proofs:
        return NOT_PROVED
    if len(proofs) == 1:
        return proofs[0]
    return Proof(
        inputs=min(row.inputs for row in proofs),
        seed=proofs[0].seed,
        digest=sha256("".join(row.digest for row in proofs).encode()).hexdigest(),
        parts=sum(row.parts for row in proofs),
        equal=sum(row.equal for row in proofs),
        watched=sum(row.watched for row in proofs),
        bounded=tuple(name for row in proofs for name in row.bounded),
        unproved=tuple(name for row in proofs for name in row.unproved),
        differing=tuple(name for row in proofs for name in row.differing),
    )
