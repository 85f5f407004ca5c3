# Arm's driver, from the checkout of ethos-u-core-driver that DRIVER names. It takes CMSIS only for
# two instructions (npu/cmsis). Assertions and logs are left out: they need a C library. With COUNTERS=1
# its callbacks read the NPU's performance counters.
$(call checkout,DRIVER,.,driver,src/ethosu_driver.c,a checkout of ethos-u-core-driver)

ETHOSU := $(BUILD)/checkout/driver
ETHOSU_DEVICE := $(if $(filter u85,$(NPU)),u85,u55_u65)
ETHOSU_FLAGS := -I$(ETHOSU)/include -Inpu -Inpu/cmsis -DETHOSU_ARCH=$(NPU) -D$(PRODUCT) \
    -DETHOSU_LOG_ENABLE=0
ETHOSU_OBJECTS := $(BUILD)/npu/ethosu.o \
    $(patsubst %,$(BUILD)/driver/%.o,ethosu_driver ethosu_pmu ethosu_device_$(ETHOSU_DEVICE))
ifneq ($(COUNTERS),)
ETHOSU_FLAGS += -DMIZZEN_COUNTERS=2
ETHOSU_OBJECTS += $(BUILD)/npu_counters.o
endif
CFLAGS += $(ETHOSU_FLAGS)
CXXFLAGS += $(ETHOSU_FLAGS)

$(BUILD)/driver/%.o: $(ETHOSU)/src/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -I$(ETHOSU)/src -DNDEBUG -Wno-unused-parameter -c $< -o $@
