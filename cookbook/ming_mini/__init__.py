"""Ming-mini: a small model in the released layout, trained on data that the recipe makes itself."""
