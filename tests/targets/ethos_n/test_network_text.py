"""Networks and queries as text."""

from __future__ import annotations

import pytest

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_n.network import Split, output_infos

from .golden import needs_golden, queries
from .network_text import parse_network, parse_query

ONE = "1 16 16 16 u8 NHWC 128 1 0.02 -1"


@needs_golden
@pytest.mark.parametrize("release", ["23", "25"])
def test_supported_operations_give_what_the_library_fills_in(release: str) -> None:
    count = 0
    for _, line, answer in queries(release):
        said, text = answer[0], answer[1:].split("|")[0].strip()
        if said == "S" and text:
            query = parse_query(line)
            info = output_infos(query.operation, query.inputs)[0]
            q = info.quantization
            shape = " ".join(map(str, info.shape))
            assert f"{shape} {info.data_type.name.lower()} {q.zero_point} {q.scale:.9g}" == text
            count += 1
    assert count > 4000


def test_a_split_names_its_outputs() -> None:
    text = f"input a {ONE}\nop b split a 3 2 12 4\noutput b.1 NHWC\n"
    network = parse_network(text, {})
    assert network[1].operation == Split(3, (12, 4))
    assert [row.info.shape[3] for row in network.outputs] == [4]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q sigmoid 1 16", "line 1 must have an integer at its end, and ends before it"),
        (f"q sigmoid {ONE} 3", "line 1 must end before '3'"),
        (f"q swish {ONE}", "line 1 must have an operation where 'swish' stands"),
        ("q d2s x 1", "line 1 must have an integer where 'x' stands"),
        ("z input", "line 1 must have `q` where 'z' stands"),
    ],
)
def test_wrong_queries(line: str, message: str) -> None:
    with pytest.raises(MizzenError) as caught:
        parse_query(line)
    assert caught.value.diagnostic.render() == f"error[E902]: {message}"


def test_wrong_networks() -> None:
    with pytest.raises(MizzenError, match="line 2 must have an operand where 'z' stands"):
        parse_network(f"input a {ONE}\nop b relu z 0 9\n", {})
    with pytest.raises(MizzenError, match="a constant whose numbers are given where 'w' stands"):
        parse_network("const w 1 1 4 4 u8 HWIO 0 1 1 -1", {})


def test_quantisations_without_a_scale() -> None:
    with pytest.raises(MizzenError) as caught:
        parse_network("input a 1 16 16 16 u8 NHWC 128 0 -1\n", {})
    assert caught.value.diagnostic.render() == (
        "error[E914]: a quantisation must have a scale, and has none\n"
        "  help give one scale, or one for each channel"
    )
