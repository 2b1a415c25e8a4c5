"""Bodies that programs written for other servers send, by the public name of the program."""

from dataclasses import dataclass
from typing import Any

QUESTION = {"role": "user", "content": "hello"}
CHAT: dict[str, Any] = {"messages": [QUESTION]}
IMAGE = "data:image/png;base64,QUJD"
SOUND = "data:audio/wav;base64,QUJD"
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}


@dataclass(frozen=True)
class Foreign:
    """A body, where it comes from, and which of its fields have no effect."""

    origin: str
    path: str
    body: dict[str, Any]
    ignored: str = ""


def chat(origin: str, ignored: str = "", **fields: Any) -> Foreign:
    """Return the body of a chat."""
    return Foreign(origin, "chat/completions", {**CHAT, **fields}, ignored)


def speech(origin: str, ignored: str = "", **fields: Any) -> Foreign:
    """Return the body of a speech request."""
    return Foreign(origin, "audio/speech", {"input": "hello", **fields}, ignored)


def completion(origin: str, ignored: str = "", **fields: Any) -> Foreign:
    """Return the body of a text completion."""
    return Foreign(origin, "completions", {"prompt": "hello", **fields}, ignored)


def parts(*content: dict[str, Any]) -> list[dict[str, Any]]:
    """Return messages with one of these parts."""
    return [{"role": "user", "content": list(content)}]


OPENAI = [
    chat("openai: metadata and store", "metadata, store", metadata={"run": "7"}, store=True),
    chat(
        "openai: keys",
        "prompt_cache_key, safety_identifier, user",
        model="gpt-4o-mini",
        prompt_cache_key="a",
        safety_identifier="b",
        user="c",
    ),
    chat("openai: tier", service_tier="flex"),
    chat("openai: defaults", service_tier="auto", store=False, verbosity="medium"),
    chat("openai: verbosity", "verbosity", verbosity="low", reasoning_effort="minimal"),
    chat("openai: prediction", "prediction", prediction={"type": "content", "content": "hi"}),
    chat("openai: search", "web_search_options", web_search_options={}),
    chat(
        "openai: obfuscation off",
        stream=True,
        stream_options={"include_usage": True, "include_obfuscation": False},
    ),
    chat(
        "openai: spoken answer",
        model="gpt-4o-audio-preview",
        modalities=["text", "audio"],
        audio={"voice": "alloy", "format": "wav"},
    ),
    speech("openai: speech", model="gpt-4o-mini-tts", voice="coral", instructions="Cheerful."),
    speech("litellm.speech", model="tts-1", voice="alloy", response_format="mp3"),
    speech("Open WebUI speech", model="tts-1", voice="shimmer"),
    speech("openai-agents voice", model="gpt-4o-mini-tts", voice="ash", response_format="pcm"),
    speech("SillyTavern", model="tts-1-hd", voice="fable", response_format="mp3", speed=1),
]
SGLANG_OMNI = [
    chat("sglang-omni: lists of media", images=[IMAGE], audios=[SOUND], modalities=["text"]),
    chat(
        "sglang-omni: video options",
        "video_max_pixels",
        messages=parts(
            {"type": "video", "video": "data:video/mp4;base64,QUJD"},
            {"type": "text", "text": "What happens?"},
        ),
        video_fps=2,
        video_max_frames=128,
        video_max_pixels=401_408,
        use_audio_in_video=True,
    ),
    chat(
        "sglang-omni: stage parameters",
        "stage_params.talker, talker_temperature",
        stage_params={"thinker": {"temperature": 0.8}, "talker": {"temperature": 0.9}},
        talker_temperature=0.9,
        request_id=None,
    ),
    chat("sglang-omni: spoken", modalities=["text", "audio"], audio={"format": "pcm"}),
    speech("sglang-omni: speaker", speaker="river", task_type="CustomVoice", language="English"),
    speech(
        "sglang-omni: stream",
        "max_new_tokens",
        stream=True,
        response_format="pcm",
        language="Auto",
        max_new_tokens=2048,
    ),
    speech(
        "sglang-omni: references",
        task_type="Base",
        references=[{"audio_path": "https://example.com/a.wav", "text": "Hello."}],
    ),
    speech(
        "sglang-omni: talker options",
        "repetition_penalty, top_k, top_p",
        top_p=0.9,
        top_k=50,
        repetition_penalty=1.05,
        stage_params={"tts_engine": {"cfg": 2.0, "sigma": 0.25}},
    ),
]
VLLM_OMNI = [
    chat(
        "vllm-omni: parameters of stages",
        "mm_processor_kwargs.size, sampling_params_list, sampling_params_list.stop_token_ids",
        sampling_params_list=[
            {"temperature": 0.4, "top_k": 1, "max_tokens": 16_384, "stop_token_ids": [151_645]},
            {"temperature": 0.9},
        ],
        mm_processor_kwargs={"use_audio_in_video": True, "fps": 2, "size": {}},
        modalities=["text"],
    ),
    chat("vllm-omni: speaker", modalities=["text", "audio"], speaker="river"),
    chat("vllm-omni: extra_body", extra_body={"modalities": ["text"], "seed": 7}),
    speech(
        "vllm-omni: cloning",
        "initial_codec_chunk_frames, x_vector_only_mode",
        ref_audio=SOUND,
        ref_text="Hello.",
        task_type="Base",
        x_vector_only_mode=True,
        initial_codec_chunk_frames=10,
    ),
    Foreign(
        "vllm-omni: batch",
        "audio/speech/batch",
        {"items": [{"input": "a", "speaker": "river"}, {"input": "b", "top_k": 5}]},
        "items.top_k",
    ),
]
ENGINES = [
    chat("vLLM: guided JSON", guided_json=SCHEMA, guided_decoding_backend=None),
    chat("vLLM: structured outputs", structured_outputs={"json": SCHEMA}),
    chat(
        "vLLM benchmark",
        "ignore_eos",
        ignore_eos=True,
        min_tokens=0,
        stop_token_ids=[],
        skip_special_tokens=True,
        priority=0,
    ),
    chat("SGLang benchmark", lora_path="", separate_reasoning=True, no_stop_trim=False),
    chat(
        "SGLang router",
        "data_parallel_rank, rid",
        rid="a",
        data_parallel_rank=0,
        no_stop_trim=False,
        ignore_eos=False,
        continue_final_message=False,
        skip_special_tokens=True,
        separate_reasoning=True,
        stream_reasoning=True,
        return_hidden_states=False,
    ),
    chat("Qwen template", "chat_template_kwargs.style", chat_template_kwargs={"style": 1}),
]
GATEWAYS = [
    chat(
        "Open WebUI",
        "chat_id, features, session_id, user",
        stream=True,
        user={"name": "a", "role": "user"},
        chat_id="b",
        session_id="c",
        features={},
    ),
    chat("LobeChat", "enabledSearch", enabledSearch=True, temperature=1, top_p=1, stream=True),
    chat("litellm", "metadata, num_retries", metadata={"user_api_key": "x"}, num_retries=2),
    chat(
        "OpenRouter",
        "provider, usage",
        provider={"order": []},
        usage={"include": True},
        reasoning={"effort": "low"},
    ),
    chat("new-api", stream=True, stream_options={"include_usage": True}, enable_thinking=False),
    chat(
        "LangChain history",
        "messages.name, messages.tool_calls.index",
        messages=[
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "x",
                        "index": 0,
                        "type": "function",
                        "function": {"name": "f", "arguments": "{}"},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "x", "content": "5", "name": "f"},
            QUESTION,
        ],
        n=1,
    ),
    chat(
        "litellm history",
        "messages.content.cache_control, messages.provider_specific_fields",
        messages=[
            {"role": "assistant", "content": "Hi.", "provider_specific_fields": {"a": 1}},
            *parts({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}),
        ],
    ),
    chat("Qwen parts", messages=parts({"type": "image", "image": IMAGE})),
    chat("DeepSeek and GLM thinking", thinking={"type": "disabled"}),
]

