"""The backend of Ethos-U55, U65 and U85, whose code Arm's own compiler Vela generates.

Vela's core takes whole networks. A TFLite file goes to it as it is, and it leaves to the CPU what
it does not take; where it stops at an operator instead, `tflite` finds the operator and hides it
(`masking`). A TOSA file must be all for the NPU: `tosa` compiles it or says which operations are
not, `tosa_check` places them. Regions of a graph, which PyTorch's programs have, become TOSA files
too (`regions`).

Mizzen explains what Vela decides: the reasons come from the rules in
`mizzen.targets.ethos_u.legal`, and from Vela's words where no rule says it. Nothing here encodes
commands or runs them: how Vela is called is in `mizzen.targets.ethos_u.vela`.
"""
