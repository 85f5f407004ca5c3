/* Lines of the NPU's performance counters: one for each start, as `mizzen calibrate` reads them. */
#include "npu_counters.h"

#include "model.h"

#if defined(MIZZEN_COUNTERS)

struct event {
    const char *name;
    uint32_t number;
};

#define ROW(name, number) {#name, number},
static const struct event events[COUNTERS_AT_ONCE * COUNTERS_ROUNDS] = {COUNTERS_EVENTS(ROW)};

/* Starts of the NPU so far; each inference has MODEL_NPU_CALLS. */
static uint32_t starts;

static uint32_t first_event(void)
{
    return starts / MODEL_NPU_CALLS % COUNTERS_ROUNDS * COUNTERS_AT_ONCE;
}

uint32_t npu_counters_event(uint32_t counter)
{
    return events[first_event() + counter].number;
}

static void write_number(uint64_t value)
{
    char text[21];
    char *digit = text + sizeof text - 1;
    *digit = '\0';
    do {
        *--digit = (char)('0' + (char)(value % 10u));
        value /= 10u;
    } while (value > 0u);
    board_write(digit);
}

static void write_count(const char *name, uint64_t value)
{
    board_write(", ");
    board_write(name);
    board_write(" ");
    write_number(value);
}

void npu_counters_ended(uint64_t cycles, const uint32_t counts[COUNTERS_AT_ONCE])
{
    const uint32_t first = first_event();
    uint32_t i;
    board_write("mizzen-counters: inference ");
    write_number(starts / MODEL_NPU_CALLS + 1u);
#if MODEL_NPU_CALLS > 1
    write_count("part", starts % MODEL_NPU_CALLS + 1u);
    board_write(" of ");
    write_number(MODEL_NPU_CALLS);
#endif
    write_count("cycles", cycles);
    for (i = 0; i < COUNTERS_AT_ONCE; i++) {
        write_count(events[first + i].name, counts[i]);
    }
    board_write("\n");
    starts++;
}

#if MIZZEN_COUNTERS == 2

#include <pmu_ethosu.h>

#define TYPE(name, number) ETHOSU_PMU_##name,
static const enum ethosu_pmu_event_type types[] = {COUNTERS_EVENTS(TYPE)};

/* Arm's driver calls both, around each invocation. */
void ethosu_inference_begin(struct ethosu_driver *driver, void *argument)
{
    const uint32_t first = first_event();
    uint32_t i;
    (void)argument;
    ETHOSU_PMU_Enable(driver);
    ETHOSU_PMU_PMCCNTR_CFG_Set_Start_Event(driver, ETHOSU_PMU_NPU_ACTIVE);
    ETHOSU_PMU_PMCCNTR_CFG_Set_Stop_Event(driver, ETHOSU_PMU_NPU_IDLE);
    for (i = 0; i < COUNTERS_AT_ONCE; i++) {
        ETHOSU_PMU_Set_EVTYPER(driver, i, types[first + i]);
    }
    ETHOSU_PMU_CNTR_Enable(driver, ETHOSU_PMU_CCNT_Msk | ((1u << COUNTERS_AT_ONCE) - 1u));
    ETHOSU_PMU_CYCCNT_Reset(driver);
    ETHOSU_PMU_EVCNTR_ALL_Reset(driver);
}

void ethosu_inference_end(struct ethosu_driver *driver, void *argument)
{
    uint32_t counts[COUNTERS_AT_ONCE];
    const uint64_t cycles = ETHOSU_PMU_Get_CCNTR(driver);
    uint32_t i;
    (void)argument;
    for (i = 0; i < COUNTERS_AT_ONCE; i++) {
        counts[i] = ETHOSU_PMU_Get_EVCNTR(driver, i);
    }
    ETHOSU_PMU_Disable(driver);
    npu_counters_ended(cycles, counts);
}

#endif
#endif
