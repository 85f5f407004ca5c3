"""What Ethos-U takes, as rows: of TFLite's operators (`tflite`), and of TOSA's (`tosa`).

The compiler's own verdict decides what runs on the NPU. It tells neither limits nor numbers, and
some limits it does not know: it stops, or computes a wrong answer. A row gives a refusal its reason
with a limit, an actual value and what to change; and it is known before compiling, so that
placement need not try. There are two tables because the compiler has two front-ends, whose limits
differ: an operator of TFLite becomes several operations that TOSA's rules would judge one by one.

Rules see an operator as plain facts or as an operation of the graph. They know no file format, no
placement and no compiler; limits were found by compiling on both sides of each, which tests repeat.
"""
