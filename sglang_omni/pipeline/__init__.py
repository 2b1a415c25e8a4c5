"""One request, stage by stage, as a coroutine that yields events."""
