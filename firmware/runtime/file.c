#include "mizzen.h"

/* CRC-32 of four bits at a time: polynomial 0xedb88320, as zlib's. */
static const uint32_t of_nibble[16] = {
    0x00000000u, 0x1db71064u, 0x3b6e20c8u, 0x26d930acu, 0x76dc4190u, 0x6b6b51f4u,
    0x4db26158u, 0x5005713cu, 0xedb88320u, 0xf00f9344u, 0xd6d6a3e8u, 0xcb61b38cu,
    0x9b64c2b0u, 0x86d3d2d4u, 0xa00ae278u, 0xbdbdf21cu,
};

static uint32_t crc_on(uint32_t crc, const uint8_t *data, size_t bytes)
{
    size_t i;
    for (i = 0; i < bytes; i++) {
        crc ^= data[i];
        crc = (crc >> 4) ^ of_nibble[crc & 15u];
        crc = (crc >> 4) ^ of_nibble[crc & 15u];
    }
    return crc;
}

mz_status mz_file_contents(const void *file, size_t file_bytes, uint32_t of, const void **contents,
                           size_t *contents_bytes)
{
    const mz_file_row *head = file;
    const uint8_t *after;
    uint32_t crc;
    if (file == NULL || (uintptr_t)file % MZ_FORMAT_ALIGNMENT != 0u) {
        return MZ_ERROR_MEMORY;
    }
    if (file_bytes < sizeof *head || head->magic != MZ_FILE_MAGIC) {
        return MZ_ERROR_FORMAT;
    }
    if (head->bytes < sizeof *head || head->bytes > file_bytes) {
        return MZ_ERROR_DAMAGED;
    }
    if (head->of != of) {
        return MZ_ERROR_OTHER_FILE;
    }
    after = (const uint8_t *)file + sizeof *head;
    crc = crc_on(0xffffffffu, file, sizeof *head - sizeof head->crc);
    crc = crc_on(crc, after, head->bytes - sizeof *head);
    if ((crc ^ 0xffffffffu) != head->crc) {
        return MZ_ERROR_CHECKSUM;
    }
    *contents = after;
    *contents_bytes = head->bytes - sizeof *head;
    return MZ_OK;
}
