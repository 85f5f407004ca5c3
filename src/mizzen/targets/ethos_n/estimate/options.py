"""What an estimate may be told.

Ref: Ethos-N driver stack 23.02, `Support.hpp` (`EstimationOptions`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EstimationOptions:
    """How an estimate departs from what the hardware is given.

    activation_compression_saving    the part of a feature map's bytes that compressing it saves, 0
                                     to 1, where it is compressed in DRAM
    use_weight_compression_override  whether weights are taken to be compressible by a given part,
                                     not as they are; see `with_compressible_weights`
    weight_compression_saving        that part, 0 to 1
    current                          whether to estimate what is compiled today. The library's
                                     default is another plan, of a compiler that makes no streams
                                     for release 23.02's firmware; Mizzen has one compiler, whose
                                     streams it estimates in both cases
    """

    activation_compression_saving: float = 0.0
    use_weight_compression_override: bool = False
    weight_compression_saving: float = 0.0
    current: bool = False


AS_IT_IS = EstimationOptions()
"""Nothing is saved but what the encoder saves."""
