"""Projects for checkouts of TensorFlow Lite Micro and Arm's driver.

`project` writes the model, a resolver with the operators that are used, and an example; `arena`
says how large the runtime's tensor arena must be, by TensorFlow Lite Micro's own rules, without
building anything.

It must not know compilers, nor the other runtimes.
"""
