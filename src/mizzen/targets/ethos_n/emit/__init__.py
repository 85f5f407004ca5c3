"""From passes to commands, buffers and the container."""

from mizzen.targets.ethos_n.emit.emission import Emission, emit

__all__ = ["Emission", "emit"]
