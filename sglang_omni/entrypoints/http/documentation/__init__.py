"""Pages that document the API, which need no other server."""
