/* The functions that compilers call for copies of structures and arrays. */
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);

/* Keeps a compiler from making the loop a call of the function that the loop is in. */
#define IS_LOOP() __asm__ volatile("")

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
    unsigned char *target = to;
    const unsigned char *source = from;
    size_t i;
    for (i = 0; i < bytes; i++) {
        IS_LOOP();
        target[i] = source[i];
    }
    return to;
}

void *memmove(void *to, const void *from, size_t bytes)
{
    unsigned char *target = to;
    const unsigned char *source = from;
    if (target <= source) {
        return memcpy(to, from, bytes);
    }
    while (bytes != 0u) {
        IS_LOOP();
        bytes--;
        target[bytes] = source[bytes];
    }
    return to;
}

void *memset(void *to, int value, size_t bytes)
{
    unsigned char *target = to;
    size_t i;
    for (i = 0; i < bytes; i++) {
        IS_LOOP();
        target[i] = (unsigned char)value;
    }
    return to;
}
