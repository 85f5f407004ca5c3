"""Recurrent layers, one step after the other with the same weights and scales."""
