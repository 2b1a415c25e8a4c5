"""JSON configurations of the tiny image folders: the keys of the released files, tiny sizes."""

from typing import Any

Json = dict[str, Any]

# Width of the condition rows.
ROWS_WIDTH = 40
VOCABULARY = 32
# Folder of the base model of the glyph encoder, of which only the configuration is used.
GLYPH_BASE = "google__byt5-small"


def build_head_config() -> Json:
    """Return `mlp/config.json`: 4 x 4 query tokens."""
    return {
        "img_gen_scales": [4],
        "diffusion_c_input_dim": ROWS_WIDTH,
        "dit_type": "zimage",
        "use_identity_mlp": True,
        "text_encoder_norm": True,
    }


def build_connector_config() -> Json:
    """Return `connector/config.json`."""
    return {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
        "rope_scaling": None,
        "max_position_embeddings": 4096,
        "attention_dropout": 0.0,
        "initializer_range": 0.02,
        "tie_word_embeddings": True,
        "use_cache": True,
        "use_sliding_window": False,
        "vocab_size": VOCABULARY,
        "transformers_version": "4.57.1",
    }


def build_transformer_config() -> Json:
    """Return `transformer/config.json`."""
    return {
        "_class_name": "ZImageTransformer2DModel",
        "_diffusers_version": "0.36.0",
        "all_f_patch_size": [1],
        "all_patch_size": [2],
        "axes_dims": [8, 8, 8],
        "axes_lens": [1536, 512, 512],
        "cap_feat_dim": ROWS_WIDTH,
        "dim": 72,
        "in_channels": 16,
        "n_heads": 3,
        "n_kv_heads": 3,
        "n_layers": 2,
        "n_refiner_layers": 2,
        "norm_eps": 1e-5,
        "qk_norm": True,
        "rope_theta": 256.0,
        "t_scale": 1000.0,
    }


def build_image_vae_config() -> Json:
    """Return `vae/config.json`. Its factor of 8 and its latents are those of the release."""
    return {
        "_class_name": "AutoencoderKL",
        "_diffusers_version": "0.36.0",
        "act_fn": "silu",
        "block_out_channels": [8, 16, 16, 16],
        "down_block_types": ["DownEncoderBlock2D"] * 4,
        "force_upcast": True,
        "in_channels": 3,
        "latent_channels": 16,
        "latents_mean": None,
        "latents_std": None,
        "layers_per_block": 2,
        "mid_block_add_attention": True,
        "norm_num_groups": 4,
        "out_channels": 3,
        "sample_size": 64,
        "scaling_factor": 0.3611,
        "shift_factor": 0.1159,
        "up_block_types": ["UpDecoderBlock2D"] * 4,
        "use_post_quant_conv": False,
        "use_quant_conv": False,
    }


def build_scheduler_config() -> Json:
    """Return `scheduler/scheduler_config.json` with the released constants."""
    return {
        "_class_name": "FlowMatchEulerDiscreteScheduler",
        "_diffusers_version": "0.36.0",
        "num_train_timesteps": 1000,
        "shift": 3.0,
        "use_dynamic_shifting": False,
    }


def build_glyph_files() -> dict[str, Json]:
    """Return the JSON files of `byt5/`: its configuration, colours and fonts."""
    byt5 = {
        "byt5_ckpt_path": GLYPH_BASE,
        "byt5_name": "google/byt5-small",
        "special_token": True,
        "color_special_token": True,
        "font_special_token": True,
        "font_ann_path": "font_idx.json",
        "color_ann_path": "color_idx.json",
        "multilingual": True,
    }
    config = {
        "byt5_config": byt5,
        "byt5_mapper_config": {"num_layers": 2, "sdxl_channels": ROWS_WIDTH},
        "byt5_max_length": 48,
        "byt5_mapper_type": "T5EncoderBlockByT5Mapper",
    }
    return {
        "byt5.json": config,
        "color_idx.json": {"red": 0, "green": 1, "blue": 2},
        "font_idx.json": {"en-Sans": 0, "cn-Song": 1},
    }


def build_glyph_base_config() -> Json:
    """Return the configuration of the base model of the glyph encoder."""
    return {
        "architectures": ["T5ForConditionalGeneration"],
        "model_type": "t5",
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 48,
        "num_heads": 4,
        "num_layers": 2,
        "num_decoder_layers": 1,
        "relative_attention_num_buckets": 32,
        "relative_attention_max_distance": 128,
        "layer_norm_epsilon": 1e-6,
        "feed_forward_proj": "gated-gelu",
        "dropout_rate": 0.1,
        "vocab_size": 384,
        "eos_token_id": 1,
        "pad_token_id": 0,
        "transformers_version": "4.57.1",
    }
