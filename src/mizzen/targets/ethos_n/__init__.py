"""Arm Ethos-N78."""
