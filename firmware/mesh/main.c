/* Lets the element work on recorded images, and says whether it gave what was recorded. */
#include "board.h"
#include "element.h"
#include "recorded.h"

BOARD_ARENA static uint8_t memory[ELEMENT_DATA_BYTES];

/* What memory has that nobody wrote. */
#define UNWRITTEN 0xa5u

int main(void)
{
    uint32_t image;
    uint32_t at;
    int wrong = 0;
    for (at = 0; at < ELEMENT_DATA_BYTES; at++) {
        memory[at] = UNWRITTEN;
    }
    for (image = 0; image < recorded_images; image++) {
        recorded_begin();
        element_image(memory, image);
        wrong |= recorded_is_complete() ? 0 : 1;
    }
    wrong |= recorded_wrong() != 0u ? 1 : 0;
    board_write("messages compared: ");
    board_write_decimal((int32_t)recorded_compared());
    board_write(", different: ");
    board_write_decimal((int32_t)recorded_wrong());
    board_write("\n");
    if (recorded_images > 0u) {
        board_write(wrong ? "mizzen: other outputs than expected\n" : "mizzen: ok\n");
    }
    return wrong;
}
