"""Ming-mini's capabilities, as its checkpoint declares them.

The keys are fields of `sglang_omni.models.capabilities`.
"""

from cookbook.ming_mini.thinker.speech_tasks import TRANSCRIBE

SPEECH_ABILITIES = {
    "name": "Ming-mini",
    "speech_languages": ["en"],
    "speech_tasks": ["speech"],
    "speech_instructions": False,
}
ABILITIES = SPEECH_ABILITIES | {
    "transcription_prompt": TRANSCRIBE[0],
    "transcription_languages": ["en"],
    "transcription_hints": False,
    "translation_prompt": None,
    # Its training has no videos with sound; with it, it understood neither.
    "video_sound": False,
    "starter_prompts": [
        "What is 17 + 25?",
        "What day comes after Monday?",
        "How do you spell river?",
        "What can you do?",
    ],
}
