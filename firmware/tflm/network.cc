// The model on TensorFlow Lite Micro: an interpreter in the arena that model.h gives the size of.
#include "network.h"

#include <new>

#include "board.h"
#include "model.h"
#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_op_resolver.h"
#include "tensorflow/lite/micro/micro_resource_variable.h"
#include "tensorflow/lite/micro/system_setup.h"
#include "tensorflow/lite/schema/schema_generated.h"

#if MODEL_ON_NPU
#include "ethosu.h"
#endif

// In operators.cc: the operators that the model has, nullptr if one of them is not to be had.
const tflite::MicroOpResolver *model_operators();

// The model is linked, or lies in flash by itself.
#if defined(BOARD_MODEL_ADDRESS)
#define MODEL reinterpret_cast<const uint8_t *>(BOARD_MODEL_ADDRESS)
#else
#define MODEL model_network
#endif

namespace {

BOARD_ARENA uint8_t arena[MODEL_ARENA_BYTES];
#if MODEL_FAST_BYTES > 0
BOARD_FAST uint8_t fast[MODEL_FAST_BYTES];
#endif

alignas(tflite::MicroInterpreter) uint8_t memory[sizeof(tflite::MicroInterpreter)];
tflite::MicroInterpreter *interpreter;

int said(const char *text) {
    board_write("tflm: ");
    board_write(text);
    board_write("\n");
    return 1;
}

void say_arena() {
    board_write("tflm: ");
    board_write_decimal(static_cast<int32_t>(interpreter->arena_used_bytes()));
    board_write(" bytes of the arena's ");
    board_write_decimal(MODEL_ARENA_BYTES);
    board_write(" are used\n");
}

// Memory of its own for what the NPU stages is the driver's to hand over: TensorFlow Lite Micro
// knows only the arena.
bool start_npu() {
#if MODEL_ON_NPU && MODEL_FAST_BYTES > 0
    return board_ethosu(fast, sizeof fast) != nullptr;
#elif MODEL_ON_NPU
    return board_ethosu(nullptr, 0) != nullptr;
#else
    return true;
#endif
}

network_numbers numbers_of(TfLiteType type) {
    switch (type) {
    case kTfLiteBool:
    case kTfLiteUInt8:
        return NETWORK_UNSIGNED;
    case kTfLiteInt8:
    case kTfLiteInt16:
    case kTfLiteInt32:
        return NETWORK_SIGNED;
    default:
        return NETWORK_BITS;
    }
}

void fill(const TfLiteTensor &found, network_tensor *tensor) {
    uint32_t count = 1;
    for (int i = 0; i < found.dims->size; i++) {
        count *= static_cast<uint32_t>(found.dims->data[i]);
    }
    tensor->data = found.data.data;
    tensor->bytes = static_cast<uint32_t>(found.bytes);
    tensor->count = count;
    tensor->numbers = numbers_of(found.type);
}

}  // namespace

int network_open(void) {
    tflite::InitializeTarget();
    const tflite::Model *model = tflite::GetModel(MODEL);
    if (model->version() != TFLITE_SCHEMA_VERSION) {
        return said("the model is of another version than this runtime reads");
    }
    const tflite::MicroOpResolver *operators = model_operators();
    if (operators == nullptr) {
        return said("an operator of the model could not be added");
    }
    if (!start_npu()) {
        return said("the NPU did not start: is it another one than the project is for?");
    }
    tflite::MicroAllocator *allocator = tflite::MicroAllocator::Create(arena, sizeof arena);
    tflite::MicroResourceVariables *variables = nullptr;
    if (MODEL_VARIABLES > 0) {
        variables = tflite::MicroResourceVariables::Create(allocator, MODEL_VARIABLES);
    }
    interpreter = new (memory) tflite::MicroInterpreter(model, *operators, allocator, variables);
    if (interpreter->AllocateTensors() != kTfLiteOk) {
        return said("the model could not be prepared; if the arena is too small for your version "
                    "of the runtime, raise MODEL_ARENA_BYTES in model.h");
    }
    say_arena();
    return 0;
}

int network_invoke(void) {
    return interpreter->Invoke() == kTfLiteOk ? 0 : said("an operator failed");
}

int network_input(uint32_t index, network_tensor *tensor) {
    if (index >= interpreter->inputs_size()) {
        return 1;
    }
    fill(*interpreter->input(index), tensor);
    return 0;
}

int network_output(uint32_t index, network_tensor *tensor) {
    if (index >= interpreter->outputs_size()) {
        return 1;
    }
    fill(*interpreter->output(index), tensor);
    return 0;
}
