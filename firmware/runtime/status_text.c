#include "mizzen.h"

const char *mz_status_text(mz_status status)
{
    static const char *const texts[] = {
        "all is well",
        "no container, or one of another version",
        "a damaged container",
        "too little memory, or memory that is not aligned to 16 bytes",
        "a kernel that the firmware lacks",
        "a kernel call with arguments that its kernel does not take",
        "a container for another NPU",
        "a fault of the NPU",
        "an NPU that does not end",
        "an index among the data that is outside of its table",
        "a file of weights or a model that is of another program",
        "a file of weights or a model that is not whole",
    };
    const uint32_t place = (uint32_t)status;
    return place < sizeof texts / sizeof texts[0] ? texts[place] : "an unknown status";
}
