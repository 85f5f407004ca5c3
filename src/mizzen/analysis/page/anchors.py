"""Places of the page that others lead to, by names that no two of them share."""

from __future__ import annotations


def of_layer(operator: int) -> str:
    """Return the row of an operator of the model."""
    return f"layer-{operator}"


def of_operation(index: int) -> str:
    """Return the row of an operation of the artifact."""
    return f"operation-{index}"


def of_commands(step: int, offset_words: int) -> str:
    """Return the commands up to one of a step's stream."""
    return f"commands-{step}-{offset_words}"
