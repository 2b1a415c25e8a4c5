"""The BailingMoeV2 thinker: plain reference and SGLang model."""
