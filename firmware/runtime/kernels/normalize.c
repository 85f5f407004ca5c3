/* Rows to a mean of 0 and a variance of 1, then times weights and plus biases; mean and variance
 * are kept in double. Arguments: input, weights or nothing, biases or nothing, length of a row,
 * rows until weights are the same again, elements that share a weight, what is added to the
 * variance. Ref: PyTorch, native_layer_norm and native_group_norm. */
#include "elements.h"
#include "functions.h"

mz_status mz_kernel_normalize(const mz_call *call);

typedef struct {
    const float *weights;
    const float *biases;
    uint32_t length;
    uint32_t groups;
    uint32_t sharing;
    double epsilon;
} normalization;

static void normalize(const normalization *how, const float *from, float *to, uint32_t row)
{
    const uint32_t first = row % how->groups * (how->length / how->sharing);
    double mean = 0.0;
    double variance = 0.0;
    double factor;
    uint32_t i;
    for (i = 0; i < how->length; i++) {
        mean += (double)from[i];
    }
    mean /= (double)how->length;
    for (i = 0; i < how->length; i++) {
        const double difference = (double)from[i] - mean;
        variance += difference * difference;
    }
    factor = mz_inverse_root(variance / (double)how->length + how->epsilon);
    for (i = 0; i < how->length; i++) {
        const uint32_t at = first + i / how->sharing;
        double value = ((double)from[i] - mean) * factor;
        value *= how->weights != NULL ? (double)how->weights[at] : 1.0;
        to[i] = (float)(value + (how->biases != NULL ? (double)how->biases[at] : 0.0));
    }
}

static mz_status take_weights(const mz_call *call, uint32_t place, uint32_t count,
                              const float **found)
{
    mz_tensor tensor;
    *found = NULL;
    if (mz_has(call, place) != 0) {
        MZ_TRY(mz_take_tensor(call, place, &tensor));
        MZ_TAKES(tensor.type == (uint32_t)MZ_ELEMENT_TYPE_FLOAT32 && tensor.count == count);
        *found = tensor.data;
    }
    return MZ_OK;
}

mz_status mz_kernel_normalize(const mz_call *call)
{
    mz_tensor input;
    mz_tensor output;
    normalization how;
    int32_t numbers[3];
    float epsilon;
    uint32_t row;
    uint32_t i;
    MZ_TRY(mz_take_tensor(call, 0, &input));
    MZ_TRY(mz_give_tensor(call, 0, &output));
    for (i = 0; i < 3u; i++) {
        MZ_TRY(mz_take_int(call, 3u + i, &numbers[i]));
        MZ_TAKES(numbers[i] > 0);
    }
    MZ_TRY(mz_take_real(call, 6, &epsilon));
    how.length = (uint32_t)numbers[0];
    how.groups = (uint32_t)numbers[1];
    how.sharing = (uint32_t)numbers[2];
    how.epsilon = (double)epsilon;
    MZ_TAKES(input.type == (uint32_t)MZ_ELEMENT_TYPE_FLOAT32 && output.type == input.type);
    MZ_TAKES(input.count == output.count && input.count % how.length == 0u);
    MZ_TAKES(how.length % how.sharing == 0u && how.groups <= input.count);
    MZ_TRY(take_weights(call, 1, how.groups * (how.length / how.sharing), &how.weights));
    MZ_TRY(take_weights(call, 2, how.groups * (how.length / how.sharing), &how.biases));
    for (row = 0; call->checking == 0 && row < input.count / how.length; row++) {
        const size_t start = (size_t)row * how.length;
        normalize(&how, (const float *)input.data + start, (float *)output.data + start, row);
    }
    return MZ_OK;
}
