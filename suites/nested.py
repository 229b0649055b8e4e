"""Nested fillers: what stands around an item at one length is the beginning of what stands around it at a longer one.

A generated text is the item's own, drawn from a seed that leaves length and depth out; a text from outside is entered at
a place drawn the same way. The filler starts there at every length, and only its end moves.
"""

import random

import numpy as np

from longreach.harness.tokenizer import Tokenizer
from longreach.suites.corpus import Corpus, get_corpus
from longreach.suites.cuts import SENTENCE
from longreach.suites.generated import is_generated

SPAN = 1024
"""Tokens at the beginning of a generated text among which the filler starts."""
SEED_BITS = 32


def own_corpus(haystack: str, length: int, seed: int, tokenizer: Tokenizer, item: random.Random) -> tuple[Corpus, int]:
    """A text that holds `length` tokens wherever the filler starts, and the tokens among which it does.

    Args:
        seed: of the texts that items share.
        item: draws the text of this item, if it is generated; the same at every length.
    """
    if is_generated(haystack):
        seed, span = item.getrandbits(SEED_BITS), SPAN
    else:
        span = get_corpus(haystack, length, seed, tokenizer).copy // 2
    return get_corpus(haystack, length + span, seed, tokenizer), span


def draw_start(corpus: Corpus, span: int, item: random.Random) -> int:
    """The cut (index) where the item's filler starts: the first sentence that begins at a place drawn within `span`."""
    starts, counts = corpus.cuts.by_level[SENTENCE], corpus.cuts.counts_by_level[SENTENCE]
    at = int(np.searchsorted(counts, item.random() * span))
    return int(starts[min(at, starts.size - 1)])
