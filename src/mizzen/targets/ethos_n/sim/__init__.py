"""Executes compiled networks on the host."""
