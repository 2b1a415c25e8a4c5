"""Responses: chat completions, server-sent events, ends with the client."""
