"""Text as tokens: bytes, or what a `tokenizer.json` of the package `tokenizers` says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from mizzen.diagnostics import fail

BYTES = 256


class Tokenizer(Protocol):
    """Turns text into tokens and back."""

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text. E734 for one that has none."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens; a character that is not whole yet is left out."""
        ...


@dataclass(frozen=True, slots=True)
class ByteTokenizer:
    """A token for each byte of UTF-8, up to a vocabulary's size."""

    vocabulary: int

    def encode(self, text: str) -> list[int]:
        """Return the bytes of a text. E734 for one that the vocabulary has not."""
        tokens = [*text.encode()]
        beyond = [token for token in tokens if token >= self.vocabulary]
        if beyond:
            raise fail(
                "E734",
                f"a prompt for a vocabulary of {self.vocabulary} bytes must have none above "
                f"{self.vocabulary - 1}, and has {beyond[0]}",
                help="write the prompt in ASCII",
            )
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of bytes."""
        return bytes(tokens).decode(errors="ignore")


@dataclass(frozen=True, slots=True)
class FileTokenizer:
    """A tokenizer of the package `tokenizers`."""

    tokenizer: Any

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text."""
        return [*self.tokenizer.encode(text).ids]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens."""
        return str(self.tokenizer.decode([*tokens])).removesuffix("\N{REPLACEMENT CHARACTER}")


def tokenizer_of(path: Path | None, vocabulary: int) -> Tokenizer:
    """Return the tokenizer of a file, or of bytes where there is none.

    E735 where a vocabulary is no set of bytes and no file is given, E736 where `tokenizers` is not
    installed, E737 for a file that it does not read.
    """
    if path is not None:
        return _of_file(path)
    if vocabulary > BYTES:
        raise fail(
            "E735",
            f"a vocabulary of {vocabulary} tokens is not one of bytes, so its tokenizer must be "
            "given",
            help="--tokenizer tokenizer.json, the file beside the checkpoint",
        )
    return ByteTokenizer(vocabulary)


def _of_file(path: Path) -> Tokenizer:
    if find_spec("tokenizers") is None:
        raise fail(
            "E736",
            f"{path.name} is read by the package `tokenizers`, which is not installed",
            help="pip install tokenizers",
        )
    package: Any = import_module("tokenizers")
    try:
        return FileTokenizer(package.Tokenizer.from_file(str(path)))
    except Exception as error:  # the package raises a plain Exception for every file that is wrong
        raise fail(
            "E737",
            f"{path} must be a tokenizer.json that the package `tokenizers` reads: {error}",
            help="give the tokenizer.json of the checkpoint",
        ) from error
