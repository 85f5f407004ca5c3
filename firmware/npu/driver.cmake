# Arm's driver, as the library ethosu: from the checkout of ethos-u-core-driver that DRIVER names. It
# takes CMSIS only for two instructions (npu/cmsis). Assertions and logs are left out: they need a
# C library. With -DCOUNTERS=ON its callbacks read the NPU's performance counters.
if(NOT EXISTS "${DRIVER}/src/ethosu_driver.c")
    message(FATAL_ERROR
        "DRIVER=${DRIVER} must name a checkout of ethos-u-core-driver, and has no src/ethosu_driver.c")
endif()
if(MODEL_NPU STREQUAL "u85")
    set(ethosu_device u85)
else()
    set(ethosu_device u55_u65)
endif()
string(TOUPPER "ETHOS${MODEL_NPU}" ethosu_product)
add_library(ethosu OBJECT npu/ethosu.c "${DRIVER}/src/ethosu_driver.c"
    "${DRIVER}/src/ethosu_pmu.c" "${DRIVER}/src/ethosu_device_${ethosu_device}.c")
target_include_directories(ethosu PUBLIC "${DRIVER}/include" npu npu/cmsis PRIVATE "${DRIVER}/src" board)
target_compile_definitions(ethosu PUBLIC ETHOSU_ARCH=${MODEL_NPU} ${ethosu_product}
    ETHOSU_LOG_ENABLE=0 PRIVATE NDEBUG)
if(COUNTERS)
    target_sources(ethosu PRIVATE npu_counters.c)
    target_include_directories(ethosu PRIVATE .)
    target_compile_definitions(ethosu PUBLIC MIZZEN_COUNTERS=2)
endif()
target_compile_options(ethosu PRIVATE -Wno-unused-parameter)
