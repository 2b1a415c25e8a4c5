"""Which engine goes on which card: sizes read from a checkpoint, a pure plan, a table of it."""
