"""What drivers and runtimes write when an inference fails: one row for each text.

Names of groups in a pattern say what the text has there: `product` and `log2` are numbers of the
CONFIG register, which people know as names and MACs.

Ref: Arm Ethos-U core driver 0.16 and 1.0 (ethosu_driver.c, ethosu_device_*.c); tflite-micro
(micro_op_resolver.cc, micro_mutable_op_resolver.h, micro_interpreter_graph.cc, arena_allocator);
ExecuTorch 1.5 (method.cpp, memory_allocator.h, error.h, EthosUBackend*.cpp); Zephyr 4
(drivers/misc/ethos_u).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from mizzen.analysis.doctor.causes import Cause
from mizzen.targets.ethos_u.machine.driver import Product

LONGEST_NUMBER = 20
"""Digits of 64 bits."""


class Source(Enum):
    """Whose text it is."""

    DRIVER = "Ethos-U core driver"
    TFLM = "TensorFlow Lite Micro"
    EXECUTORCH = "ExecuTorch"
    ZEPHYR = "Zephyr"
    LINUX = "Linux"
    KIT = "Arm's ML embedded evaluation kit"
    MIZZEN = "Mizzen's C runtime"
    ANY = "the firmware"


@dataclass(frozen=True, slots=True)
class Message:
    """A text, and what it means.

    cause    None for one that says that something failed, and not why
    meaning  what it says, with the groups of the pattern in braces
    failure  whether it is one; others are facts that a log has beside
    """

    source: Source
    pattern: re.Pattern[str]
    cause: Cause | None
    meaning: str
    failure: bool = True

    def said(self, match: re.Match[str]) -> str:
        """Return the meaning of a text that matched."""
        groups = {name: readable(name, text or "") for name, text in match.groupdict().items()}
        return self.meaning.format(**groups)


def readable(name: str, text: str) -> str:
    """Return a group of a pattern as people write it: products by name, MACs as a number."""
    if not text.isdecimal() or len(text) > LONGEST_NUMBER:
        return text
    name = name.removeprefix("own_")
    if name.startswith("product"):
        known = [product.name for product in Product if product == int(text)]
        return f"Ethos-{known[0]}" if known else f"product {text}"
    if name == "magic":
        letters = (int(text) & 0xFFFF_FFFF).to_bytes(4, "little").decode("latin-1")
        return letters if letters.isalnum() else f"{int(text):#010x}"
    if name.startswith("log2") and int(text) < 16:
        return str(1 << int(text))
    return text


def _row(
    source: Source, pattern: str, cause: Cause | None, meaning: str, failure: bool = True
) -> Message:
    return Message(source, re.compile(pattern), cause, meaning, failure)


_LACKING = r"Requested: (?P<asked>\d+), available (?P<left>\d+), missing: (?P<missing>\d+)"
_MISMATCH = "NPU config mismatch"


def _mismatch(name: str, group: str) -> str:
    """Return the driver's text of a field that differs; older drivers call the stream so."""
    return (
        rf"{_MISMATCH}.*?npu\.{name}=(?P<{group}_npu>\d+).*?"
        rf"(?:optimizer|stream|opt_cfg)\.{name}=(?P<{group}_stream>\d+)"
    )


_D, _T, _E, _Z = Source.DRIVER, Source.TFLM, Source.EXECUTORCH, Source.ZEPHYR

