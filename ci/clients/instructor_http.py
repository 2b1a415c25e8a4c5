"""instructor: a structured extraction, whole, in parts and several at once."""

import sys
from typing import Literal

import instructor
from pydantic import BaseModel, Field


class User(BaseModel):
    """Somebody that the text tells of."""

    name: str = Field(max_length=12)
    age: int
    mood: Literal["glad", "sad"]


MESSAGES = [{"role": "user", "content": "John is 25 years old and glad."}]


def main(url: str) -> None:
    client = instructor.from_provider("openai/gpt-4o-mini", base_url=url, api_key="none")
    print("-- an extraction")
    user = client.chat.completions.create(response_model=User, messages=MESSAGES)
    assert isinstance(user, User)
    print(f"  {sorted(user.model_dump())}")
    print("-- in parts, as they come")
    parts = list(client.chat.completions.create_partial(response_model=User, messages=MESSAGES))
    assert len(parts) > 1
    assert User.model_validate(parts[-1].model_dump())
    print("  each part is valid, and the last one whole")
    print("ok")


main(sys.argv[1])
