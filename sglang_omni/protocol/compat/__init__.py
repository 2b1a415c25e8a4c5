"""What programs written for OpenAI, sglang-omni, vllm-omni and gateways send, and its meaning here.

Everything here is pure: tables of names and fields, and functions that apply them.
"""