COMPLETIONS = [
    completion(
        "openai: completion", model="gpt-4o-mini", n=1, best_of=1, echo=False, logprobs=None
    ),
    completion("openai: user of a completion", "user", user="a", suffix=None),
    completion(
        "lm-eval: log likelihood",
        prompt=[[104, 105]],
        temperature=0.0,
        max_tokens=1,
        logprobs=1,
        seed=1234,
        echo=True,
    ),
    completion(
        "vLLM benchmark of completions",
        "ignore_eos",
        ignore_eos=True,
        repetition_penalty=1.0,
        add_special_tokens=True,
        use_beam_search=False,
        stream=True,
        stream_options={"include_usage": True, "continuous_usage_stats": False},
    ),
    completion(
        "SGLang router: completion",
        "rid",
        rid="a",
        no_stop_trim=False,
        regex="",
        lora_path="",
        max_new_tokens=3,
        return_hidden_states=False,
    ),
    completion("Continue and Tabby", stop=["\n", "<|endoftext|>"], temperature=0.01),
    Foreign("vLLM: tokenize", "tokenize", {"prompt": "hi", "add_special_tokens": True}),
    Foreign(
        "vLLM: tokenize a chat",
        "tokenize",
        {**CHAT, "add_generation_prompt": True, "return_token_strs": False},
    ),
    Foreign("vLLM: detokenize", "detokenize", {"model": "tts-1", "tokens": [104, 105]}),
    Foreign(
        "SGLang: detokenize", "detokenize", {"tokens": [104, 105], "skip_special_tokens": True}
    ),
]

BODIES = (*OPENAI, *SGLANG_OMNI, *VLLM_OMNI, *ENGINES, *GATEWAYS, *COMPLETIONS)
