"""How fast images are drawn at the released model's shapes, and what FP8 changes in them."""
