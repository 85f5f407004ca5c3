// What ExecuTorch asks of a platform: its log goes to the board's console, an abort ends the run. Its
// delegate for Ethos-U takes the memory of its handles from operator new: there is a little, which
// is never given back.
#include <executorch/runtime/platform/platform.h>

#include <cstddef>
#include <new>

#include "board.h"
#include "model.h"

namespace {

alignas(16) unsigned char heap[MODEL_HEAP_BYTES];
size_t taken;

void *take(size_t bytes) noexcept {
    const size_t whole = (bytes + 15u) / 16u * 16u;
    if (whole > sizeof heap - taken) {
        return nullptr;
    }
    taken += whole;
    return heap + taken - whole;
}

}  // namespace

void *operator new(size_t bytes, const std::nothrow_t &) noexcept {
    return take(bytes);
}

void *operator new(size_t bytes) {
    void *found = take(bytes);
    if (found == nullptr) {
        et_pal_abort();
    }
    return found;
}

void operator delete(void *) noexcept {}

void operator delete(void *, size_t) noexcept {}

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

void et_pal_emit_log_message(et_timestamp_t, et_pal_log_level_t, const char *, const char *, size_t,
                             const char *message, size_t) {
    board_write("executorch: ");
    board_write(message);
    board_write("\n");
}

void *et_pal_allocate(size_t) {
    return nullptr;
}

void et_pal_free(void *) {}
