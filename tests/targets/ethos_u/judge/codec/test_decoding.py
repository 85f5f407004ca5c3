"""Weight streams written bit by bit, and streams of all kinds against Arm's codec."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mizzen
from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.judge.codec import decoding, numbers
from mizzen.targets.ethos_u.judge.codec.decoding import decode

from .arms_codec import codec_or_skip, decoded, encoded

Values = npt.NDArray[np.int16]


def stream(text: str) -> bytes:
    """Return the bytes of fields ``value:bits``, the lowest bit first, and ones after them."""
    bits = ""
    for part in text.split():
        value, width = map(int, part.split(":"))
        assert value < 1 << width
        bits += f"{value:0{width}b}"[::-1]
    bits += "1" * (-len(bits) % 8)
    return bytes(int(bits[at : at + 8][::-1], 2) for at in range(0, len(bits), 8))


def header(count: int, divisor: int, truncated: int = 0, runs: int = 6) -> str:
    """Return the fields of a slice's header without a mapping."""
    return f"{runs}:3 {count - 1}:15 {divisor}:3 {truncated}:1 0:1 "


def mapped(count: int, divisor: int, mapping: str, truncated: int = 0, runs: int = 6) -> str:
    """Return the fields of a slice's header with a mapping: offset, palette's size less one, ..."""
    return header(count, divisor, truncated, runs).removesuffix("0:1 ") + f"1:1 {mapping} "


END = " 7:3"
PLAIN = "0:5 0:5 6:3"
"""A mapping: no offset, no palette, raw symbols of eight bits."""


class TestByHand:
    """The code of a weight is its magnitude, and the sign below it: 2 is 1, 3 is -1, 4 is 2."""

    @pytest.mark.parametrize(
        ("fields", "weights"),
        [
            (mapped(2, 7, PLAIN) + "5:8 254:8", [-2, 127]),
            (mapped(2, 7, "9:5 0:5 6:3") + "0:8 254:8", [-4, -131]),
            # Two bits choose from three entries, the fourth symbol is what follows the palette.
            (mapped(4, 7, "0:5 2:5 7:3 5:9 9:9 511:9") + "0:2 1:2 2:2 3:2", [-2, -4, -255, 0]),
            # A unary bit that is set has a second one, after all first ones.
            (mapped(3, 0, PLAIN) + "5:12 0:2", [0, 0, 0]),
            (mapped(3, 1, PLAIN) + "5:12 0:2 0:1 1:1 1:1", [1, 0, -1]),
            # 2 goes on with the next first bit: 2 + 2 + 1, and then 0.
            (mapped(2, 0, PLAIN) + "7:12 3:3", [-2, 0]),
            # Truncated, it does not: 2, 2, 1, 0.
            (mapped(4, 0, PLAIN, truncated=1) + "7:12 3:3", [1, 1, 0, 0]),
            # Remainders come after the unary bits of the next chunk.
            (mapped(13, 1, PLAIN) + "0:12 1:12 1:1" + 12 * " 1:1" + " 0:1", [0] * 12 + [2]),
        ],
    )
    def test_symbols(self, fields: str, weights: list[int]) -> None:
        (made,) = decode([stream(fields + END)])
        assert made.dtype == np.int16
        assert made.tolist() == weights

    def test_zero_runs(self) -> None:
        """One run of 1 before, 0 between, 5 after: in unary and two bits each."""
        mapping = "2:5 0:5 6:3"
        fields = mapped(2, 1, mapping, runs=2) + "0:12 4:12 0:1 1:1 1:2 0:2 1:2"
        assert decode([stream(fields + END)])[0].tolist() == [0, 1, -1, 0, 0, 0, 0, 0]

    @pytest.mark.parametrize("divisor", range(6))
    def test_divisors_of_runs(self, divisor: int) -> None:
        """Runs of 0 before and of twice the divisor's power, and 1, after, chunks of 8 or 12."""
        first = f"0:12 6:{8 if divisor >= 3 else 12} "
        fields = mapped(1, 0, "2:5 0:5 6:3", runs=divisor) + first + f"0:{divisor} 1:{divisor}"
        data = stream(fields.replace(" 0:0 1:0", "") + END)
        assert decode([data])[0].tolist() == [1] + [0] * ((2 << divisor) + (divisor > 0))

    def test_raw_symbols_and_zero_runs(self) -> None:
        fields = mapped(1, 7, PLAIN, runs=0) + "1:12 3:8"
        assert decode([stream(fields + END)])[0].tolist() == [0, -1]

    def test_a_mapping_stays_until_the_next(self) -> None:
        fields = mapped(1, 7, "9:5 0:5 6:3") + "0:8 " + header(1, 7) + "1:8"
        assert decode([stream(fields + END)])[0].tolist() == [-4, 5]

    def test_a_part_begins_at_a_byte(self) -> None:
        one = stream(mapped(1, 7, PLAIN) + "5:8" + END)
        assert decode([one + one])[0].tolist() == [-2, -2]

    def test_streams_are_apart(self) -> None:
        one = stream(mapped(1, 7, PLAIN) + "5:8" + END)
        two = stream(mapped(2, 7, PLAIN) + "7:8 9:8" + END)
        assert [each.tolist() for each in decode([one, b"\xff", two])] == [[-2], [], [-3, -4]]
        assert decode([]) == []


