"""Logs that people pasted in public threads, and what each is about.

Only the lines of the runtimes and drivers are taken, as facts; `cause` is what the thread found, or
what the text itself says where it found nothing. None is a log that says no cause.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PastedLog:
    """A log: the thread it is from, its lines, the first cause, whether it is a failure."""

    thread: str
    text: str
    cause: str | None
    failed: bool = True


PASTED = (
    PastedLog(
        "community.nxp.com, MCX, 2029981",
        """Initialize Arm Ethos-U
E: NPU error(s) occured during inference. (ethosu_driver.c:542)
E: NPU status=0x00000804, qread=0, cmd_end_reached=0 (ethosu_device_u55_u65.c:182)
Node ethos-u (number 0) failed to invoke with status 1
E: Invoke failed for inference: job=job (inference_process.cpp:281)
Inference status: failed""",
        "memory-unreached",
    ),
    PastedLog(
        "discuss.mlplatform.org, 125",
        "INFO - Ethos-U device initialised\nERROR - NPU config mismatch",
        "other-size",
    ),
    PastedLog(
        "HimaxWiseEyePlus/Seeed_Grove_Vision_AI_Module_V2#36",
        "Failed to resize buffer. Requested: 11373728, available 1135736, missing: 10237992",
        "arena-too-small",
    ),
    PastedLog(
        "HimaxWiseEyePlus/Seeed_Grove_Vision_AI_Module_V2#49",
        "b'Failed to get registration from op code CUSTOM'",
        "operator-missing",
    ),
    PastedLog(
        "zephyrproject-rtos/zephyr#42580",
        """E: Failed to switch security state and privilege level (ethosu_device_u55_u65.c:244)

E: Failed to initialize Ethos-U device (ethosu_driver.c:418)

*** Booting Zephyr OS build zephyr-v3.2.0-1611-g47a6e23aab63 ***
sender 0: Sending inference. job=0x30002a68, name=keyword_spotting_cnn_small_int8
runner 0: Received inference job. job=0x30002a68
W: No NPU driver handle available.
[00:00:00.000,000] <err> ethos_u: Failed to initialize NPU with ethosu_init().""",
        "npu-not-there",
    ),
    PastedLog(
        "tensorflow/tflite-micro#1038",
        """Person score: -115 No person score: 72
Invoke() called after initialization failed

Invoke failed.""",
        "earlier-failure",
    ),
    PastedLog(
        "tensorflow/tflite-micro#282",
        """Type UINT8 (3) not supported.
Node DEPTHWISE_CONV_2D (number 0) failed to invoke with status 1""",
        "type-unsupported",
    ),
    PastedLog(
        "tensorflow/tensorflow#40704",
        """Didn't find op for builtin opcode 'LOGISTIC' version '1'
Failed to get registration from op code LOGISTIC""",
        "operator-missing",
    ),
    PastedLog(
        "tensorflow/tflite-micro#1412",
        "Failed to get registration from op code CUSTOM\n AllocateTensors() failed",
        "operator-missing",
    ),
    PastedLog(
        "tensorflow/tflite-micro#302",
        """Didn't find op for builtin opcode 'AVERAGE_POOL_2D' version '2'.
An older version of this builtin might be supported.
Are you using an old TFLite binary with a newer model?

Failed to get registration from op code AVERAGE_POOL_2D""",
        "operator-missing",
    ),
    PastedLog(
        "tensorflow/tflite-micro#284, first",
        "Didn't find op for builtin opcode 'SOFTMAX' version '2'",
        "operator-missing",
    ),
    PastedLog(
        "tensorflow/tflite-micro#284, second",
        "Needed 627488 but only 203072 was available.",
        "arena-too-small",
    ),
    PastedLog(
        "tensorflow/tflite-micro#2196",
        "Didn't find op for builtin opcode 'QUANTIZE'\n"
        "Failed to get registration from op code QUANTIZE",
        "operator-missing",
    ),
    PastedLog(
        "tensorflow/tflite-micro#1458",
        """Testing LoadModelAndPerformInference
Failed to allocate tail memory. Requested: 2088, available 1552, missing: 536
Failed to allocate memory for context->eval_tensors, 2088 bytes required
Failed starting model allocation.""",
        "arena-too-small",
    ),
    PastedLog("tensorflow/tflite-micro#1249", "Failed to allocate temp memory.", "arena-too-small"),
    PastedLog(
        "tensorflow/tensorflow#39673",
        """Failed to allocate memory. Requested: 400, available 264, missing: 136
