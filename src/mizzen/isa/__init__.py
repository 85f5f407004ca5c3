"""The vocabulary for machine tables: fields, commands, instruction sets. Knows no machine.

A machine's commands are rows of `Command`, each with its `Field`s; an `InstructionSet` made of them
encodes and decodes. Listings, documentation and test generators read the same rows, so that a fact
of a manual is written once, with its source. Encode refuses a value that does not fit; it never
masks. Decode tells at which word a stream stops being one, and why.

What a command does is no part of its row: simulators say that, from decoded values. This package
must not know a product, a container or a network.
"""

from mizzen.isa.codec import InstructionSet, Unpack
from mizzen.isa.command import Command, Instruction, Kind
from mizzen.isa.register import Field, Register, Slice, bits, choice, minus_one, number, signed

__all__ = [
    "Command",
    "Field",
    "Instruction",
    "InstructionSet",
    "Kind",
    "Register",
    "Slice",
    "Unpack",
    "bits",
    "choice",
    "minus_one",
    "number",
    "signed",
]
