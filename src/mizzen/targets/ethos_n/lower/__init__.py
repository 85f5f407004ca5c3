"""From a network to the work graph that passes are formed from."""

from mizzen.targets.ethos_n.lower.lowering import lower

__all__ = ["lower"]