Failed to allocate memory for node_and_registrations.
AllocateTensors() failed""",
        "arena-too-small",
    ),
    PastedLog(
        "tensorflow/tensorflow#35794",
        "Failed to allocate memory for tensor_info, 1320 bytes required\nAllocateTensors() failed",
        "arena-too-small",
    ),
    PastedLog(
        "xmos/lib_tflite_micro#171",
        """node 33    OP_XC_binaryi16                  282
Type INT16 (7) is not supported by Maximum/Minimum.

ERROR: Node 34 (OP_MAXIMUM) invocation failed with status 1""",
        "type-unsupported",
    ),
    PastedLog(
        "ultralytics/ultralytics#24171, first",
        "E [executorch:memory_allocator.h:105 allocate()] Memory allocation failed: 6144000B "
        "requested (adjusted for alignment), 2000B available\n"
        "F [executorch:arm_executor_runner.cpp:287 main()] In function main(), assert failed "
        "(buffer != nullptr): Could not allocate memory for memory planned buffer size 6144000",
        "pool-too-small",
    ),
    PastedLog(
        "ultralytics/ultralytics#24171, second",
        "E [executorch:memory_allocator.h:105 allocate()] Memory allocation failed: 8197520B "
        "requested (adjusted for alignment), 2000B available\n"
        "E [executorch:EthosUBackend.cpp:173 execute()] Failed to allocate scratch buffer of "
        "8197520 bytes from temp_allocator",
        "pool-too-small",
    ),
    PastedLog(
        "pytorch/executorch#13399",
        "I [executorch:arm_executor_runner.cpp:521 runner_init()] Setting up planned buffer 0, "
        "size 48.\nE [executorch:operator_registry.cpp:256 get_op_function_from_registry()] "
        "kernel 'aten::exp.out' not found.\nI [executorch:operator_registry.cpp:257 "
        "get_op_function_from_registry()] dtype: 6 | dim order: [",
        "operator-missing",
    ),
    PastedLog(
        "pytorch/executorch#1199",
        "11-24 09:35:11.099: I/ETLOG(3388): Missing operator: [4] aten::native_dropout.out",
        "operator-missing",
    ),
    PastedLog(
        "pytorch/executorch#4462",
        "Execution of method forward failed with status 0x14",
        "operator-missing",
    ),
    PastedLog(
        "pytorch/executorch#14804",
        "Execution of method forward failed with status 0x12",
        "inputs-differ",
    ),
    PastedLog(
        "pytorch/executorch#3696",
        "Backend XnnpackBackend is not registered.",
        "backend-missing",
    ),
    PastedLog(
        "pytorch/torchchat#662",
        """[program.cpp:130] InternalConsistency verification requested but not available
[method.cpp:66] Backend XnnpackBackend is not registered.""",
        "backend-missing",
    ),
    PastedLog(
        "pytorch/executorch#2533",
        """I executorch:main.cpp:68] Model PTE file loaded. Size: 960 bytes.
E executorch:program.cpp:108] Program identifier 'X..' != expected 'ET12'
I executorch:main.cpp:72] Program loading failed @ 0x0x20000E20: 0x23""",
        "file-format",
    ),
    PastedLog("Seeed-Studio/ModelAssistant#319", "Invoke failed", None),
    PastedLog(
        "Seeed-Studio/ModelAssistant#276",
        "Invoke Failed. please check device connection",
        None,
    ),
    PastedLog(
        "apache/tvm#15643",
        """I: Initializing NPU: base_address=0x48102000, fast_memory=0x0, fast_memory_size=0
I: Soft reset NPU
I: New NPU driver registered (handle: 0x0x20000de0, NPU: 0x0x48102000)
D: ethosu_invoke_async(): OPTIMIZER_CONFIG
I: Optimizer release nbr: 0 patch: 1
I: Optimizer config. product=0, cmd_stream_version=0, macs_per_cc=8, shram_size=48, custom_dma=0
I: Optimizer config. arch version: 1.0.6""",
        None,
        failed=False,
    ),
    PastedLog(
        "pytorch/executorch#16784",
        """I: invoke_async: base_addr[0]=0x00000000_3ab80b40 size=3484864
