"""Limits of the requests, tokens and seconds of audio of each API key."""
