/* The board as firmware sees it: console, end of the run, the NPU's interrupt.
 *
 * The header below, which Mizzen makes of a board's file, has the board's facts. A firmware of its own
 * has no library: its memcpy, memmove and memset are Mizzen's. */
#ifndef MIZZEN_BOARD_H
#define MIZZEN_BOARD_H

#include <stddef.h>
#include <stdint.h>

#include "board_config.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sections of the linker script: command streams and weights; feature maps, which are neither
 * loaded nor cleared; the memory that stages both. What the NPU reads starts at 16 bytes. */
#ifndef BOARD_SECTION_MODEL
#define BOARD_SECTION_MODEL ".model"
#define BOARD_SECTION_ARENA ".arena"
#define BOARD_SECTION_FAST ".fast"
#endif
#define BOARD_MODEL __attribute__((section(BOARD_SECTION_MODEL), aligned(16)))
#define BOARD_ARENA __attribute__((section(BOARD_SECTION_ARENA), aligned(16)))
#define BOARD_FAST __attribute__((section(BOARD_SECTION_FAST), aligned(16)))

/* Write a text to the console: the serial port, or the debugger with BOARD_CONSOLE_SEMIHOSTING. */
void board_write(const char *text);

/* Write a number to the console, in decimal or as 0x and eight digits. */
void board_write_decimal(int32_t value);
void board_write_hex(uint32_t value);

/* End the run and tell the debugger the status: 0 says that all is well. */
__attribute__((noreturn)) void board_exit(int status);

/* Called in the NPU's interrupt. Whoever drives the NPU defines it; the one here ends the run. */
void board_npu_interrupt(void);

void board_npu_interrupt_enable(void);
void board_npu_interrupt_disable(void);

/* All interrupts but faults. */
void board_interrupts_disable(void);
void board_interrupts_enable(void);

/* Sleep until there is an event or an interrupt. An interrupt that came before wakes at once. */
void board_wait_for_event(void);

/* Sleep until an interrupt is pending, even where interrupts are disabled. */
void board_wait_for_interrupt(void);

/* The example. What main returns is the status of board_exit. */
#ifndef BOARD_MAIN
#define BOARD_MAIN main
#endif
int BOARD_MAIN(void);

#ifdef __cplusplus
}
#endif

#endif
