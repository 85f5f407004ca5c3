"""Continue a text with a language model's artifact, on the simulated NPU."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.cli.artifacts import add_data_option, load_artifact
from mizzen.cli.configuration import positive_number
from mizzen.cli.console import Answer, Console, counted
from mizzen.cli.layout import count, duration, fields
from mizzen.cli.placement import artifact_text
from mizzen.diagnostics import Diagnostic, Severity, fail
from mizzen.workers import use_one_thread

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact
    from mizzen.generation import Tokenizer
    from mizzen.report.cost import InferenceTime

SUMMARY = "continues a text with a language model on this machine"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "artifact",
        metavar="ARTIFACT",
        help="a compiled decoder, which takes one token and its position and keeps its cache",
    )
    add_data_option(parser)
    parser.add_argument(
        "--accelerator-config", metavar="NAME", help="fail if the artifact is for another NPU"
    )
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--prompt", metavar="TEXT", help="the text to continue")
    asked.add_argument(
        "--prompt-tokens", metavar="N[,N...]", type=_tokens, help="the same as tokens"
    )
    parser.add_argument(
        "--tokens",
        metavar="N",
        type=positive_number,
        default=64,
        help="how many tokens to give at most (default: 64)",
    )
    parser.add_argument(
        "--tokenizer",
        metavar="FILE",
        type=Path,
        help="the tokenizer.json of the checkpoint (default: bytes, for a vocabulary of up to 256)",
    )
    parser.add_argument(
        "--top-k",
        metavar="K",
        type=positive_number,
        default=1,
        help="draw from the K best tokens (default: 1, the best)",
    )
    parser.add_argument(
        "--temperature",
        metavar="T",
        type=float,
        default=1.0,
        help="what scores are divided by before drawing (default: 1)",
    )
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="of the draws")


def _tokens(text: str) -> list[int]:
    words = text.split(",")
    if not all(word.isascii() and word.isdecimal() for word in words):
        raise argparse.ArgumentTypeError(f"tokens are whole numbers, as in 1,2,3, not {text!r}")
    return list(map(int, words))


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Continue the prompt, and say how long a token takes here and on the NPU."""
    from mizzen.generation import Sampling, tokenizer_of

    use_one_thread()
    artifact = load_artifact(options, Path(options.artifact))
    console.note(artifact_text(artifact, width=console.width))
    decoder = artifact.decoder
    choose = Sampling(options.top_k, options.temperature, options.seed)
    prompt: list[int] | None = options.prompt_tokens
    tokenizer: Tokenizer | None = None
    if prompt is None or options.tokenizer is not None:
        tokenizer = tokenizer_of(options.tokenizer, decoder.vocabulary)
        prompt = prompt or _encoded(tokenizer, options.prompt)
    given: list[int] = []
    start = time.perf_counter()
    with console.progress(f"reading a prompt of {count(len(prompt), 'token')}") as show:
        done = counted(show, options.tokens, "token")
        for token in artifact.session().generate(prompt, options.tokens, choose):
            given.append(int(token.tokens[0]))
            done(len(given))
    seconds = time.perf_counter() - start
    text = None if tokenizer is None else tokenizer.decode([*prompt, *given])
    taken = len(prompt) + len(given) - 1
    return Answer(
        _document(options, artifact, prompt, given, text, seconds / taken),
        _text(artifact, prompt, given, text, seconds / taken, console),
        diagnostics=[*artifact.notes, *_full(decoder.context, options.tokens, given)],
    )


def _encoded(tokenizer: Tokenizer, text: str) -> list[int]:
    tokens = tokenizer.encode(text)
    if not tokens:
        raise fail(
            "E734",
            "a prompt must have a token at least, and is empty",
            help="begin with a word, or give the first token by --prompt-tokens",
        )
    return tokens


def _time(artifact: Artifact) -> InferenceTime | None:
    """Return what a token takes on the device, where the compilation's report says it."""
    report = artifact.report
    return None if report is None else report.time


def _document(
    options: argparse.Namespace,
    artifact: Artifact,
    prompt: list[int],
    given: list[int],
    text: str | None,
    seconds: float,
) -> dict[str, object]:
    time = _time(artifact)
    return {
        "artifact": str(options.artifact),
        "accelerator": artifact.accelerator,
        "prompt_tokens": prompt,
        "tokens": given,
        "text": text,
        "host_seconds_a_token": seconds,
        "cycles_a_token": None if time is None else time.cycles,
        "tokens_per_second": None if time is None else time.inferences_per_second,
    }


def _text(
    artifact: Artifact,
    prompt: list[int],
    given: list[int],
    text: str | None,
    seconds: float,
    console: Console,
) -> str:
    time = _time(artifact)
    facts = [
        ("tokens", f"{len(given)} after a prompt of {len(prompt)}"),
        ("this machine", f"{duration(seconds)} a token"),
    ]
    if time is not None and time.seconds:
        facts.append(
            (
                "estimate",
                f"{time.cycles:,} cycles, {duration(time.seconds)} a token, "
                f"{time.inferences_per_second:,.1f} tokens per second",
            )
        )
    shown = " ".join(map(str, given)) if text is None else text
    return f"{shown}\n\n{fields(facts, width=console.width)}"


def _full(context: int | None, asked: int, given: list[int]) -> list[Diagnostic]:
    """Warn where the context ended before the tokens that were asked for."""
    if context is None or len(given) == asked:
        return []
    return [
        Diagnostic(
            "W731",
            f"{asked} tokens were asked for, and the context of {context} positions ended after "
            f"{len(given)}",
            Severity.WARNING,
            help="compile the decoder with a longer cache",
        )
    ]
