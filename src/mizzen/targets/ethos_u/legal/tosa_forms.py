"""Which operations there are on which architecture, of which types."""

from __future__ import annotations

from mizzen.graph import DType, Operation
from mizzen.ops import DEFINITIONS
from mizzen.ops.tensor import Weighted
from mizzen.targets.ethos_u.commands import ALL, U55_U65, U85, Arch
from mizzen.targets.ethos_u.legal.tosa_rule import (
    CONSTANTS,
    CONVOLUTIONS,
    FOUND,
    Measure,
    Rule,
    is_fixed,
    kinds,
    rule,
    types_of,
)

ONLY_ON_U85 = kinds(
    "BITWISE_AND BITWISE_NOT BITWISE_OR BITWISE_XOR COND_IF EQUAL GATHER GREATER GREATER_EQUAL "
    "INTDIV LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGICAL_RIGHT_SHIFT LOGICAL_XOR REDUCE_ALL "
    "REDUCE_ANY SCATTER SELECT WHILE_LOOP"
)
"""Operations that U55 and U65 have no form of. Ref: Vela 5.2.0, supported operators of TOSA."""

NOWHERE = kinds("VARIABLE VARIABLE_READ VARIABLE_WRITE")
"""Operations that the compiler takes for no architecture."""

COMPUTING = frozenset(DEFINITIONS) - CONSTANTS - {"CUSTOM"}

REPLACEMENTS = {
    "BITWISE_NOT": "write it as SUB from -1",
    "EQUAL": "compare on 8-bit numbers, which a TABLE of the difference does",
    "GATHER": "with constant indices: SLICE and CONCAT",
    "GREATER": "compare on 8-bit numbers, which a TABLE of the difference does",
    "GREATER_EQUAL": "compare on 8-bit numbers, which a TABLE of the difference does",
    "INTDIV": "by a constant: RESCALE",
    "LOGICAL_RIGHT_SHIFT": "by a constant: RESCALE",
    "SELECT": "by a constant: MUL with ones and zeros, and ADD",
}
"""What to write instead of an operation that U55 and U65 have no form of."""

STATE = "make the variable an input, and what is written to it an output"


def archs_with(kind: str) -> tuple[Arch, ...]:
    """Return the architectures that have a form of an operation, of some types."""
    if kind in NOWHERE:
        return ()
    return tuple(arch for arch in ALL if kind not in ONLY_ON_U85 or arch not in U55_U65)


def replacement(kind: str) -> str:
    """Say what to write instead of an operation that an architecture has no form of."""
    if kind in NOWHERE:
        return STATE
    return REPLACEMENTS.get(kind, "leave it to the CPU, or choose Ethos-U85")


@rule("integers", COMPUTING, ALL).must_have("only integers", "quantise it")
def _real_numbers(operation: Operation) -> str | None:
    found = [each.value for each in types_of(operation) if each.is_float]
    return ", ".join(found) or None


@rule("booleans", COMPUTING - ONLY_ON_U85, U55_U65).must_have(
    "numbers", "use numbers of 8 bits, 0 and 1, or choose Ethos-U85"
)
def _booleans(operation: Operation) -> str | None:
    return DType.BOOL.value if DType.BOOL in types_of(operation) else None


def _first_is(*wanted: DType) -> Measure:
    def measure(operation: Operation) -> str | None:
        found = operation.operand.dtype
        return None if found in wanted or found is DType.BOOL else found.value

    return measure


@rule("rescaled-sums", CONVOLUTIONS, U55_U65).must_have(
    "one RESCALE behind sums of 48 bits", "rescale the sum once, and use the result of that"
)
def _sum_of_48_bits(operation: Operation) -> str | None:
    if operation.results[0].dtype is not DType.INT48:
        return None
    users = [user.kind for user in operation.result.uses]
    if len(users) == 1 and users[0] in ("RESCALE", "IDENTITY"):
        return None
    return f"{' and '.join(users)} behind it" if users else "nothing behind it"


def _dynamic_weights(operation: Weighted) -> str | None:
    values = {"weights": operation.weight, "a bias": operation.bias}
    found = [name for name, value in values.items() if not is_fixed(value)]
    return f"{' and '.join(found)} that inputs decide" if found else None


_EIGHT = "operands of 8 bits"
_TYPES: tuple[tuple[str, str, str, tuple[DType, ...], str], ...] = (
    (
        "shift-type",
        "ARITHMETIC_RIGHT_SHIFT LOGICAL_LEFT_SHIFT",
        "operands of 32 bits",
        (DType.INT32,),
        "cast the operands to 32 bits before, and the result back",
    ),
    (
        "arg-max-type",
        "ARGMAX",
        _EIGHT,
        (DType.INT8,),
        "quantise its input to 8 bits",
    ),
    (
        "matmul-type",
        "MATMUL",
        _EIGHT,
        (DType.INT8,),
        "quantise it to 8 bits, or choose Ethos-U85",
    ),
    (
        "transposed-type",
        "TRANSPOSE_CONV2D",
        _EIGHT,
        (DType.INT8,),
        "quantise it to 8 bits, or choose Ethos-U85",
    ),
    (
        "extreme-type",
        "REDUCE_MAX REDUCE_MIN",
        "operands of 8 or 16 bits",
        (DType.INT8, DType.INT16),
        "rescale the operand to 16 bits before",
    ),
)

FORM_RULES: tuple[Rule, ...] = (
    _real_numbers,
    _booleans,
    *(
        rule(id, kinds(names), U55_U65, FOUND).must_have(limit, help)(_first_is(*wanted))
        for id, names, limit, wanted, help in _TYPES
    ),
    _sum_of_48_bits,
    rule("constant-weights", CONVOLUTIONS - {"TRANSPOSE_CONV2D"}, U55_U65, FOUND).must_have(
        "constant weights and a constant bias",
        "make them constants; a product of two inputs is MATMUL",
    )(_dynamic_weights),
    rule("constant-deep-weights", "CONV3D", U85).must_have(
        "constant weights and a constant bias", "make them constants"
    )(_dynamic_weights),
    rule("constant-transposed-weights", "TRANSPOSE_CONV2D", ALL).must_have(
        "constant weights and a constant bias", "make them constants"
    )(_dynamic_weights),
)
"""Rules of types, and of what must be constant."""
