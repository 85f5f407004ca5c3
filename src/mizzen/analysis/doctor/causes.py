"""Why an artifact does not run on a board: the causes there are, and what to do about each.

Tests make the faults that an emulated board can have, and look whether they are named; where it is
possible, they do as the advice says, and run again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Cause(Enum):
    """What is wrong; the value is its name in JSON."""

    OTHER_PRODUCT = "other-product"
    OTHER_SIZE = "other-size"
    OTHER_ARCHITECTURE = "other-architecture"
    PAYLOAD_FORM = "payload-form"
    DRIVER_ACTION = "driver-action"
    MODEL_UNALIGNED = "model-unaligned"
    ARENA_UNALIGNED = "arena-unaligned"
    ARENA_TOO_SMALL = "arena-too-small"
    FAST_TOO_SMALL = "fast-memory-too-small"
    POOL_TOO_SMALL = "pool-too-small"
    MEMORY_TOO_SMALL = "memory-too-small"
    UNREACHED = "memory-unreached"
    STREAM_UNREADABLE = "stream-unreadable"
    WEIGHTS_DAMAGED = "weights-damaged"
    STREAM_BRANCH = "stream-branch"
    HARDWARE = "hardware"
    HAZARD = "hazard"
    OPERATOR_MISSING = "operator-missing"
    RESOLVER_FULL = "resolver-full"
    NO_KERNEL = "no-kernel"
    TYPE_UNSUPPORTED = "type-unsupported"
    FILE_FORMAT = "file-format"
    NPU_NOT_THERE = "npu-not-there"
    DRIVER_PRODUCT = "driver-for-another-product"
    DRIVER_NOT_STARTED = "driver-not-started"
    HEAP_EMPTY = "heap-empty"
    NO_INTERRUPT = "no-interrupt"
    NPU_BUSY = "npu-busy"
    BACKEND_MISSING = "backend-missing"
    INPUTS_DIFFER = "inputs-differ"
    OTHER_FILE = "other-file"
    FILE_CHANGED = "file-changed"
    APART_OF_ANOTHER = "file-apart-of-another-program"
    APART_DAMAGED = "file-apart-damaged"
    KERNELS_DIFFER = "kernels-differ"
    INDEX_OUTSIDE = "index-outside"
    EARLIER = "earlier-failure"


@dataclass(frozen=True, slots=True)
class CauseText:
    """A cause in words: what is wrong, and what to do."""

    title: str
    advice: str


_CHIP = "compile the network for the NPU of the chip: --accelerator-config"

TEXTS: dict[Cause, CauseText] = {
    Cause.OTHER_PRODUCT: CauseText("the stream is for another product", _CHIP),
    Cause.OTHER_SIZE: CauseText("the stream is for another number of MACs", _CHIP),
    Cause.OTHER_ARCHITECTURE: CauseText(
        "the stream is for a newer architecture than the chip's",
        "compile with a compiler that knows the chip; Mizzen's streams ask for the oldest",
    ),
    Cause.PAYLOAD_FORM: CauseText(
        "the driver does not know the form of the payload",
        "compile with --cop-format COP1, which Vela and Mizzen write by default",
    ),
    Cause.DRIVER_ACTION: CauseText(
        "the payload has a driver action that the driver does not know",
        "compile the network again with a current compiler",
    ),
    Cause.MODEL_UNALIGNED: CauseText(
        "the command stream does not start at a multiple of 16 bytes",
        "align the array that holds the model: __attribute__((aligned(16)))",
    ),
    Cause.ARENA_UNALIGNED: CauseText(
        "a base address is no multiple of 16 bytes",
        "align the arena, the model and the fast memory: __attribute__((aligned(16)))",
    ),
    Cause.ARENA_TOO_SMALL: CauseText(
        "the arena is too small",
        "give the arena more bytes, or compile with --optimise Size",
    ),
    Cause.FAST_TOO_SMALL: CauseText(
        "the fast memory of the driver is too small",
        "give ethosu_init a larger fast memory, or compile with a smaller --arena-cache-size",
    ),
    Cause.POOL_TOO_SMALL: CauseText(
        "an ExecuTorch allocator is too small",
        "raise the pool that the message names, in the build of the runner",
    ),
    Cause.MEMORY_TOO_SMALL: CauseText(
        "a memory of the board is too small", "use another memory mode, or a smaller network"
    ),
    Cause.UNREACHED: CauseText(
        "the NPU does not reach memory that it needs",
        "place the data in a memory that the NPU reaches, let the security state of NPU and "
        "memory agree, and clock the memory before the inference",
    ),
    Cause.STREAM_UNREADABLE: CauseText(
        "the NPU could not parse the command stream",
        "write the model to the device again and compare its bytes there; clean the data cache "
        "before the inference; compile for this product",
    ),
    Cause.WEIGHTS_DAMAGED: CauseText(
        "the NPU could not decode the weights",
        "write the model to the device again, compare its bytes there, and let nothing write there",
    ),
    Cause.STREAM_BRANCH: CauseText(
        "a branch of the command stream left the stream",
        "write the model to the device again, and compare its bytes there",
    ),
    Cause.HARDWARE: CauseText(
        "the NPU's own memory had an ECC fault", "reset the NPU; ask the chip's vendor if it stays"
    ),
    Cause.HAZARD: CauseText(
        "the command stream is unsound",
        "compile the network again; `mizzen check --artifact` says what is wrong",
    ),
    Cause.OPERATOR_MISSING: CauseText(
        "the resolver lacks an operator",
        "add the operator to the resolver of the firmware, and raise the resolver's size",
    ),
    Cause.RESOLVER_FULL: CauseText(
        "the resolver has room for fewer operators",
        "raise the number in MicroMutableOpResolver<N>",
    ),
    Cause.NO_KERNEL: CauseText(
        "no runtime of a device has a kernel for an operator",
        "replace the operator in the model; `mizzen check` says where each one runs",
    ),
    Cause.TYPE_UNSUPPORTED: CauseText(
        "a kernel on the CPU does not take the type of its tensors",
        "quantise the network to int8, with int8 inputs and outputs",
    ),
    Cause.FILE_FORMAT: CauseText(
        "what the firmware reads is no such file, or one of another version",
        "check the address and the length that the firmware reads the model from",
    ),
    Cause.NPU_NOT_THERE: CauseText(
        "the NPU does not answer at its address, or not in this security state",
        "check base address, clock, power and security attribution of the NPU; plain QEMU has no "
        "NPU, and `mizzen emulate` has one",
    ),
    Cause.DRIVER_PRODUCT: CauseText(
        "the driver was built for another product",
        "build the driver with -DETHOSU_TARGET_NPU_CONFIG of the chip",
    ),
    Cause.DRIVER_NOT_STARTED: CauseText(
        "no NPU is registered with the driver",
        "call ethosu_init before the interpreter is made, and look at what it returns",
    ),
    Cause.HEAP_EMPTY: CauseText(
        "the driver could not allocate what it needs",
        "give the heap a KiB more; in Zephyr, CONFIG_HEAP_MEM_POOL_SIZE and "
        "CONFIG_COMMON_LIBC_MALLOC_ARENA_SIZE",
    ),
    Cause.NO_INTERRUPT: CauseText(
        "the NPU's interrupt did not come in time",
        "enable the NPU's interrupt, let its handler call ethosu_irq_handler, and give it time",
    ),
    Cause.NPU_BUSY: CauseText(
        "an inference was started before the last one was waited for",
        "call ethosu_wait after each ethosu_invoke_async",
    ),
    Cause.BACKEND_MISSING: CauseText(
        "the Ethos-U backend is not linked into the firmware",
        "link executorch_delegate_ethos_u as a whole archive",
    ),
    Cause.INPUTS_DIFFER: CauseText(
        "the inputs or outputs are not those that the program was compiled for",
        "give tensors of the shapes and types that `mizzen inspect` lists",
    ),
    Cause.OTHER_FILE: CauseText(
        "this artifact is not the file on the board",
        "give doctor the file that the firmware was built with: `mizzen compile` and Vela call it "
        "NAME_vela.tflite",
    ),
    Cause.FILE_CHANGED: CauseText(
        "the artifact's file is not as it was written",
        "get the file again, or compile the network again, and write that to the device",
    ),
    Cause.APART_OF_ANOTHER: CauseText(
        "the file of weights or the model that lies apart is of another program",
        "write the file to the device that was exported with this firmware, at MODEL_FILE_ADDRESS, "
        "or build the firmware of the export that the file is from",
    ),
    Cause.APART_DAMAGED: CauseText(
        "the file of weights or the model that lies apart is not whole",
        "write the whole file to MODEL_FILE_ADDRESS again, and compare its bytes there",
    ),
    Cause.KERNELS_DIFFER: CauseText(
        "a kernel of the firmware does not take what the container gives it",
        "build the firmware with the runtime and the model of one `mizzen export`",
    ),
    Cause.INDEX_OUTSIDE: CauseText(
        "an index is outside of its table",
        "give index inputs only rows that their tables have, and ask the runtime only for inputs "
        "and outputs that the network has",
    ),
    Cause.EARLIER: CauseText(
        "something failed before this", "read the first failure in the log, not the last one"
    ),
}
"""Every cause in words."""
