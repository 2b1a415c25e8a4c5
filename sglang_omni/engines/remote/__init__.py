"""Engines on other machines: placed by Ray, spoken to over TLS, behind the same connection."""
