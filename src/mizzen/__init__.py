"""Mizzen."""
