"""Texts of drivers and runtimes: what is recognised, and the cause that is named."""

from __future__ import annotations

import re

import pytest

from mizzen.analysis.doctor import doctor
from mizzen.analysis.doctor.causes import TEXTS as CAUSE_TEXTS
from mizzen.analysis.doctor.causes import Cause
from mizzen.analysis.doctor.log import KEPT_SIGHTINGS, read_log
from mizzen.analysis.doctor.messages import MESSAGES, Source
from mizzen.analysis.log_text import LONGEST_LINE
from mizzen.package.firmware import firmware_folder

from .logs import PASTED, RECORDED, TEXTS, PastedLog


@pytest.mark.parametrize("pasted", PASTED + RECORDED, ids=lambda pasted: pasted.thread)
def test_the_first_verdict_of_a_pasted_log_is_its_cause(pasted: PastedLog) -> None:
    diagnosis = doctor(log=pasted.text)
    first = diagnosis.verdicts[0].cause.value if diagnosis.verdicts else None
    assert first == pasted.cause
    assert bool(diagnosis.failures) == pasted.failed
    if pasted.failed and pasted.cause is None:
        assert [failure.code for failure in diagnosis.failures] == ["E475"]


@pytest.mark.parametrize(("text", "cause", "meaning"), TEXTS, ids=[row[0] for row in TEXTS])
def test_a_text_is_read_with_its_numbers(text: str, cause: str | None, meaning: str) -> None:
    (sighting,) = read_log(text).sightings
    assert sighting.meaning == meaning
    assert (sighting.message.cause and sighting.message.cause.value) == cause


def test_every_row_of_the_table_is_seen_in_some_log() -> None:
    texts = [pasted.text for pasted in PASTED] + [row[0] for row in TEXTS]
    seen = {id(each.message) for text in texts for each in read_log(text).sightings}
    unseen = [message.pattern.pattern for message in MESSAGES if id(message) not in seen]
    assert not unseen


def test_every_text_of_the_c_runtime_is_known() -> None:
    source = (firmware_folder() / "runtime" / "status_text.c").read_text()
    texts = re.findall(r'"([^"]+)"', source.replace('#include "mizzen.h"', ""))
    assert len(texts) > 10
    for text in texts:
        (sighting,) = read_log(f"mizzen: step 0: {text}").sightings
        assert sighting.source is Source.MIZZEN, text
        assert sighting.message.failure == (text != "all is well"), text


def test_a_text_that_users_firmware_prints_itself_is_known() -> None:
    text = "a file of weights or a model that is of another program"
    (verdict,) = doctor(log=f"mz_open_apart: {text}").verdicts
    assert verdict.cause is Cause.APART_OF_ANOTHER


def test_every_cause_has_words() -> None:
    assert set(CAUSE_TEXTS) == set(Cause)


def test_colours_and_time_stamps_do_not_hide_a_text() -> None:
    log = read_log(
        "\x1b[0m[00:00:01.234,000] \x1b[1;31m<err> app: NPU inference timed out.\x1b[0m\r\n"
    )
    assert [each.cause for each in log.sightings] == [Cause.NO_INTERRUPT]


def test_the_first_failure_counts_not_what_follows_from_it() -> None:
    log = "Didn't find op for builtin opcode 'SOFTMAX'\nInvoke() called after initialization failed"
    assert [verdict.cause for verdict in doctor(log=log).verdicts] == [Cause.OPERATOR_MISSING]


def test_a_status_of_another_kind_is_no_register() -> None:
    assert read_log("Execution of method forward failed with status 0x804").status is None
    assert read_log("Node ethos-u (number 0) failed to invoke with status 1").status is None


@pytest.mark.parametrize(
    "line",
    [
        "E: NPU status=0x00000804, qread=288, cmd_end_reached=0",
        "E: NPU status=0x00000804, qread=0x120, cmd_end_reached=0",
        "STATUS 0x804 QREAD 288",
    ],
)
def test_registers_are_read_in_each_form(line: str) -> None:
    log = read_log(line)
    assert (log.status, log.qread_bytes) == (0x804, 288)


def test_any_bytes_are_a_log() -> None:
    noise = "".join(chr(code) for code in range(1, 0x300)) + "A" * (10 * LONGEST_LINE)
    assert not read_log(noise).failed


def test_numbers_that_no_log_has_end_nothing() -> None:
    text = f"Ethos-U config. product=9, macs_per_cc={'9' * 400}\nbase_addr[1]=zz, size=1"
    assert doctor(log=text).verdicts == ()


def test_a_log_of_many_tries_is_short_and_quick_to_read() -> None:
    text = "NPU inference timed out.\nInvoke failed\n" * 20_000
    log = read_log(text)
    assert [each.line for each in log.sightings] == [1, 2, 3, 4, 5, 6]
    (verdict,) = doctor(log=text).verdicts
    assert len(verdict.evidence) == KEPT_SIGHTINGS
