"""Engine of streaming speech: slots, pacing and admission."""
