"""Markup in English text."""

from sglang_omni.normalization.en.numbers import spell_integer
from sglang_omni.normalization.markup import MarkupWords, build_rules

WORDS = MarkupWords(
    comma=", ",
    stop=". ",
    blank=" ",
    item=lambda digits: f"{spell_integer(digits)}. ",
    signs={
        "&": "and", "<": "less than", ">": "greater than", "£": "pounds", "€": "euros",
        "¥": "yen", "°": "degrees", "±": "plus or minus", "\u00d7": "times", "÷": "divided by",
        "©": "copyright", "®": "registered", "™": "trademark", "§": "section", "$": "dollars",
        "%": "percent", "#": "number", "@": "at", "/": "slash", "+": "plus", "=": "equals",
    },
)  # fmt: skip

RULES = build_rules(WORDS)
