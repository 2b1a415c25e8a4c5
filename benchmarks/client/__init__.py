"""Clients of the HTTP and WebSocket APIs, and loads of their requests."""
