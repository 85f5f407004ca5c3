"""The operator that reads a buffer which the program writes: ``mizzen::read_state(state)``.

It is apart from what calibrates, so that who reads a file needs no quantiser to know it.
"""

from __future__ import annotations

from typing import Any

import torch

LIBRARY: Any = torch.library.Library("mizzen", "FRAGMENT")

# The tag keeps a state from being taken for a constant, when torchao folds constants.
LIBRARY.define("read_state(Tensor state) -> Tensor", tags=(torch.Tag.nondeterministic_seeded,))
LIBRARY.impl("read_state", torch.clone, "CompositeExplicitAutograd")
torch_library: Any = torch.library
torch_library.register_fake("mizzen::read_state", torch.empty_like, lib=LIBRARY)

READ_STATE: Any = torch.ops.mizzen.read_state.default
