"""How numbers and tables are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.cli.layout import count, duration, exact_size, fields, read_size, share, size, table


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1.0 KiB"),
        (393216, "384.0 KiB"),
        (1024 * 1024, "1.00 MiB"),
    ],
)
def test_sizes_are_powers_of_two(size_bytes: int, text: str) -> None:
    assert size(size_bytes) == text


def test_a_size_that_is_rounded_has_its_bytes_beside_it() -> None:
    assert [exact_size(bytes_) for bytes_ in (1023, 23_041)] == [
        "1023 bytes",
        "22.5 KiB (23,041 bytes)",
    ]


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0", 0),
        ("393216", 393216),
        ("384K", 393216),
        ("384KiB", 393216),
        ("2m", 2 << 20),
        ("7b", 7),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str, size_bytes: int) -> None:
    assert read_size(text) == size_bytes


@pytest.mark.parametrize("text", ["", "K", "-1", "1.5M", "3G", "1 K", "0x10", "²K"])
def test_other_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^" + (text.replace(".", r"\.") or "$")):
        read_size(text)


def test_only_all_is_a_hundred_percent_and_only_nothing_is_zero() -> None:
    assert share(3, 3) == "100 %"
    assert share(0, 3) == "0 %"
    assert share(999_999, 1_000_000) == "99.9 %"
    assert share(1, 1_000_000) == "0.1 %"
    assert share(1, 3) == "33.3 %"


def test_counts_and_durations() -> None:
    assert count(1, "operator") == "1 operator"
    assert count(2048, "operator") == "2,048 operators"
    assert [duration(t) for t in (12.34, 0.0123, 0.000456)] == ["12.3 s", "12.3 ms", "456 us"]


def test_a_table_aligns_numbers_right_and_wraps_its_last_column() -> None:
    rows = [("1", "CONV_2D", "on the NPU"), ("12", "SOFTMAX", "the beta of a softmax must be 1.0")]
    text = table(rows, width=44, headings=("#", "operator", "reason"), right=(0,))
    assert text == (
        "   #  operator  reason\n"
        "   1  CONV_2D   on the NPU\n"
        "  12  SOFTMAX   the beta of a softmax must\n"
        "                be 1.0"
    )


def test_fields_wrap_in_their_column() -> None:
    text = fields([("memory", "SRAM 3 KiB, flash 12 KiB and so on"), ("x", "")], width=40)
    assert text == "  memory  SRAM 3 KiB, flash 12 KiB and\n          so on\n  x"


def test_an_empty_table_is_empty() -> None:
    assert table([], width=80) == ""


@given(
    st.lists(st.tuples(st.text("ab-c ", max_size=12), st.text("de f", max_size=90)), max_size=5),
    st.integers(40, 100),
)
def test_no_line_is_wider_than_asked(rows: list[tuple[str, str]], width: int) -> None:
    words_fit = all(len(word) <= 24 for _, text in rows for word in text.split())
    lines = table(rows, width=width).split("\n")
    assert not words_fit or all(len(line) <= width for line in lines)
