/* Zephyr in the place of a board: what the exported sources ask of one. */
#ifndef MIZZEN_BOARD_H
#define MIZZEN_BOARD_H

#include <stddef.h>
#include <stdint.h>
#include <zephyr/devicetree.h>
#include <zephyr/linker/devicetree_regions.h>

#if DT_HAS_CHOSEN(mizzen_model)
#define BOARD_MODEL __attribute__((section(".mizzen_model"), aligned(16)))
#else
#define BOARD_MODEL __attribute__((aligned(16)))
#endif

#if DT_HAS_CHOSEN(mizzen_arena)
#define BOARD_ARENA                                                                                \
    __attribute__((section(LINKER_DT_NODE_REGION_NAME(DT_CHOSEN(mizzen_arena))), aligned(16)))
#else
#define BOARD_ARENA __attribute__((aligned(16)))
#endif
#define BOARD_FAST BOARD_ARENA

void board_write(const char *text);
void board_write_decimal(int32_t value);
void board_write_hex(uint32_t value);

#endif
