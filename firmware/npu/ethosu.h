/* The board's NPU, with Arm's core driver. */
#ifndef ETHOSU_H
#define ETHOSU_H

#include <stddef.h>

#include <ethosu_driver.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Start the NPU, secure and privileged, and its interrupt. Return NULL if the driver refuses.
 *
 * fast  memory of the caller's that the driver puts in the place of region 2 in every invocation;
 *       NULL leaves that to whoever invokes */
struct ethosu_driver *board_ethosu(void *fast, size_t fast_bytes);

#ifdef __cplusplus
}
#endif

#endif
