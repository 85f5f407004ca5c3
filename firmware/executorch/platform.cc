// What ExecuTorch asks of a platform: its log goes to the board's console, an abort ends the run.
#include <executorch/runtime/platform/platform.h>

#include "board.h"

void et_pal_init(void) {}

ET_NORETURN void et_pal_abort(void) {
    board_write("executorch: aborted\n");
    board_exit(134);
}

et_timestamp_t et_pal_current_ticks(void) {
    return 0;
}

et_tick_ratio_t et_pal_ticks_to_ns_multiplier(void) {
    return {1, 1};
}

void et_pal_emit_log_message(et_timestamp_t, et_pal_log_level_t, const char *, const char *, const char *,
                             size_t, const char *message, size_t) {
    board_write("executorch: ");
    board_write(message);
    board_write("\n");
}

void *et_pal_allocate(size_t) {
    return nullptr;
}

void et_pal_free(void *) {}
