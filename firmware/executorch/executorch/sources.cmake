# ExecuTorch's runtime, from the checkout that EXECUTORCH names: its core, the kernels that the program
# names, registered with the unboxing that ExecuTorch generates, and the delegate for Ethos-U.
if(NOT EXISTS "${EXECUTORCH}/runtime/executor/program.h")
    message(FATAL_ERROR "EXECUTORCH=${EXECUTORCH} must name a checkout of executorch, and has no \
runtime/executor/program.h")
endif()
set(submodules third-party/flatbuffers third-party/flatcc third-party/gflags third-party/json
    backends/xnnpack/third-party/FXdiv)
list(JOIN submodules " " listed)
foreach(submodule IN LISTS submodules)
    if(NOT EXISTS "${EXECUTORCH}/${submodule}/CMakeLists.txt")
        message(FATAL_ERROR "EXECUTORCH=${EXECUTORCH} must have its submodule ${submodule} (run once in \
the checkout: git submodule update --init ${listed})")
    endif()
endforeach()

set(EXECUTORCH_ROOT "${EXECUTORCH}")
# Firmware lies where it is linked. What runs before memory is filled must not need tables in it.
set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
foreach(option BUILD_EXECUTOR_RUNNER BUILD_EXTENSION_DATA_LOADER BUILD_EXTENSION_FLAT_TENSOR USE_DL
    ENABLE_EVENT_TRACER BUILD_PTHREADPOOL BUILD_CPUINFO)
    set(EXECUTORCH_${option} OFF CACHE BOOL "" FORCE)
endforeach()
foreach(option BUILD_KERNELS_QUANTIZED ENABLE_LOGGING)
    set(EXECUTORCH_${option} ON CACHE BOOL "" FORCE)
endforeach()
add_subdirectory("${EXECUTORCH}" executorch-build EXCLUDE_FROM_ALL)
include("${EXECUTORCH}/tools/cmake/Codegen.cmake")
if(NOT PYTHON_EXECUTABLE)
    find_package(Python3 COMPONENTS Interpreter REQUIRED)
    set(PYTHON_EXECUTABLE "${Python3_EXECUTABLE}")
endif()

# One library for each schema that names operators: what it names of MODEL_OPERATORS is registered.
set(kernels "")
set(registered "")
function(register_operators name schema yaml library)
    string(REPLACE ";" "," operators "${MODEL_OPERATORS_${schema}}")
    gen_selected_ops(LIB_NAME ${name} ROOT_OPS "${operators}")
    generate_bindings_for_kernels(LIB_NAME ${name} ${schema} "${EXECUTORCH}/kernels/${yaml}")
    gen_operators_lib(LIB_NAME ${name} KERNEL_LIBS ${library} DEPS executorch_core)
endfunction()
if(MODEL_OPERATORS_FUNCTIONS_YAML)
    register_operators(model_portable FUNCTIONS_YAML portable/functions.yaml portable_kernels)
    list(APPEND registered model_portable)
    list(APPEND kernels portable_kernels)
endif()
if(MODEL_OPERATORS_CUSTOM_OPS_YAML)
    register_operators(model_quantized CUSTOM_OPS_YAML quantized/quantized.yaml quantized_kernels)
    list(APPEND registered model_quantized)
    list(APPEND kernels quantized_kernels)
endif()
if(MODEL_OPERATORS_PRIMITIVE)
    list(APPEND registered prim_ops_lib)
endif()

if(MODEL_ON_NPU)
    include(npu/driver.cmake)
    set(arm "${EXECUTORCH}/backends/arm/runtime")
    file(GLOB delegate "${arm}/EthosUBackend.cpp" "${arm}/EthosUBackend_IoMemcpy.cpp"
        "${arm}/EthosUBackend_Cortex_M.cpp" "${arm}/VelaBinStream.cpp")
    add_library(delegate STATIC ${delegate})
    target_link_libraries(delegate PUBLIC executorch_core ethosu)
    # It registers itself when the firmware starts: nothing names it.
    executorch_target_link_options_shared_lib(delegate)
    list(APPEND registered delegate)
endif()
