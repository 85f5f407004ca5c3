"""Where an artifact's memory goes: per tensor and time, in every memory.

What lies between operators is known by name. Inside the stream of an Ethos-U only addresses are
known, so the stream is read again for what each operation touches, which
`mizzen.targets.ethos_u.judge.hazards` does already, block by block: bytes live from the operation
that writes them to the last one that reads them, whatever planned them. So the report is of the
artifact, whichever compiler made it.

`layout` says where tensors lie: in TensorFlow Lite Micro's arena, in the plan of Mizzen's own
runtime, in an ExecuTorch program's. `operations` puts every access of an inference in order,
`lifetimes` follows the bytes, `constants` are what is only read. It must not know compilers.
"""

from mizzen.analysis.memory.needs import needs_of
from mizzen.analysis.memory.report import memory_report

__all__ = ["memory_report", "needs_of"]