class TestDamaged:
    @pytest.mark.parametrize(
        ("data", "how"),
        [
            (b"", "ends within the header of a slice"),
            (stream(mapped(1, 7, PLAIN) + "5:8 6:3 0:1"), "ends within the header of a slice"),
            (stream(mapped(40, 7, PLAIN) + "5:8"), "ends within a slice"),
            (stream(mapped(40, 1, PLAIN) + "5:12"), "ends within a slice"),
            (stream(mapped(40, 1, PLAIN, runs=1) + "5:12"), "ends within a slice"),
        ],
    )
    def test_it_is_said_how(self, data: bytes, how: str) -> None:
        with pytest.raises(MizzenError) as caught:
            decode([b"\xff", data])
        assert str(caught.value) == (
            f"error[E624]: a weight stream must be whole, and this one {how}\n"
            "  rule compressed weight streams of Ethos-U\n"
            "  help the artifact is damaged; compile it again"
        )

    @pytest.mark.parametrize(
        "fields",
        [
            header(1 << 15, 7) * 9,  # raw symbols before any mapping: they take no bits
            mapped(1, 0, PLAIN, runs=5) + "0:12" + 1050 * " 255:8" + " 0:8 0:5 0:5",
        ],
    )
    def test_no_stream_has_more_weights_than_so_many(
        self, fields: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bomb = stream(fields + END)
        monkeypatch.setattr(numbers, "LARGEST_STREAM", 9 << 15)
        assert len(decode([bomb])[0]) > 8 << 15
        monkeypatch.setattr(numbers, "LARGEST_STREAM", 8 << 15)
        with pytest.raises(MizzenError, match=r"E624.* this one has more than 262144 weights"):
            decode([bomb])


@st.composite
def weights(draw: st.DrawFn, most: int = 1000) -> Values:
    """Draw weights of some spread, some of them zero, and whole stretches of zeros."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread = draw(st.sampled_from([0.3, 2.0, 8.0, 30.0, 200.0]))
    values = generator.normal(
        draw(st.sampled_from([0, 5, -40])), spread, draw(st.integers(1, most))
    )
    values[generator.random(len(values)) < draw(st.sampled_from([0, 0.3, 0.95, 1]))] = 0
    start, stop = sorted(draw(st.tuples(*2 * [st.integers(0, most)])))
    values[start:stop] = 0
    return values.round().clip(-255, 255).astype(np.int16)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Draw bytes, or a stream that is cut, or has other bits in its first bytes or anywhere."""
    if draw(st.booleans()):
        return draw(st.binary(max_size=60))
    data = bytearray(encoded(draw(weights(300))))
    for _ in range(draw(st.integers(0, 4))):
        last = min(len(data), draw(st.sampled_from([4, 8, 1000]))) - 1
        data[draw(st.integers(0, last))] ^= 1 << draw(st.integers(0, 7))
    return bytes(data[: draw(st.integers(0, len(data)) | st.just(len(data)))])


@settings(max_examples=80, deadline=None)
@given(st.lists(weights(), min_size=1, max_size=4))
def test_what_arms_encoder_makes(drawn: list[Values]) -> None:
    codec_or_skip()
    streams = [encoded(each) for each in drawn]
    for ours, data, expected in zip(decode(streams), streams, drawn, strict=True):
        assert same(ours, decoded(data))
        assert np.array_equal(ours[: len(expected)], expected)


def decoded_or_code(data: bytes) -> Values | str:
    try:
        return decode([data])[0]
    except MizzenError as error:
        return error.diagnostic.code


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_streams_are_refused_where_arms_codec_refuses_them(data: st.DataObject) -> None:
    codec_or_skip()
    drawn = data.draw(damaged())
    assert same(decoded_or_code(drawn), decoded(drawn))


@pytest.mark.parametrize("field", range(7))
def test_a_stream_may_end_with_the_first_field_of_a_header(field: int) -> None:
    codec_or_skip()
    data = stream(mapped(3, 7, "0:5 0:5 1:3") + f"2:3 3:3 4:3 {field}:3")
    assert len(data) * 8 == 48
    assert same(decoded_or_code(data), decoded(data))
    assert decode([data])[0].tolist() == [1, -1, 2]


def same(ours: Values | str, arms: Values | None) -> bool:
    """Tell whether both are the same weights, or both refused."""
    if isinstance(ours, str) or arms is None:
        return isinstance(ours, str) and ours == "E624" and arms is None
    return np.array_equal(ours, arms)


@pytest.mark.parametrize(
    ("name", "accelerator"),
    [
        ("person_detect.tflite", "ethos-u55-128"),
        ("kws_ref_model.tflite", "ethos-u65-512"),
        ("kws_ref_model.tflite", "ethos-u85-256"),
    ],
)
def test_streams_of_networks(
    name: str,
    accelerator: str,
    model_file: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    codec_or_skip()
    artifact: Any = mizzen.compile(model_file(name), accelerator, prove="off")
    streams: list[bytes] = []

    def kept(those: list[bytes]) -> list[Values]:
        streams.extend(those)
        return decode(those)

    monkeypatch.setattr(decoding, "decode", kept)
    artifact.run(*(np.zeros(each.shape, each.dtype) for each in artifact.inputs))
    assert streams
    for data, ours in zip(streams, decode(streams), strict=True):
        assert same(ours, decoded(data))
