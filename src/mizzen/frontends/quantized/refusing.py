"""Refusals that both front-ends share, and the removal of values that nothing reads."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from mizzen.diagnostics import MizzenError
from mizzen.frontends.refusal import RefusedError
from mizzen.graph import Graph

ILL_FORMED = ("E162", "E802", "E803", "E804", "E805", "E806", "E809")
"""What TOSA does not take."""


@contextmanager
def ill_formed(help: str) -> Generator[None]:
    """Refuse what TOSA's own rules do not allow, or no multiplier of a RESCALE stands for.

    help  what to do about an operation that TOSA does not take
    """
    try:
        yield
    except (ValueError, OverflowError) as error:
        raise RefusedError(str(error)) from error
    except MizzenError as error:
        if error.diagnostic.code not in ILL_FORMED:
            raise
        raise RefusedError(error.diagnostic.message, help) from error


def erase_unused_custom(graph: Graph) -> None:
    """Remove what the host would compute though nothing takes it."""
    outputs = set(graph.outputs)
    for operation in reversed(graph.sorted()):
        used = any(result.uses or result in outputs for result in operation.results)
        if not used and operation.kind != "VARIABLE_WRITE":
            graph.erase(operation)
