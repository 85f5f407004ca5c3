"""The weights of a pass as the stream that Ethos-N reads."""
