/* The board's NPU, with Arm's core driver. The driver's own semaphores and mutexes take memory
 * from malloc; those here are for one thread and take none. */
#include "ethosu.h"

#include "board.h"

static struct ethosu_driver driver;
static volatile int signalled;
static int mutex;

struct ethosu_driver *board_ethosu(void *fast, size_t fast_bytes)
{
    if (ethosu_init(&driver, (void *)BOARD_NPU_BASE, fast, fast_bytes, 1, 1) != 0) {
        return NULL;
    }
    board_npu_interrupt_enable();
    return &driver;
}

void board_npu_interrupt(void)
{
    ethosu_irq_handler(&driver);
}

void *ethosu_mutex_create(void)
{
    return &mutex;
}

void ethosu_mutex_destroy(void *held)
{
    (void)held;
}

int ethosu_mutex_lock(void *held)
{
    (void)held;
    return 0;
}

int ethosu_mutex_unlock(void *held)
{
    (void)held;
    return 0;
}

/* The driver makes two: one counts free drivers, whose only user is here, one the NPU's ends. */
static int free_drivers;

void *ethosu_semaphore_create(void)
{
    static int made;
    made++;
    return made == 1 ? (void *)&free_drivers : (void *)&signalled;
}

void ethosu_semaphore_destroy(void *held)
{
    (void)held;
}

int ethosu_semaphore_take(void *held, uint64_t timeout)
{
    volatile int *count = held;
    (void)timeout;
    while (*count == 0) {
        board_wait_for_event();
    }
    (*count)--;
    return 0;
}

int ethosu_semaphore_give(void *held)
{
    volatile int *count = held;
    (*count)++;
    return 0;
}
