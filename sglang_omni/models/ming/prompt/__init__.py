"""The chat prompt: template, tokens, placeholders, positions and tools."""
