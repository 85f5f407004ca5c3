/* A network as the example runs it, whatever runtime executes it. */
#ifndef NETWORK_H
#define NETWORK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the elements of a tensor are written to the console. */
enum network_numbers { NETWORK_UNSIGNED, NETWORK_SIGNED, NETWORK_BITS };

/* An input or an output: where it lies, its bytes, how many elements they are. */
struct network_tensor {
    void *data;
    uint32_t bytes;
    uint32_t count;
    enum network_numbers numbers;
};

/* Prepare the runtime, the NPU too. Return 0, or another number after saying what is wrong. */
int network_open(void);

/* Execute one inference, with state that goes on. Return as network_open. */
int network_invoke(void);

/* Find an input or an output by its place. Return 0, or another number where there is none. */
int network_input(uint32_t index, struct network_tensor *tensor);
int network_output(uint32_t index, struct network_tensor *tensor);

#ifdef __cplusplus
}
#endif

#endif
