"""What was proved of a compiled network: on how many inputs, of which seed, and what came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

MOST_TOLD = 3
"""Results that were not compared, of which a line tells; the report has all."""


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
    unproved    results that were not compared with anything, each with its operator and why
    differing   operators that are on the NPU though they were found to be wrong
    against     what the results are equal to, where that is not TensorFlow Lite Micro's kernels
                or what TOSA says
    constants   sets of constants (weights, biases, scales, tables) of commands that were compared
                with the network's, or are of a kind that is known
    own         those that are the compiler's own, which executing alone judges
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
    against: str = ""
    constants: int = 0
    own: int = 0

    @property
    def compares(self) -> bool:
        """Whether anything was compared."""
        return bool(self.inputs and (self.equal or self.watched or self.bounded or self.differing))

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
        inputs=min(proof.inputs for proof in proofs),
        seed=proofs[0].seed,
        digest=sha256("".join(proof.digest for proof in proofs).encode()).hexdigest(),
        parts=sum(proof.parts for proof in proofs),
        equal=sum(proof.equal for proof in proofs),
        watched=sum(proof.watched for proof in proofs),
        bounded=tuple(name for proof in proofs for name in proof.bounded),
        unproved=tuple(name for proof in proofs for name in proof.unproved),
        differing=tuple(name for proof in proofs for name in proof.differing),
        against=proofs[0].against,
        constants=sum(row.constants for row in proofs),
        own=sum(row.own for row in proofs),
    )


def not_compared(proof: Proof) -> str:
    """Say which results were not compared, and why; of many the first."""
    names = proof.unproved
    said = "; ".join(names[:MOST_TOLD])
    if len(names) > MOST_TOLD:
        said += f"; and {len(names) - MOST_TOLD} more, which the report lists"
    were = "1 result was" if len(names) == 1 else f"{len(names)} results were"
    return f"{were} not compared: {said}"
