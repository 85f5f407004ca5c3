# TensorFlow Lite Micro as the library tflm, from the checkout that TFLM names, and the headers of
# others that it takes: its own make brings them once, or they are named, as
# -DFLATBUFFERS=/usr/include -DGEMMLOWP=/usr/include/gemmlowp.
set(downloads "${TFLM}/tensorflow/lite/micro/tools/make/downloads")
set(FLATBUFFERS "" CACHE PATH "Folder with flatbuffers/flatbuffers.h")
set(GEMMLOWP "${downloads}/gemmlowp" CACHE PATH "Folder with fixedpoint/fixedpoint.h")
set(KISSFFT "${downloads}/kissfft" CACHE PATH "Folder with kiss_fft.h")
set(flatbuffers "${FLATBUFFERS}")
if(NOT FLATBUFFERS)
    set(flatbuffers "${downloads}/flatbuffers/include")
endif()

function(need variable folder file what)
    if(NOT EXISTS "${folder}/${file}")
        message(FATAL_ERROR "${variable}=${folder} must name ${what}: there is no ${file} in it")
    endif()
endfunction()

set(once "(run once in the checkout of tflite-micro: make -f tensorflow/lite/micro/tools/make/Makefile \
third_party_downloads)")
need(TFLM "${TFLM}" tensorflow/lite/micro/micro_interpreter.h "a checkout of tflite-micro")
need(FLATBUFFERS "${flatbuffers}" flatbuffers/flatbuffers.h "the headers of flatbuffers ${once}")
need(GEMMLOWP "${GEMMLOWP}" fixedpoint/fixedpoint.h "the headers of gemmlowp ${once}")
if(MODEL_KERNELS MATCHES "kiss_fft_wrappers")
    need(KISSFFT "${KISSFFT}" kiss_fft.h "kissfft ${once}")
endif()

# Newer versions split kernels, older ones have no second file.
set(kernels "")
foreach(kernel IN LISTS MODEL_KERNELS)
    if(EXISTS "${TFLM}/${kernel}")
        list(APPEND kernels "${TFLM}/${kernel}")
    elseif(NOT kernel MATCHES "_common\\.cc$")
        message(FATAL_ERROR "TFLM=${TFLM} must have the kernels of the model, and has no ${kernel}")
    endif()
endforeach()

set(micro "${TFLM}/tensorflow/lite/micro")
set(lite "${TFLM}/tensorflow/lite")
file(GLOB core "${micro}/*.cc" "${micro}/arena_allocator/*.cc" "${micro}/memory_planner/*.cc"
    "${micro}/tflite_bridge/*.cc" "${lite}/core/api/*.cc" "${lite}/core/c/*.cc" "${lite}/kernels/*.cc"
    "${lite}/kernels/internal/*.cc" "${lite}/kernels/internal/reference/*.cc" "${lite}/schema/*.cc"
    "${TFLM}/tensorflow/compiler/mlir/lite/core/api/*.cc"
    "${TFLM}/tensorflow/compiler/mlir/lite/schema/*.cc")
list(FILTER core EXCLUDE REGEX "_test\\.cc$|/(test|fake|mock|recording)_[a-z_]*\\.cc$|/debug_log\\.cc$")

add_library(tflm OBJECT ${core} "${micro}/kernels/kernel_util.cc"
    "${micro}/kernels/micro_tensor_utils.cc" ${kernels})
set_source_files_properties(${kernels} PROPERTIES COMPILE_OPTIONS -O2)
target_compile_definitions(tflm PUBLIC TF_LITE_STATIC_MEMORY)

# Not the whole of a folder such as /usr/include, which has a C library of its own.
set(headers "${CMAKE_CURRENT_BINARY_DIR}/headers")
file(MAKE_DIRECTORY "${headers}")
file(CREATE_LINK "${flatbuffers}/flatbuffers" "${headers}/flatbuffers" SYMBOLIC)
target_include_directories(tflm PUBLIC "${TFLM}" "${headers}" "${GEMMLOWP}" "${KISSFFT}" tflm/headers)

# Flatbuffers of another version than the checkout asks for are taken as they are.
if(FLATBUFFERS)
    target_compile_options(tflm PUBLIC
        "SHELL:-include \"${CMAKE_CURRENT_SOURCE_DIR}/tflm/headers/flatbuffers_version.h\"")
    file(STRINGS "${lite}/schema/schema_generated.h" asked REGEX "FLATBUFFERS_VERSION_[A-Z]+ == ")
    foreach(line IN LISTS asked)
        string(REGEX REPLACE ".*FLATBUFFERS_VERSION_([A-Z]+) == ([0-9]+).*" "ASKED_\\1=\\2" define "${line}")
        target_compile_definitions(tflm PUBLIC ${define})
    endforeach()
endif()
