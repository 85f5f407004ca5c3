"""Whether Linux would take a command stream: the rules of the kernel driver `accel/ethosu`.

The NPU has no memory management unit. So the kernel reads each stream before the NPU does, follows
its registers, and computes how far into each region it reaches. A stream that breaks a rule, or
that reaches out of a buffer, never starts: a process gets EINVAL or EOVERFLOW, without a reason.
This package follows the same rules and says which one, at which command.

It repeats what the kernel does, also where that differs from what the NPU would do: the sizes that
count here are the kernel's. So it reads the words for itself and takes nothing of `sim` and
`hazards`. It knows U65 and U85, as the driver does.

Ref: Linux, drivers/accel/ethosu/ethosu_gem.c and ethosu_job.c, version of mid-2026; first in 6.19.
"""

from mizzen.targets.ethos_u.judge.linux.rules import Rule
from mizzen.targets.ethos_u.judge.linux.validation import LinuxReport, Refusal, would_linux_take

__all__ = ["LinuxReport", "Refusal", "Rule", "would_linux_take"]
