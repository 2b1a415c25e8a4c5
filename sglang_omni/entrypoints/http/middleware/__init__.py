"""Middleware: request ids, keys, hosts, rate limits, draining and HEAD."""
