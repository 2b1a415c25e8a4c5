"""Ming-mini: a small model in the released layout, trained on what the recipe makes itself."""
