"""JSON configurations of the tiny checkpoint: the keys of the released files, with tiny sizes."""

from typing import Any

from tokenizers import Tokenizer

from sglang_omni.models.ming.thinker.hf_config import ARCHITECTURE, MODEL_TYPE

Json = dict[str, Any]

# The vocabulary has unused rows, as the released one, and divides evenly over TP ranks.
VOCAB_MULTIPLE = 64

# The reference executes 4 of the 6 stored layers.
VAE_ENCODER_LAYERS = 6
VAE_DECODER_LAYERS = 3


def build_main_config(tokenizer: Tokenizer) -> Json:
    """Return `config.json`."""
    return {
        "architectures": [ARCHITECTURE],
        "model_type": MODEL_TYPE,
        "mlp_depth": 2,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.57.1",
        "llm_config": _thinker_sizes() | _thinker_constants() | build_thinker_token_ids(tokenizer),
        "vision_config": _build_vision_config(),
        "audio_config": _build_audio_config(),
    }


def compute_vocabulary_size(tokenizer: Tokenizer) -> int:
    """Return the embedding rows for a tokenizer; at least one is unused."""
    return (tokenizer.get_vocab_size() // VOCAB_MULTIPLE + 1) * VOCAB_MULTIPLE


def _thinker_sizes() -> Json:
    return {
        "hidden_size": 128,
        "num_hidden_layers": 3,
        "first_k_dense_replace": 1,
        "intermediate_size": 256,
        "moe_intermediate_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        # 32 rotary frequencies, as released; heads * head_dim is not the hidden size.
        "head_dim": 128,
        "num_experts": 16,
        "num_experts_per_tok": 4,
        "num_shared_experts": 1,
        "n_group": 8,
        "topk_group": 4,
        "max_position_embeddings": 32768,
    }


def _thinker_constants() -> Json:
    return {
        "architectures": ["BailingMoeV2ForCausalLM"],
        "model_type": "bailing_moe_v2",
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 2400000,
        "partial_rotary_factor": 0.5,
        "rope_scaling": {"factor": None, "type": "video_rope"},
        "use_qk_norm": True,
        "use_qkv_bias": False,
        "use_bias": False,
        "tie_word_embeddings": False,
        "norm_topk_prob": True,
        "moe_router_topk_scaling_factor": 2.5,
        "use_expert_bias": True,
        "router_type": "MultiRouter",
        "attention_dropout": 0.0,
        "embedding_dropout": 0.0,
        "output_dropout": 0.0,
        "initializer_range": 0.006,
        "norm_head": False,
        "norm_softmax": False,
        "output_router_logits": False,
        "pretraining_tp": 1,
        "use_cache": True,
        "use_interleaved_frame_timestamp": True,
        "torch_dtype": "bfloat16",
    }


def build_thinker_token_ids(tokenizer: Tokenizer) -> Json:
    """Return the special tokens of `llm_config`, and the vocabulary size."""
    tokens = {
        "eos_token_id": "<|role_end|>",
        "pad_token_id": "<|endoftext|>",
        "image_patch_token": "<imagePatch>",
        "video_patch_token": "<framePatch>",
        "image_start_token": "<image>",
        # The wrong token, as in the released file.
        "video_start_token": "</image>",
    }
    ids = {key: tokenizer.token_to_id(token) for key, token in tokens.items()}
    return ids | {"vocab_size": compute_vocabulary_size(tokenizer)}


def _build_vision_config() -> Json:
    return {
        "architectures": ["Qwen3MoeVisionTransformer"],
        "model_type": "qwen3_moe_vit",
        "depth": 4,
        "hidden_size": 64,
        "num_heads": 4,
        "intermediate_size": 128,
        "out_hidden_size": 128,
        "hidden_act": "gelu_pytorch_tanh",
        "in_channels": 3,
        "patch_size": 16,
        "temporal_patch_size": 2,
        "spatial_merge_size": 2,
        "num_position_embeddings": 64,
        "deepstack_visual_indexes": [0, 1, 2],
        "initializer_range": 0.02,
        "dtype": "float32",
    }


def _build_audio_config() -> Json:
    whisper = {"n_ctx": 1500, "n_head": 4, "n_layer": 2, "n_mels": 128, "n_state": 64}
    return {
        "model_type": "",
        "norm_query_embeds": True,
        "ds_kernel_size": 3,
        "ds_stride": 2,
        "whisper_encoder_config": whisper,
    }


def build_preprocessor_config() -> Json:
    """Return `preprocessor_config.json` with the released constants."""
    return {
        "min_pixels": 4096,
        "max_pixels": 16777216,
        "patch_size": 16,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711],
        "image_token": "<image>",
        "video_token": "<video>",
        "audio_token": "<audio>",
        "use_interleaved_frame_timestamp": True,
        "sampling_rate": 16000,
        "whisper_frontend_args": {"n_mels": 128},
    }


