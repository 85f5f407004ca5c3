"""Text from a language model's artifact: tokens of a prompt, a choice of each next one, text again.

The artifact says how likely each token is (`mizzen.artifact.decoding`). Here stands how text
becomes tokens, and how one of them is chosen.

Both are apart from the decoder, since any of them goes with any: a sampling is a function of
scores, a tokenizer is a file of the checkpoint's. Nothing here knows what an NPU is.
"""

from mizzen.generation.sampling import Sampling
from mizzen.generation.tokenizing import Tokenizer, tokenizer_of

__all__ = ["Sampling", "Tokenizer", "tokenizer_of"]
