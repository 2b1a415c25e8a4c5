"""OpenAI's Realtime protocol: sessions, turns, items and responses."""