def build_talker_config() -> Json:
    """Return `talker/config.json`."""
    dit = {
        "in_channels": 64,
        "hidden_size": 128,
        "depth": 2,
        "num_heads": 4,
        "mlp_ratio": 4,
        "dropout": 0.0,
        "qk_norm": None,
        "pe_attn_head": None,
        "attn_backend": "torch",
        "attn_mask_enabled": False,
    }
    return {
        "steps": 10,
        "patch_size": 4,
        "history_patch_size": 32,
        "cfg_strength": 2.0,
        "flowmodel": dit,
        "aggregator": dit | {"dropout": 0.1},
    }


def build_talker_llm_config(tokenizer: Tokenizer) -> Json:
    """Return `talker/llm/config.json`."""
    return _build_qwen2_config(hidden=128, intermediate=256, layers=2, heads=4) | {
        "architectures": ["Qwen2ForCausalLM"],
        "vocab_size": compute_vocabulary_size(tokenizer),
        "bos_token_id": tokenizer.token_to_id("<|endoftext|>"),
        "eos_token_id": tokenizer.token_to_id("<|im_end|>"),
        "rope_theta": 1000000.0,
        "tie_word_embeddings": True,
        "use_sliding_window": False,
        "sliding_window": 32768,
        "max_window_layers": 21,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.57.1",
    }


def build_vae_config() -> Json:
    """Return `talker/vae/config.json`, with the training-only keys of the released file."""
    side = {"latent_dim": 64}
    return {
        "architectures": ["AudioVAE"],
        "model_type": "",
        "sample_rate": 44100,
        "patch_size": 4,
        "init_method": "kaiming",
        "enc_kwargs": side
        | {"input_dim": 882, "hop_size": 882, "backbone": _build_vae_backbone(VAE_ENCODER_LAYERS)},
        "dec_kwargs": side
        | {"output_dim": 882, "backbone": _build_vae_backbone(VAE_DECODER_LAYERS)},
        "hifi_gan_disc_kwargs": {},
        "spec_disc_kwargs": {},
        "semantic_module_kwargs": None,
        "lambda_adv": 1.0,
        "lambda_disc": 1.0,
        "lambda_feat_match_loss": 1.0,
        "lambda_mel_loss": 1.0,
        "lambda_semantic": 0.0,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.57.1",
    }


def _build_vae_backbone(layers: int) -> Json:
    return _build_qwen2_config(hidden=64, intermediate=128, layers=layers, heads=4) | {
        "_attn_implementation": "flash_attention_2",
        "is_causal": True,
        "vocab_size": 1,
        "rope_theta": 10000.0,
        "use_sliding_window": True,
        "sliding_window": 64,
        "max_window_layers": 0,
    }


def _build_qwen2_config(*, hidden: int, intermediate: int, layers: int, heads: int) -> Json:
    return {
        "model_type": "qwen2",
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": 2,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": 32768,
        "attention_dropout": 0.0,
        "initializer_range": 0.02,
        "rope_scaling": None,
        "use_cache": True,
    }


THINKER_SPECIAL_TOKENS = {
    "bos_token": "<|startoftext|>",
    "eos_token": "<|role_end|>",
    "pad_token": "<|role_end|>",
    "cls_token": "[CLS]",
    "gmask_token": "[gMASK]",
}


def build_thinker_tokenizer_config(tokenizer: Tokenizer) -> Json:
    """Return `tokenizer_config.json`. It has no chat template; the server has one."""
    return THINKER_SPECIAL_TOKENS | {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": False,
        "add_eos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 1000000000,
        "added_tokens_decoder": _build_added_tokens(tokenizer),
    }


def build_talker_tokenizer_config(tokenizer: Tokenizer) -> Json:
    """Return `talker/llm/tokenizer_config.json`."""
    return {
        "tokenizer_class": "Qwen2Tokenizer",
        "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "unk_token": None,
        "add_bos_token": False,
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": False,
        "errors": "replace",
        "model_max_length": 32768,
        "added_tokens_decoder": _build_added_tokens(tokenizer),
    }


def _build_added_tokens(tokenizer: Tokenizer) -> Json:
    return {
        str(index): {
            "content": token.content,
            "lstrip": token.lstrip,
            "normalized": token.normalized,
            "rstrip": token.rstrip,
            "single_word": token.single_word,
            "special": token.special,
        }
        for index, token in tokenizer.get_added_tokens_decoder().items()
    }
