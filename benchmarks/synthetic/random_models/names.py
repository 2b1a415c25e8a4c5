"""Names that `config.json` uses for models with random weights. Needs neither torch nor sglang."""

PACKAGE = "benchmarks.synthetic.random_models"
PLUG_IN = "RandomMingForConditionalGeneration"
STOCK = "RandomBailingMoeV2ForCausalLM"
STOCK_TYPE = "random_bailing_moe_v2"
# The key of `config.json` with the scripted answer.
SCRIPT = "scripted_answer"
