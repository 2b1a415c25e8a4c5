"""Names by which `config.json` asks for a model with drawn weights. No torch, no sglang."""

PACKAGE = "benchmarks.synthetic.random_models"
PLUG_IN = "RandomMingForConditionalGeneration"
STOCK = "RandomBailingMoeV2ForCausalLM"
STOCK_TYPE = "random_bailing_moe_v2"
# The key of `config.json` that scripts the answers.
SCRIPT = "scripted_answer"
