/* What Arm's driver takes of CMSIS. */
#ifndef CMSIS_COMPILER_H
#define CMSIS_COMPILER_H

#define __WFE() __asm__ volatile("wfe" ::: "memory")
#define __SEV() __asm__ volatile("sev" ::: "memory")

#endif
