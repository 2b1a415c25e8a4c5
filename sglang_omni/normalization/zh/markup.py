"""Markup in Chinese text."""

from sglang_omni.normalization.markup import MarkupWords, build_rules
from sglang_omni.normalization.zh.numbers import spell_cardinal

WORDS = MarkupWords(
    comma="，",
    stop="。",
    blank=" ",
    item=lambda digits: f"{spell_cardinal(digits)}，",
    signs={
        "&": "和", "<": "小于", ">": "大于", "£": "英镑", "€": "欧元", "¥": "元", "°": "度",
        "±": "正负", "\u00d7": "乘", "÷": "除以", "©": "版权所有", "®": "注册商标", "™": "商标",
        "§": "第", "$": "美元", "%": "百分号", "#": "井号", "@": "艾特", "/": "斜杠", "+": "加",
        "=": "等于", "²": "平方", "³": "立方", "½": "二分之一", "¼": "四分之一", "¾": "四分之三",
    },
)  # fmt: skip

RULES = build_rules(WORDS)
