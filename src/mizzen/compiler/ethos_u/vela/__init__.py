"""Arm's compiler Vela: whole networks for Ethos-U85, and beside our own code for U55 and U65."""
