"""Artifacts of language models: what of their inputs and outputs is the next token's.

A decoder takes one token and its position at a time, keeps keys and values as its state, and gives
a score for each token that may come next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.artifact.execution import Contents
from mizzen.artifact.host_steps import NarrowStep
from mizzen.artifact.interface import Array, TensorInfo
from mizzen.artifact.kernel_step import KernelStep
from mizzen.artifact.steps import Step
from mizzen.diagnostics import fail

Run = Callable[..., "Array | tuple[Array, ...]"]
Choice = Callable[[Array], Array]
"""Takes scores, float32 [streams, vocabulary]; gives tokens, int64 [streams]."""


@dataclass(frozen=True, slots=True)
class Decoder:
    """Which tensors of an artifact are what of a language model.

    token       one token of each stream
    position    its place in the text, from 0; None where the artifact counts itself
    scores      the output with a score for each token that may be next
    output      its index
    context     how many positions there are; None where the artifact does not say
    """

    token: TensorInfo
    position: TensorInfo | None
    scores: TensorInfo
    output: int
    context: int | None

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        return math.prod(self.scores.shape)

    def real(self, scores: Array) -> Array:
        """Return scores, which are integers where nothing dequantises them, as float32."""
        quantization = self.scores.quantization
        if quantization is None or scores.dtype.kind == "f":
            return scores.astype(np.float32)
        zero = np.int32(quantization.zero_point[0] if quantization.zero_point else 0)
        return ((scores - zero) * np.float32(quantization.scale[0])).astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class NextToken:
    """What a decoder says after a token.

    scores  float32 [streams, vocabulary]
    tokens  those chosen by them, int64 [streams]
    """

    scores: Array
    tokens: Array


def decoder_of(contents: Contents, name: str) -> Decoder:
    """Find out which tensors of an artifact are what.

    E731 for an artifact that is no decoder of single tokens.
    """
    inputs = [(index, contents.infos[index]) for index in contents.inputs]
    outputs = [contents.infos[index] for index in contents.outputs]
    whole = all(info.dtype.kind == "i" and math.prod(info.shape) == 1 for _, info in inputs)
    if not whole or not 1 <= len(inputs) <= 2 or not outputs:
        raise _no_decoder(name, [info for _, info in inputs], outputs)
    placed = [each for each in inputs if "pos" in each[1].name.lower()]
    index, position = (placed or inputs[1:] or [(None, None)])[0]
    token = next(info for _, info in inputs if info is not position)
    scores = max(outputs, key=lambda info: math.prod(info.shape))
    context = None if index is None else _context(contents, index)
    return Decoder(token, position, scores, outputs.index(scores), context)


def _context(contents: Contents, position: int) -> int | None:
    """Return how many positions the artifact's own check lets pass."""
    sizes = [size for step in contents.steps if (size := _checked(step, position)) is not None]
    return min(sizes, default=None)


def _checked(step: Step, index: int) -> int | None:
    """Return what a step checks that an index is below; None where it does not."""
    match step:
        case NarrowStep() if step.input == index:
            return step.size
        case KernelStep():
            return step.row_counts.get(index)
        case _:
            return None


def _no_decoder(name: str, inputs: list[TensorInfo], outputs: list[TensorInfo]) -> Exception:
    takes, gives = (
        ", ".join(f"{info.name} {info.dtype}{list(info.shape)}" for info in infos)
        for infos in (inputs, outputs)
    )
    return fail(
        "E731",
        f"{name} must take one token, and its position, as integers, and give a score for each "
        f"token, and takes {takes}; it gives {gives}",
        help="compile a decoder of one token at a time: forward(tokens [1, 1], position [1])",
    )


def greedy(scores: Array) -> Array:
    """Choose the token with the greatest score; of equal ones the first."""
    return np.argmax(scores, axis=-1)


def prompt_of(tokens: Any, streams: int) -> Array:
    """Return a prompt as int64 [streams, tokens]. E738 for what is no such array."""
    try:
        given = np.asarray(tokens)
        if given.size and given.dtype.kind not in "iu":
            raise ValueError
        return np.broadcast_to(given, (streams, given.shape[-1])).astype(np.int64)
    except (ValueError, IndexError, TypeError):
        raise fail(
            "E738",
            f"a prompt must be tokens as integers, [N] or [{streams}, N], and is {tokens!r:.80}",
            help="session.generate(tokenizer.encode(text))",
        ) from None


class Decoding:
    """Streams of tokens through a decoder, whose state is that of one session."""

    def __init__(self, decoder: Decoder, run: Run) -> None:
        self.decoder = decoder
        self.taken = 0
        self._run = run
        self._chosen: Array | None = None

    def after(self, prompt: Array, choose: Choice = greedy) -> Iterator[NextToken]:
        """Take a prompt, int [streams, tokens], and then each token that is chosen.

        Goes on until the caller stops or the context is full. What was chosen last before comes
        before the prompt. E732 for a prompt that the context has no room for.
        """
        if self._chosen is not None:
            last: Array = self._chosen[:, None]
            prompt = np.concatenate([last, prompt], axis=1)
        self._require_room(prompt.shape[1])
        for column in prompt.T[:-1]:
            self._take(column)
        token = prompt[:, -1]
        while self.decoder.context is None or self.taken < self.decoder.context:
            scores = self._take(token)
            self._chosen = token = np.asarray(choose(scores), np.int64)
            yield NextToken(scores, token)

    def _require_room(self, tokens: int) -> None:
        context = self.decoder.context
        room = tokens if context is None else context - self.taken
        if room < 1 and tokens:
            raise fail(
                "E732",
                f"a session must have room for another token, and all {context} positions of the "
                "context are taken",
                help="start another session, or compile with a longer cache",
            )
        if not 1 <= tokens <= room:
            chosen = 0 if self._chosen is None else 1
            last = ", with the last token that was chosen," if chosen else ""
            raise fail(
                "E732",
                f"a prompt{last} must have 1 to {room} tokens, and has {tokens}",
                help="shorten the prompt, start another session, or compile with a longer cache",
            )

    def _take(self, tokens: Array) -> Array:
        """Run the decoder on one token of each stream, and return its scores."""
        decoder, streams = self.decoder, len(tokens)
        given: list[tuple[TensorInfo, Array]] = [(decoder.token, tokens)]
        if decoder.position is not None:
            given.append((decoder.position, np.full(streams, self.taken)))
        named = {
            info.name: array.reshape(streams, *info.shape[1:]).astype(info.dtype)
            for info, array in given
        }
        outputs = self._run(**named)
        self.taken += 1
        several = outputs if isinstance(outputs, tuple) else (outputs,)
        scores = several[decoder.output]
        return decoder.real(scores.reshape(streams, -1))
