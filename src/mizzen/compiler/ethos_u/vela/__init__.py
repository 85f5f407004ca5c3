"""Arm's compiler Vela, as a judge beside our own code, where a user asks for it.

Vela gets a TFLite or TOSA file as it is, and what it makes is taken as it is once it is proved
beside the same reference as our own code (`tflite`, `tosa`). Nothing is worked round: where Vela
stops or its code is wrong there is one error, which says at which operator.

Nothing outside starts Vela, and nothing here is needed where it is not asked for.
"""
