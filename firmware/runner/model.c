#include "model.h"

#include "board.h"

/* First in its memory, so that its address is the memory's. */
BOARD_MODEL const volatile struct runner_head runner_head = {0, 0, 0, 0, 0};
