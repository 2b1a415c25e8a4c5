"""The model family of Ming-flash-omni-2.0."""
