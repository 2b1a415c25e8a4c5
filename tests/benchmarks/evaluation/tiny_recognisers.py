"""Recognisers of the classes that people use, as small as they can be, with random weights."""

import json
from pathlib import Path

# What Whisper's own vocabulary ends with; a word apart from them is one character.
LANGUAGES = ("en", "zh")
CHARACTERS = tuple("abcdefghijklmnopqrstuvwxyzĠ")
SPECIAL = (
    "<|endoftext|>",
    "<|startoftranscript|>",
    *(f"<|{language}|>" for language in LANGUAGES),
    "<|translate|>",
    "<|transcribe|>",
    "<|startoflm|>",
    "<|startofprev|>",
    "<|nospeech|>",
    "<|notimestamps|>",
)
SYMBOLS = ("<blank>", "<s>", "</s>", *"我们後會嗎門車馬書長東", "<unk>")


def whisper(folder: Path) -> Path:
    """A Whisper with an encoder and a decoder of one layer, its tokenizer and its features."""
    import torch
    from transformers import (
        GenerationConfig,
        WhisperConfig,
        WhisperFeatureExtractor,
        WhisperForConditionalGeneration,
        WhisperProcessor,
        WhisperTokenizer,
    )

    folder.mkdir(parents=True)
    ids = {token: number for number, token in enumerate((*CHARACTERS, *SPECIAL))}
    end, start = ids["<|endoftext|>"], ids["<|startoftranscript|>"]
    tokenizer = WhisperTokenizer(vocab=ids, merges=[], bos_token=SPECIAL[0], unk_token=SPECIAL[0])
    tokenizer.add_special_tokens({"additional_special_tokens": list(SPECIAL)})
    features = WhisperFeatureExtractor(feature_size=16)
    WhisperProcessor(features, tokenizer).save_pretrained(folder)
    torch.manual_seed(0)
    config = WhisperConfig(
        vocab_size=len(tokenizer),
        num_mel_bins=16,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_target_positions=32,
        init_std=1.0,
        pad_token_id=end,
        bos_token_id=end,
        eos_token_id=end,
        decoder_start_token_id=start,
    )
    model = WhisperForConditionalGeneration(config)
    model.generation_config = GenerationConfig(
        max_length=20,
        pad_token_id=end,
        bos_token_id=end,
        eos_token_id=end,
        decoder_start_token_id=start,
        is_multilingual=True,
        lang_to_id={f"<|{language}|>": ids[f"<|{language}|>"] for language in LANGUAGES},
        task_to_id={task: ids[f"<|{task}|>"] for task in ("translate", "transcribe")},
        no_timestamps_token_id=ids["<|notimestamps|>"],
        # As Whisper's own settings do: nobody says what only steers the decoder.
        suppress_tokens=[ids[token] for token in SPECIAL[1:]],
    )
    model.save_pretrained(folder)
    return folder


CONFIG = f"""
model: Paraformer
model_conf: {{ctc_weight: 0.0, predictor_bias: 1, predictor_weight: 1.0, sampling_ratio: 0.75}}
encoder: SANMEncoder
encoder_conf:
  output_size: 32
  attention_heads: 2
  linear_units: 32
  num_blocks: 2
  input_layer: pe
  pos_enc_class: SinusoidalPositionEncoder
  kernel_size: 11
  selfattention_layer_type: sanm
decoder: ParaformerSANMDecoder
decoder_conf:
  attention_heads: 2
  linear_units: 32
  num_blocks: 2
  att_layer_num: 2
  kernel_size: 11
predictor: CifPredictorV2
predictor_conf: {{idim: 32, l_order: 1, r_order: 1, threshold: 1.0, tail_threshold: 0.45}}
frontend: WavFrontend
frontend_conf: {{n_mels: 80, lfr_m: 7, lfr_n: 6, window: hamming, dither: 0.0, cmvn_file: null}}
tokenizer: CharTokenizer
tokenizer_conf: {{unk_symbol: <unk>, split_with_space: true}}
vocab_size: {len(SYMBOLS)}
input_size: 560
"""
WIDTH = 560


def paraformer(folder: Path) -> Path:
    """A Paraformer of two layers, in the files that its hub has."""
    import torch
    from funasr import AutoModel

    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    (folder / "tokens.json").write_text(json.dumps(SYMBOLS), encoding="utf-8")
    (folder / "am.mvn").write_text(_statistics(), encoding="utf-8")
    torch.save({}, folder / "model.pt")
    made = AutoModel(model=str(folder), disable_update=True, disable_pbar=True)
    torch.save(made.model.state_dict(), folder / "model.pt")
    return folder


def _statistics() -> str:
    """Kaldi's file of means and deviations, neither of which changes anything."""

    def part(name: str, value: float) -> str:
        return f"<{name}> {WIDTH} {WIDTH}\n<LearnRateCoef> 0 [ {f'{value} ' * WIDTH}]\n"

    return f"<Nnet>\n{part('AddShift', 0.0)}{part('Rescale', 1.0)}</Nnet>\n"
