"""Ming-mini's thinking half: tasks, tokenizer, training, packing and evaluation."""
