"""From passes to commands, buffers and the container."""

from mizzen.targets.ethos_n.emit.emission import Emission, Parents, PassOrigin, emit

__all__ = ["Emission", "Parents", "PassOrigin", "emit"]
