"""Model families, and the interfaces that a family implements."""
