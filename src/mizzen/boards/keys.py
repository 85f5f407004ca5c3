"""Every key of a board's file: what it says, in which unit and range, and what needs it."""

from __future__ import annotations

from dataclasses import dataclass

ADDRESS = "address, a multiple of 0x1000 below 0x100000000"
ANYWHERE = "address below 0x100000000"
HERTZ = "Hz, 1 to 10,000,000,000"
PORT = "0 to 3"


@dataclass(frozen=True, slots=True)
class Key:
    """A key.

    table     of the file that has it; empty for the file itself
    given     how it is given: unit and range
    firmware  whether a firmware of its own cannot be made without it
    """

    table: str
    name: str
    what: str
    given: str
    firmware: bool = False

    @property
    def place(self) -> str:
        """The key after its table, as ``npu.irq``."""
        return f"{self.table}.{self.name}" if self.table else self.name


KEYS = (
    Key("", "name", "the board's name", "letters, digits and ._+-"),
    Key("", "title", "what people call it", "text"),
    Key("cpu", "core", "the processor", "as compilers name it: cortex-m55", firmware=True),
    Key("cpu", "interrupts", "external interrupts that it has", "1 to 480", firmware=True),
    Key("cpu", "clock_hz", "its clock", HERTZ),
    Key("cpu", "qemu", "machine of qemu-system-arm with the same map", "name"),
    Key("memory", "name", "a memory", "letters, digits and _"),
    Key("memory", "base", "where it begins, as firmware is linked to it", ADDRESS, firmware=True),
    Key("memory", "alias", "where it begins for the other security state or bus", ADDRESS),
    Key("memory", "size_kib", "its size", "KiB, a multiple of 4 up to 4,194,304"),
    Key("memory", "kind", "what it is made of", "tcm, sram, flash, dram"),
    Key("memory", "writable", "whether firmware may write to it", "true, false"),
    Key("memory", "npu", "whether the NPU's ports reach it", "true, false"),
    Key("placement", "vectors", "memory of the vectors", "name of a memory", firmware=True),
    Key("placement", "code", "memory of code and constants", "name of a memory", firmware=True),
    Key("placement", "data", "memory of variables", "name of a memory", firmware=True),
    Key("placement", "stack", "memory of the stack", "name of a memory", firmware=True),
    Key("npu", "base", "where the NPU's registers begin", ADDRESS, firmware=True),
    Key("npu", "alias", "where they begin for the other security state", ADDRESS),
    Key("npu", "irq", "number of the NPU's external interrupt", "0 to 479", firmware=True),
    Key("npu", "products", "architectures that it may have", "ethos-u55, ethos-u65, ethos-u85"),
    Key("npu", "accelerators", "configurations that it may have", "list, as ethos-u55-128"),
    Key("npu", "clock_hz", "the fastest that it runs at", HERTZ),
    Key("npu", "driver", "version of Arm's driver in the vendor's software", "as 0.16.0"),
    Key("uart", "kind", "registers of the console's serial port", "cmsdk, pl011"),
    Key("uart", "base", "where they begin", ADDRESS),
    Key("uart", "alias", "where they begin for the other security state", ADDRESS),
    Key("timing_adapter", "name", "registers that keep what is written", "letters, digits and _"),
    Key("timing_adapter", "base", "where they begin", ANYWHERE),
    Key("timing_adapter", "alias", "where they begin for the other security state", ANYWHERE),
    Key("timing_adapter", "size_bytes", "their size", "bytes, 4 to 4,096"),
    Key("memory_mode", "names", "memory modes of vela.ini", "list of names"),
    Key("memory_mode", "model", "memory of command streams and weights", "name of a memory"),
    Key("memory_mode", "arena", "memory of feature maps", "name of a memory"),
    Key("memory_mode", "fast", "memory that stages both", "name of a memory"),
    Key("memory_mode", "qconfig", "port settings for the command stream (default: 2)", PORT),
    Key(
        "memory_mode",
        "regions",
        "port settings for each region (default: those of Arm's driver)",
        f"8 numbers, {PORT}",
    ),
    Key("ports", "product", "the NPU that the settings are for", "ethos-u55, -u65, -u85"),
    Key("ports", "reads", "reads in flight", "4 numbers (U85: 2), 1 to 64"),
    Key("ports", "writes", "writes in flight", "4 numbers (U85: 2), 1 to 32"),
    Key("ports", "beats", "burst: 0 is 64 bytes, 1 is 128, 2 is 256", "4 numbers (U85: 2), 0 to 2"),
    Key("ports", "attributes", "MEM_ATTR of U85", "4 numbers, 0 to 127"),
    Key("sdk", "title", "the vendor's software", "text"),
    Key("sdk", "source", "where it comes from", "https address"),
    Key("sdk", "version", "which one the facts were read in", "text"),
    Key("sdk", "header", "its header with the processor's functions", "name of a header"),
    Key("sdk", "print", "its function that writes as printf does", "name of a function"),
    Key("sdk", "print_header", "the header that declares it", "name of a header"),
    Key("sdk", "main", "name of the function that runs the example", "name of a function"),
    Key("sdk", "npu_base", "its name of the NPU's address", "macro"),
    Key("sdk", "npu_irq", "its name of the NPU's interrupt", "macro"),
    Key("sdk", "handler", "its name of the NPU's handler, where names are vectors", "function"),
    Key("sdk", "vector", "its function that sets a handler, where one does", "function"),
    Key("sdk", "model_address", "flash that the model is written to by itself", ANYWHERE),
    Key("sdk", "model_section", "section of its linker script for the model", "name of a section"),
    Key("sdk", "arena_section", "section for the arena", "name of a section"),
    Key("sdk", "fast_section", "section for the fast memory", "name of a section"),
    Key("page", "runtime", "the runtime that its commands export for", "c, tflm, tflite"),
    Key("page", "files", "where the files go", "Markdown"),
    Key("page", "memory", "where model and arena lie", "Markdown"),
    Key("page", "driver", "how the NPU is started", "Markdown"),
    Key("page", "measure", "how to measure", "Markdown"),
    Key("page", "tried", "how far this was followed", "Markdown"),
    Key("energy", "of", "what takes it", "idle, mac, sram, flash, dram"),
    Key("energy", "value", "how much", "idle: mW; mac: pJ each; a memory: pJ a byte"),
    Key("energy", "error", "how far it may be off", "factor from 1"),
    Key("energy", "source", "who measured it", "text"),
    Key("measured", "accelerator", "the NPU that counted", "as ethos-u55-128"),
    Key("measured", "system_config", "section of vela.ini with all else", "name of a section"),
    Key("measured", "source", "the log, and what was counted", "text"),
    Key("measured.memory", "name", "a memory", "as vela.ini names it: Sram, Dram"),
    Key("measured.memory", "bytes_per_cycle", "its rate", "bytes in a cycle of the NPU"),
    Key("measured.memory", "read_latency_cycles", "latency of reads", "cycles of the NPU"),
    Key("measured.memory", "write_latency_cycles", "latency of writes", "cycles of the NPU"),
    Key("measured.memory", "bytes_per_cycle_error", "how far its rate may be off", "factor from 1"),
    Key("measured.memory", "latency_error", "the same of latencies", "factor from 1"),
)


def key(place: str) -> Key:
    """Return a key by its place, as ``npu.irq``."""
    return next(each for each in KEYS if each.place == place)


def table() -> str:
    """Return all keys as a table in Markdown."""
    lines = [
        f"| `{each.place}` | {each.what} | {each.given} | {'yes' if each.firmware else ''} |"
        for each in KEYS
    ]
    head = "| Key | What it says | Unit, range | Needed for firmware |\n|---|---|---|---|"
    return "\n".join([head, *lines])
