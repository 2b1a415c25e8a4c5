"""Processes of engines: start, messages, loops, supervision, shared memory."""
