"""The front end of the reference implementation, for parity (`speech.front_end: reference`)."""
