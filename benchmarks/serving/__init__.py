"""A server over HTTP and WebSocket: speed, capacity, overload and soak."""
