#include "npu_registers.h"

#if defined(MIZZEN_COUNTERS)
#include "npu_counters.h"
#endif

/* Byte offsets of registers, and bits. Ref: Arm Ethos-U core driver 0.16, ethosu55_interface.h,
 * ethosu65_interface.h, ethosu85_interface.h. */
#define ID 0x000u
#define STATUS 0x004u
#define CMD 0x008u
#define RESET 0x00cu
#define QBASE 0x010u
#define QCONFIG 0x01cu
#define QSIZE 0x020u
#define PROT 0x024u
#define CONFIG 0x028u
#define REGIONCFG 0x03cu
#define LIMITS 0x040u
#define AXI_SRAM 0x050u
#define AXI_EXT 0x054u
#define BASEP 0x080u

#define STATUS_IRQ (1u << 1)
#define STATUS_RESETTING (1u << 3)
#define STATUS_END (1u << 5)
#define STATUS_FAULTS ((1u << 2) | (1u << 4) | (1u << 7) | (1u << 8) | (1u << 9))
#define CMD_RUN (1u << 0)
#define CMD_CLEAR_IRQ (1u << 1)
#define CMD_CLOCK_AND_POWER_OFF ((1u << 2) | (1u << 3))

#define CONFIG_MACS_AND_VERSION 0xffu
#define CONFIG_PORTS 0x700u
#define CONFIG_CUSTOM_DMA (1u << 27)
#define CONFIG_PRODUCT 0xf0000000u
#define PRODUCT_U85 0x20000000u
#define ID_MAJOR 0xf0000000u
#define ID_MINOR 0x0ff00000u

static void put(const mz_npu *npu, uint32_t offset, uint32_t word)
{
    npu->registers[offset / 4u] = word;
}

static uint32_t get(const mz_npu *npu, uint32_t offset)
{
    return npu->registers[offset / 4u];
}

static void put_address(const mz_npu *npu, uint32_t offset, uintptr_t address)
{
    const uint64_t bits = address;
    put(npu, offset, (uint32_t)bits);
    put(npu, offset + 4u, (uint32_t)(bits >> 32));
}

static int is_u85(const mz_npu *npu)
{
    return (get(npu, CONFIG) & CONFIG_PRODUCT) == PRODUCT_U85;
}

static mz_status reset(const mz_npu *npu)
{
    uint32_t left = npu->polls;
    uint32_t i;
    put(npu, RESET, npu->protection);
    while ((get(npu, STATUS) & STATUS_RESETTING) != 0u) {
        if (left == 0u) {
            return MZ_ERROR_TIMEOUT;
        }
        left--;
    }
    if (get(npu, PROT) != npu->protection) {
        return MZ_ERROR_NPU;
    }
    put(npu, QCONFIG, npu->qconfig);
    put(npu, REGIONCFG, npu->regioncfg);
    for (i = 0; i < 4u; i++) {
        put(npu, LIMITS + 4u * i, npu->limits[i]);
    }
    if (is_u85(npu)) {
        put(npu, AXI_SRAM, npu->ports[0]);
        put(npu, AXI_EXT, npu->ports[1]);
    }
    return MZ_OK;
}

#if defined(MIZZEN_COUNTERS)

/* Of U55 and U65; those of U85 are further on. */
#define PMCR 0x180u
#define PMCNTENSET 0x184u
#define PMCCNTR 0x1a0u
#define PMCCNTR_HI 0x1a4u
#define PMCCNTR_CFG 0x1a8u
#define PMEVCNTR 0x300u
#define PMEVTYPER 0x380u
#define PMU_U85 0x1000u
#define PMCR_COUNT_FROM_ZERO 7u
#define PMCNTENSET_CYCLES (1u << 31)

