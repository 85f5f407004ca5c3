// What TensorFlow Lite Micro writes goes to the board's console.
#include <cstdarg>
#include <cstddef>
#include <cstdio>

#include "board.h"
#include "tensorflow/lite/micro/debug_log.h"

namespace {
constexpr size_t kTextBytes = 256;
}

extern "C" void DebugLog(const char *format, va_list args) {
    char text[kTextBytes];
    vsnprintf(text, sizeof text, format, args);
    board_write(text);
}

extern "C" int DebugVsnprintf(char *text, size_t bytes, const char *format, va_list args) {
    return vsnprintf(text, bytes, format, args);
}
