"""Every task in every variant, by name: `gsm8k/sglang-5-shot`.

Conventions are those of the harnesses that the variants are named after: SGLang (`benchmark/`),
lm-eval 0.4.13, lmms-eval 0.7.3, sglang-omni, seed-tts-eval. `chat-0-shot` variants are this
project's own.
"""

from benchmarks.evaluation.tasks import gsm8k, mmmu, modalities, questions, speaking
from benchmarks.evaluation.tasks.task import Task

_EVERY = (*gsm8k.TASKS, *mmmu.TASKS, *questions.TASKS, *speaking.TASKS, *modalities.TASKS)
TASKS: dict[str, Task] = {task.full_name: task for task in _EVERY}
