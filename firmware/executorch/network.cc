// The model on ExecuTorch: the method forward, in memory of the sizes that model.h gives.
#include "network.h"

#include <cstring>
#include <new>

#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/runtime.h>

#include "board.h"
#include "model.h"

#if MODEL_ON_NPU
#include "ethosu.h"
#endif

using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::extension::BufferDataLoader;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::HierarchicalAllocator;
using executorch::runtime::MemoryAllocator;
using executorch::runtime::MemoryManager;
using executorch::runtime::Method;
using executorch::runtime::MethodMeta;
using executorch::runtime::Program;
using executorch::runtime::Result;
using executorch::runtime::Span;

#if MODEL_FAST_BYTES > 0
BOARD_FAST static unsigned char fast[MODEL_FAST_BYTES];
// What the delegate gives the NPU as region 2.
extern "C" {
unsigned char *ethosu_fast_scratch = fast;
size_t ethosu_fast_scratch_size = MODEL_FAST_BYTES;
}
#endif

namespace {

// Tensors that the program plans, one memory after the other; what the delegate and kernels need
// while they run; what the method keeps.
BOARD_ARENA uint8_t planned[MODEL_PLANNED_BYTES];
BOARD_ARENA uint8_t temporary[MODEL_TEMPORARY_BYTES];
alignas(16) uint8_t kept[MODEL_METHOD_BYTES];

// What is open stays so: nothing here is ever destroyed.
template <typename T>
struct Lasting {
    alignas(T) uint8_t memory[sizeof(T)];

    template <typename... Arguments>
    T *make(Arguments &&...arguments) {
        return new (memory) T(static_cast<Arguments &&>(arguments)...);
    }
};

Lasting<BufferDataLoader> loader;
Lasting<Program> program;
Span<uint8_t> spans[MODEL_MEMORIES];
Lasting<HierarchicalAllocator> memories;
Lasting<MemoryAllocator> for_method;
Lasting<MemoryAllocator> for_calls;
Lasting<MemoryManager> manager;
Lasting<Method> opened;
Method *method;

int said(const char *text, Error error) {
    board_write("executorch: ");
    board_write(text);
    board_write(": error ");
    board_write_hex(static_cast<uint32_t>(error));
    board_write("\n");
    return 1;
}

// Lay the program's memories one behind another; states start at zero.
MemoryManager *make_memory(const MethodMeta &meta) {
    const size_t count = meta.num_memory_planned_buffers();
    uint8_t *at = planned;
    for (size_t i = 0; i < count && i < MODEL_MEMORIES; i++) {
        const size_t bytes = static_cast<size_t>(meta.memory_planned_buffer_size(i).get());
        spans[i] = Span<uint8_t>(at, bytes);
        at += (bytes + 15u) / 16u * 16u;
    }
    memset(planned, 0, sizeof planned);
    return manager.make(for_method.make(static_cast<uint32_t>(sizeof kept), kept),
                        memories.make(Span<Span<uint8_t>>(spans, count)),
                        for_calls.make(static_cast<uint32_t>(sizeof temporary), temporary));
}

void say_memory(const MemoryAllocator &allocator) {
    board_write("executorch: ");
    board_write_decimal(static_cast<int32_t>(allocator.used_size()));
    board_write(" bytes of the method's ");
    board_write_decimal(MODEL_METHOD_BYTES);
    board_write(" are used\n");
}

network_numbers numbers_of(ScalarType type) {
    switch (type) {
    case ScalarType::Bool:
    case ScalarType::Byte:
        return NETWORK_UNSIGNED;
    case ScalarType::Char:
    case ScalarType::Short:
    case ScalarType::Int:
        return NETWORK_SIGNED;
    default:
        return NETWORK_BITS;
    }
}

int filled(const EValue &value, network_tensor *tensor) {
    const Tensor found = value.toTensor();
    tensor->data = found.mutable_data_ptr();
    tensor->bytes = static_cast<uint32_t>(found.nbytes());
    tensor->count = static_cast<uint32_t>(found.numel());
    tensor->numbers = numbers_of(found.scalar_type());
    return 0;
}

}  // namespace

int network_open(void) {
    executorch::runtime::runtime_init();
#if MODEL_ON_NPU
    if (board_ethosu(nullptr, 0) == nullptr) {
        return said("the NPU did not start: is it another one than the project is for?",
                    Error::InvalidState);
    }
#endif
    Result<Program> loaded = Program::load(loader.make(model_program, MODEL_BYTES));
    if (!loaded.ok()) {
        return said("the program could not be read", loaded.error());
    }
    const Program *read = program.make(static_cast<Program &&>(loaded.get()));
    Result<const char *> name = read->get_method_name(0);
    Result<MethodMeta> meta = read->method_meta(name.get());
    if (!meta.ok()) {
        return said("the method could not be read", meta.error());
    }
    MemoryManager *memory = make_memory(meta.get());
    Result<Method> prepared = read->load_method(name.get(), memory);
    if (!prepared.ok()) {
        return said("the method could not be prepared; if its memory is too small for your version "
                    "of the runtime, raise MODEL_METHOD_BYTES in model.h",
                    prepared.error());
    }
    method = opened.make(static_cast<Method &&>(prepared.get()));
    say_memory(*memory->method_allocator());
    return 0;
}

int network_invoke(void) {
    const Error error = method->execute();
    return error == Error::Ok ? 0 : said("an operator failed", error);
}

int network_input(uint32_t index, network_tensor *tensor) {
    return index < method->inputs_size() ? filled(method->mutable_input(index), tensor) : 1;
}

int network_output(uint32_t index, network_tensor *tensor) {
    return index < method->outputs_size() ? filled(method->get_output(index), tensor) : 1;
}
