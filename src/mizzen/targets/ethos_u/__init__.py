"""Arm Ethos-U55, U65 and U85."""
