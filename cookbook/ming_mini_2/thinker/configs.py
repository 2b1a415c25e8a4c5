"""Sizes of the thinker of Ming-mini 2: a layer and some whole words more than Ming-mini's."""

from dataclasses import replace

from cookbook.ming_mini.thinker.configs import MINI, SMALL, Sizes

WORDS = 900
"""The most whole words of the tokenizer."""
MINI_2 = replace(MINI, llm={**MINI.llm, "num_hidden_layers": 7})
"""About 13.3 million parameters."""
SIZES: dict[str, Sizes] = {"mini_2": MINI_2, "small": SMALL}
"""By name; the small one is to try the recipe on a CPU."""
