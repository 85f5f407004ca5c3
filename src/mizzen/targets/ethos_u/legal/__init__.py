"""What Ethos-U takes of TFLite, as rows (`tflite`), and how far results may be off
(`tflite_bounds`).

Our own code decides what runs on the NPU. A row gives a refusal its words in the user's terms, with
a limit, an actual value and what to change; rows that the code does not keep are not here. Rules
see an operator as plain facts (`tflite_facts`) and know no file format, no placement and no
compiler.
"""
