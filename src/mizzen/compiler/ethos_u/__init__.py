"""Docstring."""
