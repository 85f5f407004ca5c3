"""Calls of frameworks' operators as calls of the kernels that the C runtime has.

An operator is a rule here and rarely a kernel of its own: everything that only moves elements is
one kernel that walks two patterns of strides, and numbers that depend on shapes and scales are
worked out before the container is written. So the runtime stays small, and what it refuses is
known when a project is exported.

It must not know artifacts nor what a device is: programs come in and go out as `DeviceProgram`.
"""

from mizzen.package.c.lowering.lower import RULES, lower

__all__ = ["RULES", "lower"]
