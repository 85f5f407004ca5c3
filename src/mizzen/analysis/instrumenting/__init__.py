"""Instrumented artifacts: the same code, cut so that counters can be read between layers.

`cut` makes one of any compiled `.tflite` for Ethos-U, and shows by execution that it computes the
same. `costs` says what each part takes by the timing model, and what the cutting adds.
"""

from mizzen.analysis.instrumenting.cut import Instrumented, holds_compiled, instrument

__all__ = ["Instrumented", "holds_compiled", "instrument"]
