"""Values of files beside what models say: the first that is wrong is told of, nothing is bent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.documents import Form, Syntax, parse
from mizzen.documents.checking import keys_of, section_in
from mizzen.documents.model import Identifier, Limits, Line, Many, Must, Section, Some, Text, key

FORM = Form("a net's file", Syntax.JSON, "E561", "E562", "E563")


class Colour(Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Part(Section):
    """A table in another."""

    size: Annotated[int, Limits(ge=0, lt=16, multiple_of=4)] = 4


class Net(Section):
    """Everything that a key may be."""

    name: Identifier
    at: Annotated[int, Limits(ge=0, le=255), Must("be an address", hex)] = 0
    rate: Annotated[float, Limits(gt=0, le=10)] = 1.0
    on: bool = True
    colour: Colour = Colour.RED
    mode: Literal["fast", "small"] = "fast"
    place: tuple[int, int] | None = None
    note: Line = ""
    page: Text = ""
    parts: Many[Part] = ()
    words: Some[str] = ("a",)
    by_name: Annotated[Mapping[Identifier, int], Limits(max_length=2)] | None = None
    layer: int | str = 0
    schema_: str = key(default="", name="schema")


class Open(Section):
    """A table with more than is read."""

    OTHERS = True
    low: int
    high: int

    def problem(self) -> str | None:
        return "have low below high" if self.low >= self.high else None


def test_values_are_those_of_the_file() -> None:
    document: dict[str, Any] = {
        "name": "net", "at": 16, "rate": 2, "on": False, "colour": "blue", "mode": "small",
        "place": [1, 2], "note": "a note", "page": "two\nlines", "parts": [{"size": 8}, {}],
        "words": ["x"], "by_name": {"b": 2}, "layer": "conv", "schema": "s",
    }  # fmt: skip
    net = parse(Net, json.dumps(document).encode(), "net.json", FORM)
    assert net.as_dict()["parts"] == ({"size": 8}, {"size": 4})
    assert (net.rate, type(net.rate)) == (2.0, float)
    assert (net.colour, net.place, net.words) == (Colour.BLUE, (1, 2), ("x",))
    assert net.parts == (Part(size=8), Part())
    assert (net.by_name, net.layer, net.schema_) == ({"b": 2}, "conv", "s")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": "1"}, "name: must be letters, digits and _, a letter first, not '1'"),
    ({"name": "a\n"}, "name: must be letters, digits and _, a letter first, not 'a\\n'"),
    ({"name": "a" * 65}, "name: must have at most 64 characters, not 65"),
    ({"at": 256}, "at: must be an address, not 0x100"),
    ({"at": "1"}, "at: must be an address, not '1'"),
    ({"at": 1.0}, "at: must be an address, not 1.0"),
    ({"at": True}, "at: must be an address, not True"),
    ({"rate": 0}, "rate: must be a number above 0 to 10, not 0"),
    ({"rate": float("nan")}, "rate: must be a number above 0 to 10, not nan"),
    ({"rate": 10**400}, "rate: must be a number above 0 to 10, not 1" + "0" * 59 + "..."),
    ({"on": 1}, "on: must be true or false, not 1"),
    ({"colour": "green"}, "colour: must be one of red, blue, not 'green'"),
    ({"colour": []}, "colour: must be one of red, blue, not []"),
    ({"mode": "slow"}, "mode: must be one of fast, small, not 'slow'"),
    ({"place": [1]}, "place: must have 2 numbers, not 1"),
    ({"place": [1, None]}, "place[1]: must be a whole number, not None"),
    ({"note": "a\u202eb"}, "note: must be a text on one line, not 'a\\u202eb'"),
    ({"note": "\ud800"}, "note: must be a text on one line, not '\\ud800'"),
    ({"page": "a\tb"}, "page: must be a text, not 'a\\tb'"),
    ({"layer": "\ud800"}, "layer: must be a text, not '\\ud800'"),
    ({"layer": 1.5}, "layer: must be a whole number or be a text, not 1.5"),
    ({"parts": {}}, "parts: must be a list, not {}"),
    ({"parts": [{"size": 6}]}, "parts[0].size: must be a multiple of 4, not 6"),
    ({"parts": [{"size": 16}]}, "parts[0].size: must be a whole number of 0..15, not 16"),
    ({"parts": [[]]}, "parts[0]: must be tables [[parts]], not []"),
    ({"parts": [{}] * 257}, "parts: must have at most 256 entries, not 257"),
    ({"words": []}, "words: must be a list of at least one, not []"),
    ({"by_name": {"a b": 1}}, "by_name.a b: must be letters, digits and _, a letter first, not "
     "'a b'"),
    ({"by_name": dict.fromkeys("abc", 1)}, "by_name: must have at most 2 entries, not 3"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "said"), WRONG)
def test_the_first_wrong_value_is_told_of(change: dict[str, Any], said: str) -> None:
    form = Form("a net's file", Syntax.JSON, "E561", "E562", wording="{name} {place}: must {must}")
    with pytest.raises(MizzenError) as caught:
        parse(Net, {"name": "net", **change}, "net.toml", form)
    assert caught.value.diagnostic.message == f"net.toml {said}"


def test_keys_are_those_of_the_section() -> None:
    with pytest.raises(MizzenError) as caught:
        parse(Net, {"name": "net", "parts": [{"width": 1}]}, "net.toml", FORM)
    assert str(caught.value) == (
        "error[E563]: net.toml: a key must be one of size, not parts[0].width"
    )
    with pytest.raises(MizzenError, match=r"net\.toml: name must be given, not left out"):
        parse(Net, {}, "net.toml", FORM)
    with pytest.raises(MizzenError, match=r"net\.json: the file must have low below high"):
        parse(Open, {"low": 2, "high": 1}, "net.json", FORM)
    assert parse(Open, {"low": 1, "high": 2, "more": []}, "net.json", FORM) == Open(low=1, high=2)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*keys_of(Net), "schema", "more"]), JSON))
def test_whatever_comes_is_a_net_or_an_error(document: dict[str, Any]) -> None:
    try:
        net = parse(Net, {"name": "net"} | document, "net.json", FORM)
    except MizzenError:
        return
    assert isinstance(net.rate, float)
    assert type(net.at) is int


def test_tables_in_keys_are_known() -> None:
    assert section_in(keys_of(Net)["parts"].kind) is Part
    assert section_in(keys_of(Net)["place"].kind) is None