MESSAGES: tuple[Message, ...] = (
    # The driver: what it compares before the NPU starts.
    _row(_D, _mismatch("product", "product"), Cause.OTHER_PRODUCT,
         "the chip has an {product_npu}, and the stream is for an {product_stream}"),
    _row(_D, _mismatch("macs_per_cc", "log2"), Cause.OTHER_SIZE,
         "the chip has {log2_npu} MACs, and the stream is for {log2_stream}"),
    _row(_D, _mismatch("cmd_stream_version", "version"), Cause.OTHER_PRODUCT,
         "the chip has command stream version {version_npu}, the stream {version_stream}"),
    _row(_D, _mismatch("custom_dma", "dma"), Cause.OTHER_PRODUCT,
         "the stream needs a custom DMA, which the chip has not"),
    _row(_D, _mismatch("num_axi_(?:ext|sram)", "ports"), Cause.OTHER_SIZE,
         "AXI ports: the chip has {ports_npu}, and the stream is for {ports_stream}"),
    _row(_D, r"NPU config mismatch", Cause.OTHER_SIZE,
         "the stream is for another NPU than the chip's"),
    _row(_D, r"NPU arch mismatch.*?npu\.arch=(?P<npu>[\d.]+).*?(?:optimizer|stream)\.arch="
         r"(?P<stream>[\d.]+)", Cause.OTHER_ARCHITECTURE,
         "the chip has architecture {npu}, and the stream is for {stream}"),
    _row(_D, r"[Cc]ommand stream addr(?:ess)? (?P<at>\S+) not aligned", Cause.MODEL_UNALIGNED,
         "the command stream lies at {at}"),
    _row(_D, r"Base addr(?:ess)? (?P<region>\d+): (?P<at>0x[0-9a-fA-F]+) *not aligned to "
         r"(?P<bytes>\d+)", Cause.ARENA_UNALIGNED,
         "base address {region} is {at}, which is no multiple of {bytes}"),
    _row(_D, r"Custom Operator Payload: (?P<magic>\d+) is not correct", Cause.PAYLOAD_FORM,
         "the payload starts with {magic}"),
    _row(_D, r"custom_data_size=(?P<bytes>\S+?),? not a multiple of 4", Cause.PAYLOAD_FORM,
         "the payload has {bytes} bytes, which are not whole words"),
    _row(_D, r"UNSUPPORTED driver_action_command: (?P<action>\d+)", Cause.DRIVER_ACTION,
         "the payload asks for driver action {action}"),
    _row(_D, r"Fast memory area too small\. fast_memory_size=(?P<has>\d+), "
         r"base_addr_size=(?P<needs>\d+)", Cause.FAST_TOO_SMALL,
         "the driver has {has} bytes of fast memory, and the network needs {needs}"),
    # The driver: at the start, and while it waits.
    _row(_D, r"Failed to (?:create|allocate).*(?:semaphore|mutex|Ethos-U device)|"
         r"Failed allocate mutex", Cause.HEAP_EMPTY,
         "a semaphore, a mutex or the device could not be allocated"),
    _row(_D, r"Driver has not been compiled for this product", Cause.DRIVER_PRODUCT,
         "CONFIG names another product than the driver was built for"),
    _row(_D, r"Failed to switch security state", Cause.NPU_NOT_THERE,
         "after a reset, PROT does not say what was asked for"),
    _row(_D, r"Soft reset timed out|Failed to (?:soft-)?reset NPU", Cause.NPU_NOT_THERE,
         "the NPU does not end its reset"),
    _row(_D, r"Failed to initialize Ethos-U device", Cause.NPU_NOT_THERE,
         "the NPU could not be reset and set up"),
    _row(_D, r"No NPU driver handle (?:available|registered)", Cause.DRIVER_NOT_STARTED,
         "the driver waits for an NPU, and none is registered or free"),
    _row(_D, r"Inference already running", Cause.NPU_BUSY, "the last inference was not ended"),
    _row(_D, r"NPU inference timed out", Cause.NO_INTERRUPT, "no interrupt came in time"),
    _row(_D, r"Failed to request power", Cause.NPU_NOT_THERE, "the NPU could not be powered"),
    _row(_D, r"NPU error\(s\) occurr?ed", None, "the NPU stopped with a fault"),
    _row(_D, r"Failed to invoke inference", None, "the driver did not start the inference"),
    # The kit.
    _row(Source.KIT, r"[Ff]ailed to initiali[sz]e Ethos-U|Ethos-U (?:init|device).*failed",
         Cause.NPU_NOT_THERE, "the NPU could not be set up"),
    _row(Source.KIT, r"(?:Inference|Invoke) failed|[Ff]ailed to invoke (?:the )?interpreter", None,
         "the inference failed"),
    # TensorFlow Lite Micro.
    _row(_T, rf"Failed to (?:resize buffer|allocate \w+ memory|allocate memory)\. {_LACKING}",
         Cause.ARENA_TOO_SMALL,
         "the arena must have {missing} bytes more here: {asked} asked for, {left} left"),
    _row(_T, r"Failed to allocate (?:memory for|variable tensor|temp\. memory).*?"
         r"(?P<asked>\d+)(?: bytes required)?", Cause.ARENA_TOO_SMALL,
         "the arena has no room for another {asked} bytes"),
    _row(_T, r"Failed to allocate (?:temp|tail) memory", Cause.ARENA_TOO_SMALL,
         "the arena has no room for what the interpreter needs beside tensors"),
    _row(_T, r"Needed (?P<asked>\d+) but only (?P<left>\d+) was available",
         Cause.ARENA_TOO_SMALL,
         "the tensors need {asked} bytes of the arena, and {left} are left"),
    _row(_T, r"Didn't find op for builtin opcode '(?P<operator>\w+)'", Cause.OPERATOR_MISSING,
         "the resolver has no {operator}"),
    _row(_T, r"Failed to get registration from op code (?P<operator>[\w-]+)",
         Cause.OPERATOR_MISSING, "the resolver has no {operator}"),
    _row(_T, r"Couldn't register (?:builtin|custom) op.*?(?:small \((?P<room>\d+)\))?",
         Cause.RESOLVER_FULL, "an operator found no room in the resolver"),
    _row(_T, r"[Mm]odel provided is schema version (?P<came>\d+)", Cause.FILE_FORMAT,
         "the bytes at the model's address say schema version {came}"),
    _row(_T, r"Nbr of offline buffer offsets .*not equal nbr tensors", Cause.FILE_FORMAT,
         "the network's memory plan is of another network"),
    _row(_T, r"CO_TYPE != ETHOSU", Cause.FILE_FORMAT, "the custom operator is no Ethos-U's"),
    _row(_T, r"Type (?P<type>\w+) \(\d+\)(?: is)? not supported", Cause.TYPE_UNSUPPORTED,
         "a kernel was given {type}"),
    _row(_T, r"Invoke\(\) called after initialization failed", Cause.EARLIER,
         "AllocateTensors had failed"),
    _row(_T, r"AllocateTensors(?:\(\))? (?:has )?failed|Failed starting model allocation", None,
         "the interpreter could not lay out its tensors"),
    _row(_T, r"Node (?P<operator>\S+) \(number (?P<node>\d+)f?\) failed to (?P<what>prepare|invoke)"
         , None, "operator {node}, {operator}, failed to {what}"),
    # ExecuTorch.
    _row(_E, r"Failed to allocate scratch buffer of (?P<asked>\d+) bytes", Cause.POOL_TOO_SMALL,
         "the temporary allocator must hold {asked} bytes of scratch memory"),
    _row(_E, r"Could not allocate memory for memory planned buffer size (?P<asked>\d+)",
         Cause.POOL_TOO_SMALL, "the method allocator must hold a buffer of {asked} bytes"),
    _row(_E, r"Memory allocation failed: (?P<asked>\d+)B requested.*?(?P<left>\d+)B available",
         Cause.POOL_TOO_SMALL, "{asked} bytes were asked for, and {left} were left"),
    _row(_E, r"Backend (?P<backend>\w+) is not (?:registered|available)", Cause.BACKEND_MISSING,
         "nothing in the firmware is called {backend}"),
    _row(_E, r"kernel '(?P<operator>[\w:.]+)' not found|Missing operator: \[\d+\] (?P<other>\S+)",
         Cause.OPERATOR_MISSING, "the firmware has no kernel {operator}{other}"),
    _row(_E, r"Program identifier '.*?' != expected", Cause.FILE_FORMAT,
         "the bytes at the program's address are no .pte"),
    _row(_E, r"Malformed vela_bin_stream", Cause.FILE_FORMAT, "the delegate's data are damaged"),
    _row(_E, r"Failed to parse product config from command stream", Cause.PAYLOAD_FORM,
         "the driver could not tell which NPU the stream is for"),
    _row(_E, r"ethosu_reserve_driver_ex failed", Cause.OTHER_PRODUCT,
         "no registered NPU is the one that the stream is for"),
    _row(_E, r"Input tensor sizes do not match|Program expects \d+ (?:elements|bytes) but got \d+|"
         r"Total output tensor sizes do not match|No matching input copy routine|"
         r"expected Integer \(4 byte\)", Cause.INPUTS_DIFFER,
         "a tensor has another size or type than the program"),
    _row(_E, r"(?:Ethos-U )?invocation failed error \((?P<code>-?\d+)\)", None,
         "the driver returned {code}"),
    _row(_E, r"CALL_DELEGATE execute failed at instruction \d+: (?P<code>0x[0-9a-fA-F]+)", None,
         "the delegate failed with {code}"),
    _row(_E, r"(?:Loading|Execution) of method \w+ failed with status (?P<code>0x[0-9a-fA-F]+)",
         None, "the method failed with {code}"),
    # Zephyr.
    _row(_Z, r"Failed to initialize NPU with ethosu_init", Cause.NPU_NOT_THERE,
         "Zephyr's driver could not set up the NPU"),
    _row(_Z, r"Failed to take semaphore with error", Cause.NO_INTERRUPT,
         "a semaphore was not given in time"),
    # Linux.
    _row(Source.LINUX, r"Ethos-U inference timed out after", Cause.NO_INTERRUPT,
         "the kernel's driver saw no end of the inference"),
    _row(Source.LINUX, r"Ethos-U (?:inference failed with status|Linux driver invocation failed)",
         None, "the kernel's driver reported a failed inference"),
    # Ours.
    _row(Source.MIZZEN, r"mizzen: ok$", None, "the firmware ended well", failure=False),
    _row(Source.MIZZEN, r"mizzen: step \d+: all is well", None, "the runtime found no error",
         failure=False),
    _row(Source.MIZZEN, r"no container, or one of another version", Cause.FILE_FORMAT,
         "there is no container, or one of another version than the runtime's"),
    _row(Source.MIZZEN, r"a damaged container", Cause.FILE_FORMAT, "the container is damaged"),
    _row(Source.MIZZEN, r"too little memory, or memory that is not aligned to 16 bytes",
         Cause.ARENA_TOO_SMALL,
         "the arena or the fast memory is too small, or not aligned to 16 bytes"),
    _row(Source.MIZZEN, r"a kernel that the firmware lacks", Cause.OPERATOR_MISSING,
         "the firmware lacks a kernel"),
    _row(Source.MIZZEN, r"a kernel call with arguments that its kernel does not take",
         Cause.KERNELS_DIFFER, "a kernel does not take the arguments of its call"),
    _row(Source.MIZZEN, r"a container for another NPU", Cause.OTHER_SIZE,
         "the container is for another NPU than the chip's"),
    _row(Source.MIZZEN, r"mizzen: step (?P<step>\d+): a fault of the NPU", None,
         "the NPU stopped with a fault in step {step}"),
    _row(Source.MIZZEN, r"a fault of the NPU", None, "the NPU stopped with a fault"),
    _row(Source.MIZZEN, r"an NPU that does not end", Cause.NO_INTERRUPT, "the NPU did not end"),
    _row(Source.MIZZEN, r"an index among the data that is outside of its table",
         Cause.INDEX_OUTSIDE, "an index is outside of its table"),
    _row(Source.MIZZEN, r"a file of weights or a model that is of another program",
         Cause.APART_OF_ANOTHER, "the file that lies apart is of another program"),
    _row(Source.MIZZEN, r"a file of weights or a model that is not whole", Cause.APART_DAMAGED,
         "the file that lies apart is not whole"),
    _row(Source.MIZZEN, r"mizzen: step (?P<step>\d+): an unknown status", None,
         "the runtime returned a status that it has no text for"),
    _row(Source.ANY, r"[Ii]nvoke [Ff]ailed|Inference status: failed", None, "the inference failed"),
)  # fmt: skip
"""Texts, those first that say more: of each line the first row that matches counts."""

