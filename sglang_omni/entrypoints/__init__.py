"""Ways into the server: HTTP, the Realtime protocol, Python and the command line."""
