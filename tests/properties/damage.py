"""Damaged files, for the rule that any bytes end in a diagnostic or in success."""

from __future__ import annotations

from hypothesis import strategies as st


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Truncate a file, flip some of its bits, overwrite a run of bytes, or move a run."""
    place = st.integers(0, len(data) - 1)
    match draw(st.sampled_from(("truncate", "flip", "overwrite", "move"))):
        case "truncate":
            return data[: draw(place)]
        case "flip":
            bits = draw(st.lists(st.integers(0, 8 * len(data) - 1), min_size=1, max_size=8))
            damage = bytearray(data)
            for bit in bits:
                damage[bit // 8] ^= 1 << bit % 8
            return bytes(damage)
        case "overwrite":
            start = draw(place)
            run = draw(st.binary(min_size=1, max_size=32))
            return (data[:start] + run + data[start + len(run) :])[: len(data)]
        case _:
            start, target, size = draw(place), draw(place), draw(st.integers(1, 32))
            run = data[start : start + size]
            return data[:target] + run + data[target + len(run) :]
