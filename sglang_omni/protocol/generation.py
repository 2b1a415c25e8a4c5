"""Fields of a body that say how a text is generated: in chats, completions and responses."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from sglang_omni.protocol.body import Body, ModelName, RequestPriority, Seed, Timeout
from sglang_omni.protocol.sampling import SamplingParams

# Characters of a stop string. The whole answer is searched for it.
MAX_STOP_CHARACTERS = 1000


def _to_list(stop: Any) -> Any:
    return [stop] if isinstance(stop, str) else stop


def _check_top_k(top_k: int) -> int:
    if top_k == 0:
        raise PydanticCustomError("top_k", "must be at least 1, or -1 for the whole vocabulary")
    return top_k


Stop = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=MAX_STOP_CHARACTERS)]],
    BeforeValidator(_to_list, json_schema_input_type=str | list[str]),
    Field(max_length=4),
]
TokenId = Annotated[str, Field(pattern=r"^[0-9]{1,9}$")]
ReasoningEffort = Annotated[
    Literal["none", "minimal", "low", "medium", "high", "xhigh"],
    Field(description="'none' and 'minimal' disable reasoning, the others do not limit it"),
]


class GenerationFields(Body):
    """How the answer is sampled, and when it is due."""

    temperature: Annotated[float, Field(ge=0, le=2)] = SamplingParams.temperature
    top_p: Annotated[float, Field(gt=0, le=1)] = SamplingParams.top_p
    top_k: Annotated[int, Field(ge=-1), AfterValidator(_check_top_k)] = SamplingParams.top_k
    min_p: Annotated[float, Field(ge=0, le=1)] = SamplingParams.min_p
    repetition_penalty: Annotated[float, Field(gt=0, le=2)] = SamplingParams.repetition_penalty
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] = 0.0
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] = 0.0
    logit_bias: Annotated[
        dict[TokenId, Annotated[float, Field(ge=-100, le=100)]],
        Field(max_length=300, description="Token ids, as text, and the bias added to their logits"),
    ] = Field(default={})
    stop: Stop = Field(default=[])
    seed: Seed | None = None
    priority: RequestPriority = "normal"
    timeout: Timeout | None = None


class StreamOptions(Body):
    """Options of a streamed answer."""

    include_usage: bool = False


class ChoiceFields(GenerationFields):
    """What chats and text completions have in common."""

    model: ModelName = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: Annotated[int, Field(ge=1, le=8)] = 1
