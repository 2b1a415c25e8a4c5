"""The thinking half of Ming-mini 2."""
