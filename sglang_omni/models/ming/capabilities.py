"""What the released Ming-flash-omni-2.0 can do: where a checkpoint does not say, this holds."""

from sglang_omni.models.capabilities import Capabilities

RELEASED = Capabilities(
    name="Ming-flash-omni-2.0",
    speech_languages=("zh", "en"),
    speech_tasks=("speech", "music", "sound"),
    speech_instructions=True,
    # As the public examples of the model ask; which wording it hears best was not measured.
    transcription_prompt=(
        "Please recognize the language of this speech and transcribe it. Format: oral."
    ),
    transcription_languages=None,
    translation_prompt="Please translate this speech into English.",
    transcription_hints=True,
    starter_prompts=(
        "What can you do?",
        "Explain in two sentences why the sky is blue.",
        "Tell me a short story about a mill by the river.",
        "用三句话介绍一下杭州。",
    ),
    video_sound=True,
)
