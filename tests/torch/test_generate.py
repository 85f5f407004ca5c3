"""Text of a decoder's artifact, token by token."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import mizzen
from mizzen.analysis.checking.invariants import invariants_of
from mizzen.artifact.artifact import Artifact
from mizzen.cli.main import main
from mizzen.diagnostics import MizzenError
from mizzen.torch import KeyValueCache, compile

PLACES, WIDTH, TOKENS = 6, 4, 8


class _Decoder(nn.Module):
    """Scores by what all tokens so far add up to."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(TOKENS, WIDTH), nn.Linear(WIDTH, TOKENS)
        self.cache = KeyValueCache(1, PLACES, WIDTH)

    def forward(self, tokens: Tensor, position: Tensor) -> Tensor:
        x = self.embedding(tokens)
        keys, values = self.cache(position, x[None], -x[None])
        visible = self.cache.visible(position)[:, :, None]
        return self.head(torch.where(visible, keys - values, 0.0).sum(2))


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    torch.manual_seed(3)
    calls = [(torch.tensor([[place]]), torch.tensor([place])) for place in range(PLACES)]
    return compile(_Decoder(), calls[0], "ethos-u85-128", calibration=calls)


def test_the_cache_is_carried_on_as_integers(artifact: Artifact) -> None:
    assert [state.initial.dtype for state in artifact.contents.carried] == [np.int8, np.int8]
    kinds = [type(step).__name__ for step in artifact.steps]
    assert kinds == ["NarrowStep", "NarrowStep", "RegionStep", "DequantizeStep"]


def test_a_session_goes_on_after_its_last_token(artifact: Artifact) -> None:
    whole = [*artifact.session().generate([1, 2], 4)]
    session = artifact.session()
    parts = [*session.generate([1, 2], 2)]
    parts += session.generate(np.zeros(0, np.int64), 2)
    assert [token.tokens.tolist() for token in parts] == [token.tokens.tolist() for token in whole]
    for one, other in zip(parts, whole, strict=True):
        assert np.array_equal(one.scores, other.scores)


def test_scores_are_those_of_calls_one_by_one(artifact: Artifact) -> None:
    session, (token,) = artifact.session(), artifact.session().generate([5, 3], 1)
    session.run(np.array([[5]]), np.array([0]))
    scores = session.run(np.array([[3]]), np.array([1]))
    assert np.array_equal(token.scores, np.asarray(scores).reshape(1, TOKENS))
    assert token.tokens.tolist() == [int(np.asarray(scores).argmax())]


def test_streams_of_a_batch_are_independent(artifact: Artifact) -> None:
    prompts = [[1, 2], [5, 3], [1, 2]]
    together = [token.tokens for token in artifact.session(3).generate(prompts, 4)]
    apart = [
        [token.tokens[0] for token in artifact.session().generate(prompt, 4)] for prompt in prompts
    ]
    assert np.array_equal(np.stack(together).T, np.array(apart))


def test_a_text_ends_with_the_context(artifact: Artifact) -> None:
    assert artifact.decoder.context == PLACES
    assert len([*artifact.session().generate([1, 2])]) == PLACES - 1
    with pytest.raises(MizzenError, match="must have 1 to 6 tokens, and has 7"):
        list(artifact.session().generate([1] * 7))
    session = artifact.session()
    assert len([*session.generate([1], 2)]) == 2
    with pytest.raises(MizzenError, match=r"the last token that was chosen, must have 1 to 4 .* 5"):
        list(session.generate([1] * 4))
    assert len([*session.generate([1])]) == 3
    with pytest.raises(MizzenError, match=r"E732.*all 6 positions of the context are taken"):
        list(session.generate([1]))


def test_the_command_line_continues_a_prompt(
    artifact: Artifact, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    artifact.save(path := tmp_path / artifact.name)
    wanted = [int(token.tokens[0]) for token in artifact.session().generate([1, 2])]
    words = ["generate", str(path), "--prompt-tokens", "1,2", "--tokens", "9", "--json"]
    assert main(words) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["tokens"] == wanted
    assert [each["code"] for each in answer["diagnostics"]] == ["W731"]
    assert answer["tokens_per_second"] > 0
    assert main([*words[:2], "--prompt", "a"]) == 2  # a byte beyond the vocabulary
    assert "E734" in capsys.readouterr().err
    assert main([*words[:2], "--prompt-tokens", "1,x"]) == 2
    assert "tokens are whole numbers, as in 1,2,3, not '1,x'" in capsys.readouterr().err


def test_what_is_no_decoder_is_refused() -> None:
    layer = compile(nn.Linear(4, 3), (torch.ones(1, 4),), "ethos-u85-128",
                    calibration=[torch.ones(1, 4), -torch.ones(1, 4)])  # fmt: skip
    with pytest.raises(MizzenError, match=r"E731.*must take one token"):
        _ = layer.decoder


def test_a_cache_that_is_written_at_a_position_is_no_dead_result(artifact: Artifact) -> None:
    assert [each.code for each in invariants_of(artifact)] == []


def test_a_program_for_executorch_ends_with_its_context_too(
    artifact: Artifact, tmp_path: Path
) -> None:
    artifact.save(tmp_path / "decoder.pte")
    program = mizzen.load(tmp_path / "decoder.pte")
    assert program.decoder.context == PLACES
    came, wanted = (
        [token.tokens.tolist() for token in each.session().generate([1, 2])]
        for each in (program, artifact)
    )
    assert came == wanted


@pytest.mark.parametrize("wrong", ["abc", [[1, 2, 3], [4]], [0.5], 7])
def test_a_prompt_that_is_no_tokens_is_refused(artifact: Artifact, wrong: object) -> None:
    with pytest.raises(MizzenError, match="E738"):
        artifact.session().generate(wrong)
