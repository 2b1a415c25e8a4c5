"""What the speaking half of the next Ming-mini can do, as its checkpoint declares it.

The keys are fields of `sglang_omni.models.capabilities`. They describe what the recipe teaches;
whether the trained model does it is for the evaluation to say, before it is released.
"""

SPEECH_ABILITIES: dict[str, object] = {
    "name": "Ming-mini",
    # Mandarin is not taught: requests for it are refused by name.
    "speech_languages": ["en"],
    "speech_tasks": ["speech"],
    "speech_instructions": True,
}
