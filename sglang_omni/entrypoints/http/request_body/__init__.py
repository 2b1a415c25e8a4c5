"""Bodies of requests, read and parsed within limits."""
