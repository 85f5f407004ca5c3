"""Emission: the program of every element, of a mapping.

What a mapping leaves open is decided here: which bytes of an element's memory hold what, and in
which order it receives, computes and sends. Nothing is judged: a mapping that does not fit becomes
a program that does not, and the checker of programs says so. It must not know who made the mapping.
"""

from mizzen.mesh.emission.emission import emit

__all__ = ["emit"]
