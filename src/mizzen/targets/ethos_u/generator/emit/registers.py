"""The words of commands; of registers, only those that change."""

from __future__ import annotations

from functools import lru_cache

from mizzen.targets.ethos_u.machine.commands import Arch, instruction_set

Values = tuple[int, ...]
"""The fields of a command in the order of its row, in the user's numbers; others are 0."""
Setting = tuple[str, Values]

WORD_BYTES = 4


class Writer:
    """Collects the words of a stream."""

    def __init__(self, arch: Arch) -> None:
        self._arch = arch
        self._last: dict[str, Values] = {}
        self.words: list[int] = []

    @property
    def offset_bytes(self) -> int:
        """Where the next command begins."""
        return WORD_BYTES * len(self.words)

    def set(self, name: str, values: Values) -> None:
        """Write a register, if it does not hold that already."""
        if self._last.get(name) != values:
            self._last[name] = values
            self.words += command(self._arch, name, values)

    def do(self, name: str, values: Values = ()) -> None:
        """Write a command that does something."""
        self.words += command(self._arch, name, values)


@lru_cache(maxsize=1 << 16)
def command(arch: Arch, name: str, values: Values) -> Values:
    """Return the words of a command. E511 to E513 if it is not one, or a value does not fit."""
    form = instruction_set(arch)[name]
    given = (*values, *(0 for _ in form.fields[len(values) :]))
    named = {item.name: value for item, value in zip(form.fields, given, strict=True)}
    packed = form.pack(named)
    return tuple(packed >> 32 * place & 0xFFFF_FFFF for place in range(form.words))