I: invoke_async: base_addr[1]=0x00000000_3401f000 size=1509728""",
        None,
        failed=False,
    ),
)
"""Thirty-one logs of twenty-seven threads."""

RECORDED = (
    PastedLog(
        "another number of MACs",
        """*** Booting Zephyr OS build afc1c5bfe1d2 ***
E: NPU config mismatch. npu.macs_per_cc=8, optimizer.macs_per_cc=7 (ethosu_device_u55_u65.c:354)
E: Failed to invoke inference. (ethosu_driver.c:723)
mizzen: step 0: a fault of the NPU""",
        "other-size",
    ),
    PastedLog(
        "a heap without room",
        """E: Failed to allocate memory for Ethos-U device (ethosu_device_u55_u65.c:75)
E: Failed to initialize Ethos-U device (ethosu_driver.c:438)
*** Booting Zephyr OS build afc1c5bfe1d2 ***""",
        "heap-empty",
    ),
    PastedLog(
        "a driver of another product",
        """E: Failed to initialize device. Driver has not been compiled for this product \
(ethosu_device_u55_u65.c:89)
E: Failed to initialize Ethos-U device (ethosu_driver.c:438)
*** Booting Zephyr OS build afc1c5bfe1d2 ***""",
        "driver-for-another-product",
    ),
    PastedLog(
        "a stream that cannot be parsed",
        """E: NPU error(s) occured during inference. (ethosu_driver.c:578)
E: NPU status=0x00000010, qread=0, cmd_end_reached=0 (ethosu_device_u55_u65.c:198)
mizzen: step 0: a fault of the NPU""",
        "stream-unreadable",
    ),
    PastedLog(
        "an arena that the NPU does not reach",
        """E: NPU error(s) occured during inference. (ethosu_driver.c:578)
E: NPU status=0x00001004, qread=288, cmd_end_reached=0 (ethosu_device_u55_u65.c:198)
mizzen: step 0: a fault of the NPU""",
        "memory-unreached",
    ),
)
"""Logs of Arm's driver 0.16 in Zephyr 3.7.1, with faults made in the emulator."""

