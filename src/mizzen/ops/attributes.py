"""Enumerations that operations have as attributes; the graph's, since its text has them."""

from mizzen.graph.attributes import NanMode, ResizeMode, RoundingMode

__all__ = ["NanMode", "ResizeMode", "RoundingMode"]
