"""Write graphs as TOSA files."""

from mizzen.package.tosa.writing import write

__all__ = ["write"]