TEXTS = (
    ("NPU config mismatch. npu.product=0, optimizer.product=1", "other-product",
     "the chip has an Ethos-U55, and the stream is for an Ethos-U65"),
    ("NPU config mismatch. npu.macs_per_cc=6, optimizer.macs_per_cc=8", "other-size",
     "the chip has 64 MACs, and the stream is for 256"),
    ("NPU config mismatch. npu.cmd_stream_version=0, optimizer.cmd_stream_version=1",
     "other-product", "the chip has command stream version 0, the stream 1"),
    ("NPU config mismatch. npu.custom_dma=0, optimizer.custom_dma=1", "other-product",
     "the stream needs a custom DMA, which the chip has not"),
    ("NPU config mismatch. npu.num_axi_ext=1, optimizer.num_axi_ext=2", "other-size",
     "AXI ports: the chip has 1, and the stream is for 2"),
    ("NPU arch mismatch. npu.arch=1.0.6, optimizer.arch=1.1.0", "other-architecture",
     "the chip has architecture 1.0.6, and the stream is for 1.1.0"),
    ("Command stream addr 0x20001004 not aligned to 16 bytes", "model-unaligned",
     "the command stream lies at 0x20001004"),
    ("Base addr 1: 0x31000008not aligned to 16 bytes", "arena-unaligned",
     "base address 1 is 0x31000008, which is no multiple of 16"),
    ("Custom Operator Payload: 844123971 is not correct, expected 31504f43", "payload-form",
     "the payload starts with COP2"),
    ("custom_data_size=0x1a2 not a multiple of 4", "payload-form",
     "the payload has 0x1a2 bytes, which are not whole words"),
    ("UNSUPPORTED driver_action_command: 4", "driver-action",
     "the payload asks for driver action 4"),
    ("Fast memory area too small. fast_memory_size=65536, base_addr_size=393216",
     "fast-memory-too-small",
     "the driver has 65536 bytes of fast memory, and the network needs 393216"),
    ("Failed to initialize device. Driver has not been compiled for this product",
     "driver-for-another-product", "CONFIG names another product than the driver was built for"),
    ("E: Soft reset timed out", "npu-not-there", "the NPU does not end its reset"),
    ("No NPU driver handle registered at address 0x30000100.", "driver-not-started",
     "the driver waits for an NPU, and none is registered or free"),
    ("Failed to create driver semaphore", "heap-empty",
     "a semaphore, a mutex or the device could not be allocated"),
    ("E: Failed to allocate memory for Ethos-U device", "heap-empty",
     "a semaphore, a mutex or the device could not be allocated"),
    ("Inference already running, or waiting to be cleared...", "npu-busy",
     "the last inference was not ended"),
    ("NPU inference timed out.", "no-interrupt", "no interrupt came in time"),
    ("Failed to request power for Ethos-U", "npu-not-there", "the NPU could not be powered"),
    ("Failed to invoke inference.", None, "the driver did not start the inference"),
    ("ERROR - Failed to initialise Ethos-U", "npu-not-there", "the NPU could not be set up"),
    ("ERROR - Inference failed", None, "the inference failed"),
    ("Couldn't register builtin op #3, resolver size ", "resolver-full",
     "an operator found no room in the resolver"),
    ("Model provided is schema version 1179011410 not equal to supported version 3.",
     "file-format", "the bytes at the model's address say schema version 1179011410"),
    ("Nbr of offline buffer offsets (10) in metadata not equal nbr tensors (12)", "file-format",
     "the network's memory plan is of another network"),
    ("CO_TYPE != ETHOSU", "file-format", "the custom operator is no Ethos-U's"),
    ("kernel 'aten::exp.out' not found.", "operator-missing",
     "the firmware has no kernel aten::exp.out"),
    ("Missing operator: [4] aten::native_dropout.out", "operator-missing",
     "the firmware has no kernel aten::native_dropout.out"),
    ("Malformed vela_bin_stream found", "file-format", "the delegate's data are damaged"),
    ("Failed to parse product config from command stream", "payload-form",
     "the driver could not tell which NPU the stream is for"),
    ("ethosu_reserve_driver_ex failed", "other-product",
     "no registered NPU is the one that the stream is for"),
    ("Input tensor sizes do not match", "inputs-differ",
     "a tensor has another size or type than the program"),
    ("Ethos-U invocation failed error (-1)", None, "the driver returned -1"),
    ("CALL_DELEGATE execute failed at instruction 2: 0x23", None,
     "the delegate failed with 0x23"),
    ("<err> ethos_u: Failed to take semaphore with error - -11", "no-interrupt",
     "a semaphore was not given in time"),
    ("Ethos-U inference timed out after 60000000000 ns", "no-interrupt",
     "the kernel's driver saw no end of the inference"),
    ("Ethos-U Linux driver invocation failed: bad ioctl", None,
     "the kernel's driver reported a failed inference"),
    ("mizzen: ok", None, "the firmware ended well"),
    ("mizzen: step 0: a container for another NPU", "other-size",
     "the container is for another NPU than the chip's"),
    ("mizzen: step 0: too little memory, or memory that is not aligned to 16 bytes",
     "arena-too-small", "the arena or the fast memory is too small, or not aligned to 16 bytes"),
    ("mizzen: step 3: a kernel that the firmware lacks", "operator-missing",
     "the firmware lacks a kernel"),
    ("mizzen: step 0: a damaged container", "file-format",
     "the container is damaged"),
    ("mizzen: step 1: an NPU that does not end", "no-interrupt", "the NPU did not end"),
    ("mizzen: step 1: a fault of the NPU", None, "the NPU stopped with a fault in step 1"),
    ("network_open: a fault of the NPU", None, "the NPU stopped with a fault"),
    ("mizzen: step 0: all is well", None, "the runtime found no error"),
    ("mizzen: step 0: no container, or one of another version", "file-format",
     "there is no container, or one of another version than the runtime's"),
    ("mizzen: step 2: a kernel call with arguments that its kernel does not take",
     "kernels-differ", "a kernel does not take the arguments of its call"),
    ("mizzen: step 2: an index among the data that is outside of its table", "index-outside",
     "an index is outside of its table"),
    ("mizzen: step 0: a file of weights or a model that is of another program",
     "file-apart-of-another-program", "the file that lies apart is of another program"),
    ("mizzen: step 0: a file of weights or a model that is not whole", "file-apart-damaged",
     "the file that lies apart is not whole"),
    ("mizzen: step 0: an unknown status", None,
     "the runtime returned a status that it has no text for"),
)  # fmt: skip
"""Texts as their sources write them: with numbers, the cause, and what they mean."""
