"""Clients' state in Redis, which several servers share. Needs `sglang_omni[redis]`."""
