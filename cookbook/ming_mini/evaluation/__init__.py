"""Evaluations of Ming-mini: of a checkpoint, and of a running server."""
