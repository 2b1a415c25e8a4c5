"""Measurements of Ming-mini 2 through a running server's own routes."""
