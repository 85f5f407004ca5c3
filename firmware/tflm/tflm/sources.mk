# TensorFlow Lite Micro, from the checkout that TFLM names, and the headers of others that it takes:
# its own make brings them once, or they are named, as FLATBUFFERS=/usr/include and
# GEMMLOWP=/usr/include/gemmlowp (Debian's libflatbuffers-dev and libgemmlowp-dev).
$(call checkout,TFLM,.,tflm,tensorflow/lite/micro/micro_interpreter.h,a checkout of tflite-micro)

TFLM_ROOT := $(BUILD)/checkout/tflm
TFLM_MICRO := $(TFLM_ROOT)/tensorflow/lite/micro
TFLM_LITE := $(TFLM_ROOT)/tensorflow/lite
TFLM_DOWNLOADS := $(TFLM)/tensorflow/lite/micro/tools/make/downloads
TFLM_ONCE := (run once in the checkout of tflite-micro: make -f \
    tensorflow/lite/micro/tools/make/Makefile third_party_downloads)

# Flatbuffers of another version than the checkout asks for are taken as they are.
ifneq ($(FLATBUFFERS),)
TFLM_FLAGS := -include tflm/headers/flatbuffers_version.h $(shell sed -n \
    's/.*FLATBUFFERS_VERSION_\([A-Z]*\) == \([0-9]*\).*/-DASKED_\1=\2/p' \
    $(TFLM_LITE)/schema/schema_generated.h)
endif
FLATBUFFERS ?= $(TFLM_DOWNLOADS)/flatbuffers/include
GEMMLOWP ?= $(TFLM_DOWNLOADS)/gemmlowp
KISSFFT ?= $(TFLM_DOWNLOADS)/kissfft
$(call checkout,FLATBUFFERS,flatbuffers,flatbuffers,flatbuffers.h,the headers of flatbuffers \
    $(TFLM_ONCE))
$(call checkout,GEMMLOWP,.,gemmlowp,fixedpoint/fixedpoint.h,the headers of gemmlowp $(TFLM_ONCE))
ifneq ($(findstring kiss_fft_wrappers,$(KERNELS)),)
$(call checkout,KISSFFT,.,kissfft,kiss_fft.h,kissfft $(TFLM_ONCE))
endif

TFLM_FLAGS += -DTF_LITE_STATIC_MEMORY -I$(TFLM_ROOT) -I$(BUILD)/checkout \
    -I$(BUILD)/checkout/gemmlowp -I$(BUILD)/checkout/kissfft -Itflm/headers

# Newer versions split kernels, older ones have no second file.
TFLM_MISSING := $(filter-out $(patsubst $(TFLM_ROOT)/%,%,$(wildcard $(addprefix \
    $(TFLM_ROOT)/,$(KERNELS)))) %_common.cc,$(KERNELS))
ifneq ($(TFLM_MISSING),)
$(error TFLM=$(TFLM) must have the kernels of the model$(comma) and has no $(TFLM_MISSING))
endif

TFLM_KERNELS := $(wildcard $(addprefix $(TFLM_ROOT)/,$(KERNELS)))
TFLM_CORE := $(filter-out %_test.cc %/debug_log.cc $(TFLM_MICRO)/test_% $(TFLM_MICRO)/fake_% \
    $(TFLM_MICRO)/mock_% %/recording_micro_allocator.cc \
    %/recording_single_arena_buffer_allocator.cc,$(wildcard $(TFLM_MICRO)/*.cc \
    $(TFLM_MICRO)/arena_allocator/*.cc $(TFLM_MICRO)/memory_planner/*.cc \
    $(TFLM_MICRO)/tflite_bridge/*.cc $(TFLM_LITE)/core/api/*.cc $(TFLM_LITE)/core/c/*.cc \
    $(TFLM_LITE)/kernels/*.cc $(TFLM_LITE)/kernels/internal/*.cc \
    $(TFLM_LITE)/kernels/internal/reference/*.cc $(TFLM_LITE)/schema/*.cc \
    $(TFLM_ROOT)/tensorflow/compiler/mlir/lite/core/api/*.cc \
    $(TFLM_ROOT)/tensorflow/compiler/mlir/lite/schema/*.cc) \
    $(TFLM_MICRO)/kernels/kernel_util.cc $(TFLM_MICRO)/kernels/micro_tensor_utils.cc)

TFLM_OBJECTS := $(patsubst $(TFLM_ROOT)/%.cc,$(BUILD)/tflm/%.o,$(TFLM_CORE) $(TFLM_KERNELS))
$(patsubst $(TFLM_ROOT)/%.cc,$(BUILD)/tflm/%.o,$(TFLM_KERNELS)): OPTIMISED := -O2

$(BUILD)/tflm/%.o: $(TFLM_ROOT)/%.cc model.mk
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(OPTIMISED) -c $< -o $@
