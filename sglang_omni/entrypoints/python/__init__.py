"""The Python API: engines without an HTTP server. `sglang_omni` exports it."""
