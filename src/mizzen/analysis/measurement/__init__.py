"""What a board measured, beside what is estimated of it.

Logs of firmware say what inferences took (`formats`, `reading`). What they say is matched to the
parts of an artifact, and what is not known of the board's memories is fitted, within what is
possible of them.

It must not change the timing model: a fit is of the memories' numbers alone.
"""
