"""How firmware, runtimes and Linux print what an inference took: one row for each text.

Names of groups say what stands in the text: `n` a number, `per` the same for one inference, `name`
an event's or operator's, `index` a counter's or part's, from 0. Every format names the public
source that prints it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class Format(Enum):
    """Who prints it; the value is what people call it, and where it is printed."""

    MIZZEN = ("Mizzen's counter lines", "firmware of `mizzen compile --instrument`")
    KIT = (
        "ML embedded evaluation kit",
        "Arm ml-embedded-evaluation-kit, source/profiler/Profiler.cc; alifsemi and Nuvoton forks",
    )
    KIT_OLD = (
        "ML embedded evaluation kit before 22.05",
        "Arm ml-embedded-evaluation-kit, docs/use_cases; arm/mlia-ethos-u reads both",
    )
    KIT_STATISTICS = (
        "ML embedded evaluation kit, statistics",
        "Arm ml-embedded-evaluation-kit, Profiler::PrintProfilingResult with printFullStat",
    )
    EXECUTORCH = (
        "ExecuTorch's arm_executor_runner",
        "pytorch/executorch, examples/arm/executor_runner/arm_perf_monitor.cpp",
    )
    DELEGATES = (
        "ExecuTorch's report by delegate",
        "pytorch/executorch, arm_perf_monitor.cpp with ET_ARM_ETHOSU_PER_DELEGATE_PROFILING",
    )
    INSPECTOR = (
        "table of ExecuTorch's Inspector",
        "pytorch/executorch, devtools/inspector; issue 17651",
    )
    ETDUMP = ("ETDump", "pytorch/executorch, devtools/etdump/etdump_schema_flatcc.fbs")
    ZEPHYR = (
        "Zephyr's tflite-ethosu sample",
        "zephyrproject-rtos/zephyr, samples/modules/tflite-micro/tflm_ethosu",
    )
    CORE_PLATFORM = (
        "Ethos-U core platform",
        "Arm ethos-u-core-software, lib/layer_by_layer_profiler and message_handler",
    )
    TFLM = (
        "MicroProfiler::Log",
        "tensorflow/tflite-micro, tensorflow/lite/micro/micro_profiler.cc",
    )
    TFLM_CSV = ("MicroProfiler::LogCsv", TFLM[1])
    TFLM_TAGS = ("MicroProfiler::LogTicksPerTagCsv", TFLM[1])
    LINUX = (
        "Linux, inference_runner",
        "Arm ethos-u-linux-driver-stack, driver_library, apps/inference_runner",
    )
    NXP = ("Linux, NXP's delegate", "nxp-imx/tflite-ethosu-delegate, tflite_ethosu_delegate.cc")
    HIMAX = (
        "Himax WiseEye2",
        "HimaxWiseEyePlus/Seeed_Grove_Vision_AI_Module_V2, scenario_app, cvapp_*.cpp",
    )

    @property
    def title(self) -> str:
        """What people call it."""
        return self.value[0]

    @property
    def source(self) -> str:
        """Where it is printed: repository and file."""
        return self.value[1]


class What(Enum):
    """What a text says of a measurement.

    BEGIN       that another one follows
    CYCLES      cycles of the NPU
    COUNT       of an event, by its name
    COUNTER     of the counter with a number, which another text names
    COUNTERS    of all counters in order
    NAMES       what the counters with numbers are of
    INFERENCES  how many the figures are the sum of
    OPERATOR    what an operator took, in ticks of the processor's timer
    NPU_TIME    the NPU's operator, in cycles of the NPU
    WHOLE       what the whole inference took, in cycles of the processor
    DELEGATE    cycles, by the number of a delegate
    RUNS        of the NPU, by the number of a delegate
    HELD        of a counter, by the number of a delegate
    LINE        one of Mizzen's lines, which is a measurement by itself
    """

    BEGIN = "begin"
    CYCLES = "cycles"
    COUNT = "count"
    COUNTER = "counter"
    COUNTERS = "counters"
    NAMES = "names"
    INFERENCES = "inferences"
    OPERATOR = "operator"
    NPU_TIME = "npu"
    WHOLE = "whole"
    DELEGATE = "delegate"
    RUNS = "runs"
    HELD = "held"
    LINE = "line"


@dataclass(frozen=True, slots=True)
class Row:
    """A text, and what it says."""

    format: Format
    what: What
    pattern: re.Pattern[str]


def _row(format: Format, what: What, pattern: str) -> Row:
    return Row(format, what, re.compile(pattern))


_N = r"(?P<n>\d{1,20})(?!\d)"
_PER = r" +\((?P<per>\d{1,20}(?:\.\d+)?) per inference\)"
_NAME = r"(?:ETHOSU_PMU_)?(?P<name>[A-Z][A-Z0-9_]{2,60})"
_TAG = r"(?P<name>[A-Za-z_][\w:.+-]{0,80})"
_DELEGATE = r"Ethos-U delegate (?P<index>\d{1,4})"
_KIT = rf"NPU {_NAME}"

ROWS: tuple[Row, ...] = (
    _row(Format.MIZZEN, What.LINE, r"mizzen-counters: (?P<name>.+)$"),
    # ExecuTorch; a figure for one inference stands in brackets in newer ones.
    _row(Format.EXECUTORCH, What.INFERENCES, rf"NPU Inferences : {_N}"),
    _row(Format.EXECUTORCH, What.CYCLES, rf"ethosu_pmu_cycle_cntr : *{_N}{_PER}"),
    _row(Format.EXECUTORCH, What.COUNTER,
         rf"ethosu_pmu_cntr(?P<index>\d) : *{_N}{_PER}"),
    _row(Format.EXECUTORCH, What.CYCLES, rf"perf_monitor.*ethosu_pmu_cycle_cntr : *{_N}"),
    _row(Format.EXECUTORCH, What.COUNTER, rf"perf_monitor.*ethosu_pmu_cntr(?P<index>\d) : *{_N}"),
    _row(Format.EXECUTORCH, What.NAMES, r"Ethos-U PMU Events: ?\[(?P<name>[A-Z0-9_, ]+)\]"),
    _row(Format.EXECUTORCH, What.WHOLE,
         rf"Inference runtime: {_N} CPU cycles(?: total)?(?:{_PER})?"),
    _row(Format.DELEGATES, What.RUNS,
         rf"{_DELEGATE}: \d{{1,20}} backend invocations, {_N} NPU invocations"),
    _row(Format.DELEGATES, What.DELEGATE, rf"{_DELEGATE} PMU cycles: {_N}"),
    _row(Format.DELEGATES, What.HELD,
         rf"{_DELEGATE} PMU counter (?P<counter>\d): {_N}"),
    _row(Format.INSPECTOR, What.OPERATOR,
         r"^\|\s*\d{1,6}\s*\|\s*Execute\s*\|\s*(?P<name>[\w:.]{1,80})\s*\|\s*"
         r"(?P<n>\d[\d,]{0,25})(?:\.\d+)?\s*\|"),
    # Arm's core platform: what the NPU took is its own counter's.
    _row(Format.CORE_PLATFORM, What.COUNTER,
         rf"ethos-u : ethosu_pmu_cntr(?P<index>\d) : {_N}"),
    _row(Format.EXECUTORCH, What.OPERATOR,
         rf"(?P<name>ethos-u) : cycle_cnt : {_N} cycles{_PER}|"
         rf"perf_monitor.*(?P<old>ethos-u) : cycle_cnt : (?P<oldn>\d{{1,20}}) cycles"),
    _row(Format.CORE_PLATFORM, What.NPU_TIME, rf"(?P<name>ethos-u) : cycle_cnt : {_N} cycles"),
    _row(Format.CORE_PLATFORM, What.OPERATOR, rf"{_TAG} : cycle_cnt : {_N} cycles"),
    _row(Format.CORE_PLATFORM, What.CYCLES, rf"ethosu_pmu_cycle_cntr : {_N} cycles"),
    _row(Format.ZEPHYR, What.CYCLES, rf"ethosu_pmu_cycle_cntr : {_N}"),
    _row(Format.ZEPHYR, What.COUNTER, rf"ethosu_pmu_cntr(?P<index>\d) : {_N}"),
    # The kit: `NAME: n unit`; before, `NAME unit: n`; statistics: sum, mean, least, most.
    _row(Format.KIT, What.BEGIN, r"Profile for [\w ]{1,60}:"),
    _row(Format.KIT_STATISTICS, What.INFERENCES, rf"Number of samples: {_N}"),
    _row(Format.KIT_STATISTICS, What.COUNT,
         rf"{_KIT} (?:beats|cycles): {_N}/ (?P<per>\d{{1,20}}) / \d{{1,20}} / \d{{1,20}}"),
    _row(Format.KIT, What.COUNT, rf"{_KIT}: {_N} (?:beats|cycles)"),
    _row(Format.KIT_OLD, What.COUNT, rf"NPU (?:ETHOSU_PMU_)?(?P<name>[A-Z][A-Z0-9_]{{2,60}}|total) "
         rf"(?:beats|cycles): {_N}"),
    _row(Format.KIT, What.WHOLE, rf"CPU TOTAL: {_N} cycles"),
    # TensorFlow Lite Micro.
    _row(Format.TFLM, What.OPERATOR,
         rf"{_TAG} took {_N} ticks \(-?\d{{1,20}} ms\)"),
    _row(Format.TFLM_CSV, What.BEGIN, r'"Event","Tag","Ticks"'),
    _row(Format.TFLM_CSV, What.OPERATOR, rf"(?:^|[ >])(?P<index>\d{{1,5}}),{_TAG},{_N}$"),
    _row(Format.TFLM_TAGS, What.BEGIN, r'"Unique Tag","Total ticks'),
    _row(Format.TFLM_TAGS, What.OPERATOR, rf"(?:^|[ >]){_TAG}, {_N}$"),
    # Linux.
    _row(Format.NXP, What.COUNTERS, r"Ethos_u PMUs : \[(?P<name>[ \d]+)\]"),
    _row(Format.NXP, What.CYCLES, rf"Ethos-u cycle counter: {_N}"),
    _row(Format.LINUX, What.COUNTERS, r"PMUs : \[(?P<name>[ \d]+)\]"),
    _row(Format.LINUX, What.CYCLES, rf"Cycle counter: {_N}"),
    # Himax's examples time several steps alike; converting inputs is none of the network's.
    _row(Format.HIMAX, What.WHOLE,
         rf"Tick for [Ii]nvoke (?:for|of) (?!.*(?:uint8toint8|convert))[^:\[]{{1,80}}:\[{_N}\]"),
)  # fmt: skip
"""Of several that match a line the first one counts."""

TOTAL_EVENT = "TOTAL"
"""What the kit calls the cycle counter."""
ACTIVE_EVENT, IDLE_EVENT = "NPU_ACTIVE", "NPU_IDLE"
SHORT_EVENTS = {"ACTIVE": ACTIVE_EVENT, "IDLE": IDLE_EVENT, "total": TOTAL_EVENT}
"""The kit's names of events that are not the driver's."""

NPU_OPERATORS = frozenset({"ethos-u", "ethosu", "DELEGATE_CALL", "EthosUBackend"})
"""What runtimes call the NPU's operator in a profile.

Ref: tflite-micro, kernels/ethos_u (custom operator); executorch, runtime/executor/method.cpp.
"""
