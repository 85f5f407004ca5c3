"""The table of events: one meaning a number, and those of U55 as Arm's own tables have them."""

from __future__ import annotations

from collections import Counter

import pytest

from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.counters import EVENTS, MEASURED, measured_sets


def test_numbers_and_names_are_those_of_arms_tables_of_u55() -> None:
    registers = pytest.importorskip(
        "ethosu.vela.ethos_u55_regs.ethos_u55_regs", reason="Vela is not installed"
    )
    theirs = {event.name: event.value for event in registers.pmu_event_type}
    for event in EVENTS:
        if Arch.U55 in event.archs:
            assert theirs[event.name] == event.number


def test_a_number_and_a_name_mean_one_event_on_an_architecture() -> None:
    for arch in Arch:
        there = [event for event in EVENTS if arch in event.archs]
        assert set(Counter(event.number for event in there).values()) == {1}
        assert set(Counter(event.name for event in there).values()) == {1}


def test_each_measured_event_is_counted_in_one_inference() -> None:
    for arch, inferences in ((Arch.U55, 2), (Arch.U65, 2), (Arch.U85, 1)):
        sets = measured_sets(arch)
        assert len(sets) == inferences
        assert [event.number for events in sets for event in events] == list(MEASURED)
