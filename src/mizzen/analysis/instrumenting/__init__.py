"""Instrumented artifacts: the same code, cut so that counters can be read between layers.

`cut` makes one of any compiled `.tflite` for Ethos-U, and shows by execution that it computes the
same. `costs` says what each part takes by the timing model, and what the cutting adds.

Where a stream can be cut is a fact of the machine (`mizzen.targets.ethos_u.cutting`), and counters
are read by firmware; nothing here knows either.
"""

from mizzen.analysis.instrumenting.cut import Instrumented, holds_compiled, instrument

__all__ = ["Instrumented", "holds_compiled", "instrument"]
