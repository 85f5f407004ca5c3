"""Read TOSA files as graphs."""

from mizzen.frontends.tosa.reading import read

__all__ = ["read"]