CODES = {
    0x10: Cause.OPERATOR_MISSING,
    0x12: Cause.INPUTS_DIFFER,
    0x14: Cause.OPERATOR_MISSING,
    0x20: Cause.BACKEND_MISSING,
    0x21: Cause.POOL_TOO_SMALL,
    0x31: Cause.POOL_TOO_SMALL,
}
"""What ExecuTorch's error codes say: NotSupported, InvalidArgument, OperatorMissing, NotFound,
MemoryAllocationFailed and DelegateMemoryAllocationFailed; others say no cause: a failed driver is
InvalidProgram too."""

STATUS_WORD = re.compile(r"(?i)\bstatus\s*[=:]?\s*(?P<word>0x[0-9a-f]+)")
STATUS_LINE = re.compile(r"(?i:\bNPU[ _]?status|qread)|\bSTATUS\b")
QREAD = re.compile(r"(?i)\bqread\s*[=:]?\s*(?P<bytes>0x[0-9a-f]+|\d+)")


@dataclass(frozen=True, slots=True)
class Fact:
    """A text that is no failure, and says what the firmware has."""

    pattern: re.Pattern[str]
    names: Sequence[str]


FACTS = tuple(
    Fact(re.compile(pattern), names)
    for pattern, names in (
        (r"Ethos-U config\. product=(\d+).*?macs_per_cc=(\d+)", ("product", "log2")),
        (r"Optimizer config\. product=(\d+).*?macs_per_cc=(\d+)", ("own_product", "own_log2")),
        (r"fast_memory=\S+?,? fast_memory_size=([1-9]\d*)", ("fast_bytes",)),
        (r"Initializing NPU: base_address=(\S+?),", ("npu_address",)),
        (r"base_addr\[0\]=(\S+?),? +size=", ("model_address",)),
        (r"base_addr\[1\]=(\S+?),? +size=", ("arena_address",)),
        (r"\bMACs/cc\s*:?\s*(\d+)", ("macs",)),
    )
)
"""What drivers write at their start, and at each inference."""
