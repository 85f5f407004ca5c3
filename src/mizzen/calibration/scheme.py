"""What is asked of a quantisation: how ranges are found, which integers, what stays in float."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mizzen.diagnostics import MizzenError, fail, install_extra


class Method(Enum):
    """How the range of a tensor is found in what calibration shows of it."""

    MINMAX = "minmax"
    """All numbers that came."""
    PERCENTILE = "percentile"
    """All but the outermost hundred-thousandth."""
    ENTROPY = "entropy"
    """Those whose distribution changes least."""
    SEARCH = "search"
    """Those with the least squared error; PyTorch's observers."""


class Activations(Enum):
    """The integers of activations; weights are of 8 bits."""

    INT8 = "int8"
    INT16 = "int16"


@dataclass(frozen=True, slots=True)
class Scheme:
    """How a network is quantised.

    method       None for what is usual for the form of the file
    keep_float   names or numbers of operators that stay in floating point
    cuts         names or numbers of operators that the network ends with
    """

    method: Method | None = None
    activations: Activations = Activations.INT8
    keep_float: tuple[str, ...] = ()
    cuts: tuple[str, ...] = ()


def no_such_node(option: str, name: str, near: list[str], model: str) -> MizzenError:
    """Return E198, of an operator that there is not."""
    return fail(
        "E198",
        f"{option} must name an operator of {model}, by its name, its output or its number, and "
        f"none is {name!r}",
        help=f"did you mean {', '.join(map(repr, near))}?"
        if near
        else f"`mizzen inspect {model}` lists them",
    )


def already_quantised(name: str) -> MizzenError:
    """Return E198, of a network that is quantised already."""
    return fail(
        "E198",
        f"{name} must be a floating-point network, and is quantised already",
        help=f"compile it as it is: `mizzen compile {name}`",
    )


def not_installed(package: str, extra: str) -> MizzenError:
    """Return E199, of a package that is missing."""
    return fail(
        "E199",
        f"{package} must be installed to quantise such a network, and is not",
        help=install_extra(extra),
    )
