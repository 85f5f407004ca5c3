"""Texts in the forms of public firmware and runtimes, with what is to be read of them.

Forms are of the sources that `Format` names; the numbers are made up.
"""

from __future__ import annotations

from mizzen.analysis.measurement.formats import Format

TEXTS: dict[Format, str] = {
    Format.MIZZEN: """\
mizzen-counters: inference 1, part 1 of 2, cycles 1200, NPU_ACTIVE 1100, \
AXI0_RD_DATA_BEAT_RECEIVED 90
mizzen-counters: inference 1, part 2 of 2, cycles 640, NPU_ACTIVE 600, \
AXI0_RD_DATA_BEAT_RECEIVED 40
""",
    Format.KIT: """\
INFO - Final results:
INFO - Profile for Inference:
INFO - NPU ACTIVE: 9000 cycles
INFO - NPU ETHOSU_PMU_SRAM_RD_DATA_BEAT_RECEIVED: 700 beats
INFO - NPU IDLE: 80 cycles
INFO - NPU TOTAL: 9080 cycles
INFO - CPU TOTAL: 30000 cycles
""",
    Format.KIT_OLD: """\
INFO - Profile for Inference :
INFO - NPU AXI0_RD_DATA_BEAT_RECEIVED beats: 700
INFO - NPU IDLE cycles: 80
INFO - NPU total cycles: 9080
""",
    Format.KIT_STATISTICS: """\
INFO - Profile for Inference:
INFO - Number of samples: 3
INFO - Total / Avg./ Min / Max
INFO - NPU ACTIVE cycles: 27000/ 9000 / 8990 / 9010
INFO - NPU TOTAL cycles: 27300/ 9100 / 9090 / 9110
""",
    Format.EXECUTORCH: """\
I [executorch:arm_perf_monitor.cpp:180] NPU Inferences : 2
I [executorch:arm_perf_monitor.cpp:184] ethos-u : cycle_cnt : 42000 cycles \
(21000.00 per inference)
I [executorch:arm_perf_monitor.cpp:190] Inference runtime: 50000 CPU cycles total \
(25000.00 per inference)
I [executorch:arm_perf_monitor.cpp:220] ethosu_pmu_cycle_cntr : 18000 (9000.00 per inference)
I [executorch:arm_perf_monitor.cpp:226] ethosu_pmu_cntr0 : 1400 (700.00 per inference)
I [executorch:arm_perf_monitor.cpp:226] ethosu_pmu_cntr1 : 160 (80.00 per inference)
I [executorch:arm_perf_monitor.cpp:240] Ethos-U PMU Events:[\
ETHOSU_PMU_AXI0_RD_DATA_BEAT_RECEIVED, ETHOSU_PMU_NPU_IDLE]
""",
    Format.DELEGATES: """\
I [executorch:arm_perf_monitor.cpp:260] Ethos-U delegate 0: 2 backend invocations, 2 NPU invocations
I [executorch:arm_perf_monitor.cpp:266] Ethos-U delegate 0 PMU cycles: 2400
I [executorch:arm_perf_monitor.cpp:272] Ethos-U delegate 0 PMU counter 0: 180
I [executorch:arm_perf_monitor.cpp:260] Ethos-U delegate 1: 2 backend invocations, 2 NPU invocations
I [executorch:arm_perf_monitor.cpp:266] Ethos-U delegate 1 PMU cycles: 1280
I [executorch:arm_perf_monitor.cpp:240] Ethos-U PMU Events:[ETHOSU_PMU_AXI0_RD_DATA_BEAT_RECEIVED]
""",
    Format.INSPECTOR: """\
| # | Block | Event | Cycles |
|---|-------|-------|-------:|
| 0 | Default | Method::init | 1,055 |
| 1 | Execute | quantized_conv2d.out | 13,754 |
| 2 | Execute | DELEGATE_CALL | 21,000 |
""",
    Format.ZEPHYR: """\
[00:00:00.010,000] <inf> tflm: Ethos-U PMU report:
[00:00:00.010,000] <inf> tflm: ethosu_pmu_cycle_cntr : 9080
[00:00:00.010,000] <inf> tflm: ethosu_pmu_cntr0 : 9000
Ethos-U PMU report:
ethosu_pmu_cycle_cntr : 9100
ethosu_pmu_cntr0 : 9020
""",
    Format.CORE_PLATFORM: """\
ethos-u : ethosu_pmu_cntr0 : 700
ethos-u : cycle_cnt : 9080 cycles
SOFTMAX : cycle_cnt : 3300 cycles
""",
    Format.TFLM: """\
ethos-u took 9300 ticks (0 ms).
SOFTMAX took 3300 ticks (0 ms).
""",
    Format.TFLM_CSV: """\
"Event","Tag","Ticks"
0,ethos-u,9300
1,SOFTMAX,3300
""",
    Format.TFLM_TAGS: """\
"Unique Tag","Total ticks across all events with that tag."
ethos-u, 9300
SOFTMAX, 3300
"total number of ticks", 12600
""",
    Format.LINUX: """\
Inference status: success
PMUs : [ 700 0 0 0 ]
Cycle counter: 9080
""",
    Format.NXP: """\
Ethos_u PMUs : [ 700 0 0 0 ]
Ethos-u cycle counter: 9080
""",
    Format.HIMAX: """\
Tick for Invoke for uint8toint8 for NET:[777]
Tick for Invoke for NET:[9400]
""",
}
