"""uvicorn's protocols, with limits for slow and hostile clients."""
