"""ExecuTorch programs (`.pte`), written and read without ExecuTorch.

A program is a FlatBuffer of instructions on evaluated values, with constants and the payloads of
delegates in segments after it. An NPU call is a delegate of ExecuTorch's own Ethos-U backend
(`vela_bin`), so that its runtime executes what is written here as it is.

It must not know artifacts, NPUs or PyTorch: payloads are bytes, kernels are names.
"""
