"""The container and the sources of the C runtime that executes networks on a microcontroller.

`encode` writes a `DeviceProgram` as one block of bytes that the runtime in `firmware/runtime` uses
where it lies: tables of rows, command streams and weights at 16 bytes. What a row looks like is
said once, in `layout`; writer, reader and the C header come from it. `lower`
turns the calls of frameworks' operators into those of the few kernels that the runtime has, so
that shapes, strides and multipliers are worked out here, and C only loops.

It must not know artifacts, simulators or boards: payloads are bytes, and who exports brings the
rest.
"""

from mizzen.package.c.writer import encode

__all__ = ["encode"]