static void start_counters(const mz_npu *npu)
{
    const uint32_t at = is_u85(npu) ? PMU_U85 : 0u;
    uint32_t i;
    for (i = 0; i < COUNTERS_AT_ONCE; i++) {
        put(npu, at + PMEVTYPER + 4u * i, npu_counters_event(i));
    }
    put(npu, at + PMCCNTR_CFG, COUNTERS_TO << 16 | COUNTERS_FROM);
    put(npu, at + PMCNTENSET, PMCNTENSET_CYCLES | ((1u << COUNTERS_AT_ONCE) - 1u));
    put(npu, at + PMCR, PMCR_COUNT_FROM_ZERO);
}

static void end_counters(const mz_npu *npu)
{
    const uint32_t at = is_u85(npu) ? PMU_U85 : 0u;
    const uint64_t high = get(npu, at + PMCCNTR_HI);
    uint32_t counts[COUNTERS_AT_ONCE];
    uint32_t i;
    for (i = 0; i < COUNTERS_AT_ONCE; i++) {
        counts[i] = get(npu, at + PMEVCNTR + 4u * i);
    }
    npu_counters_ended(high << 32 | get(npu, at + PMCCNTR), counts);
}

#endif

/* The comparison that Arm's driver makes: the shared buffer's size is no part of it. */
mz_status mz_npu_check(mz_npu *npu, uint32_t config, uint32_t id)
{
    uint32_t same = CONFIG_PRODUCT | CONFIG_MACS_AND_VERSION;
    uint32_t there;
    if (npu == NULL) {
        return MZ_ERROR_OTHER_NPU;
    }
    there = get(npu, CONFIG);
    if (is_u85(npu)) {
        same |= CONFIG_PORTS;
    }
    if (((there ^ config) & same) != 0u || (config & ~there & CONFIG_CUSTOM_DMA) != 0u) {
        return MZ_ERROR_OTHER_NPU;
    }
    there = get(npu, ID);
    if (((there ^ id) & ID_MAJOR) != 0u || (there & ID_MINOR) < (id & ID_MINOR)) {
        return MZ_ERROR_OTHER_NPU;
    }
    return MZ_OK;
}

void mz_npu_interrupt(mz_npu *npu)
{
    npu->status = get(npu, STATUS);
    put(npu, CMD, CMD_CLEAR_IRQ);
    npu->ended = 1;
}

static mz_status await(mz_npu *npu)
{
    uint32_t left = npu->polls;
    while (npu->ended == 0) {
        if (npu->has_interrupt == 0 && (get(npu, STATUS) & STATUS_IRQ) != 0u) {
            mz_npu_interrupt(npu);
        } else if (left == 0u) {
            return MZ_ERROR_TIMEOUT;
        } else {
            left--;
            if (npu->wait != NULL) {
                npu->wait();
            }
        }
    }
    if ((npu->status & STATUS_FAULTS) != 0u || (npu->status & STATUS_END) == 0u) {
        return MZ_ERROR_NPU;
    }
    return MZ_OK;
}

mz_status mz_npu_invoke(mz_npu *npu, const void *payload, uint32_t payload_bytes,
                        const mz_region regions[MZ_REGIONS])
{
    mz_stream stream;
    uint32_t i;
    mz_status status = mz_stream_find(payload, payload_bytes, &stream);
    if (status == MZ_OK) {
        status = reset(npu);
    }
    if (status != MZ_OK) {
        return status;
    }
    put(npu, CMD, 0);
    put_address(npu, QBASE, (uintptr_t)stream.commands);
    put(npu, QSIZE, stream.bytes);
    for (i = 0; i < MZ_REGIONS; i++) {
        put_address(npu, BASEP + 8u * i, regions[i].address);
    }
    npu->ended = 0;
#if defined(MIZZEN_COUNTERS)
    start_counters(npu);
#endif
    put(npu, CMD, CMD_RUN);
    status = await(npu);
    if (status != MZ_OK) {
        (void)reset(npu);
    }
#if defined(MIZZEN_COUNTERS)
    if (status == MZ_OK) {
        end_counters(npu);
    }
#endif
    put(npu, CMD, CMD_CLOCK_AND_POWER_OFF);
    return status;
}
