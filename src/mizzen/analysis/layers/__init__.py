"""The table of layers: where the time goes and why, by the operators of the user's model.

A command stream has operations; a user has layers. One layer may be thirty operations, or none
where it became part of another; some transfers belong to no layer. The rows here add up to the
whole inference, so that a share is one of everything that takes time.

It joins what the cost and memory reports say. `trials` finds advice by compiling again, and
`cliffs` what a layer would cost with other channels. Nothing here knows a command, or prints.
"""

from mizzen.analysis.layers.rows import layers

__all__ = ["layers"]
