"""Bundled rows with the exact columns of the data sets: original questions and drawn media.

They show that the harness works, and how a model does on easy questions; they are not a benchmark.
Every row follows from its number alone, but for the sound of spoken questions, which are files.
"""

from pathlib import Path

import soundfile

from benchmarks.evaluation.datasets.drawing import (
    COLOURS,
    SHAPES,
    draw_picture,
    encode_mp4,
    make_sweep,
)
from benchmarks.evaluation.datasets.source import Row
from measurement.media_files import encode_png, encode_wav

GSM8K_ROWS, GSM8K_SHOTS, ROWS, SEED_TTS_ROWS = 40, 8, 12, 24
SPOKEN_QUESTIONS = Path(__file__).parent / "spoken_questions"
"""Spoken questions by their numbers, as the bundled model says them in joan's voice.

It understands them, and their answers have no figures: a recogniser writes those as words."""
_NAMES = ("Ada", "Ben", "Chen", "Dana", "Emil", "Fatima", "Goran", "Hana")
_THINGS = ("apples", "pencils", "tickets", "shells", "stamps", "candles", "buttons", "loaves")


def gsm8k() -> list[Row]:
    """Return rows of `openai/gsm8k`, main: a question and a worked answer that ends in "#### n"."""
    return [_word_problem(number) for number in range(GSM8K_ROWS)]


def gsm8k_shots() -> list[Row]:
    """Return rows of its train split."""
    return [_word_problem(1000 + number) for number in range(GSM8K_SHOTS)]


def _word_problem(number: int) -> Row:
    name, thing = _NAMES[number % 8], _THINGS[number // 3 % 8]
    boxes, each, given = 2 + number % 5, 3 + number % 7, 1 + number % 4
    price = 2 + number % 3
    all_of_them, left = boxes * each, boxes * each - given
    question = f"{name} has {boxes} boxes with {each} {thing} in each. {name} gives {given} away"
    working = f"There are {boxes} * {each} = <<{boxes}*{each}={all_of_them}>>{all_of_them} {thing}."
    working += f"\n{all_of_them} - {given} = <<{all_of_them}-{given}={left}>>{left} are left."
    if number % 2:
        question += f". How many {thing} are left?"
        return {"question": question, "answer": f"{working}\n#### {left}"}
    paid = left * price
    question += f" and sells the rest for ${price} each. How many dollars does {name} earn?"
    working += f"\nThey bring {left} * {price} = <<{left}*{price}={paid}>>{paid} dollars."
    return {"question": question, "answer": f"{working}\n#### {paid:,}"}


def mmmu() -> list[Row]:
    """Return rows of `MMMU/MMMU`.

    `options` is a list as text, as there; one in six questions is open.
    """
    return [_pictured(number) for number in range(ROWS)]


def _pictured(number: int) -> Row:
    colour, shape, count = COLOURS[number % 4], SHAPES[number % 3], 1 + number % 3
    still_open = number % 6 == 5
    what = f"How many {shape}s are there" if still_open else "Which colour is the shape"
    row: Row = {
        "id": f"validation_Art_{number + 1}",
        "question": f"{what} in <image 1>?",
        "options": str([] if still_open else [name.capitalize() for name in COLOURS]),
        "explanation": "",
        "img_type": "['Paintings']",
        "answer": str(count) if still_open else "ABCD"[number % 4],
        "topic_difficulty": "Easy",
        "question_type": "open" if still_open else "multiple-choice",
        "subfield": "Drawing",
    }
    media = {"bytes": encode_png(draw_picture(colour, shape, count)), "path": f"{row['id']}.png"}
    return row | {f"image_{place}": media if place == 1 else None for place in range(1, 8)}


def mmsu() -> list[Row]:
    """Return rows of `ngqtrung/mmsu`: a clip, a question and four choices; `answer` is a letter."""
    kinds = (("rises", 120.0, 260.0), ("falls", 260.0, 120.0), ("stays level", 180.0, 180.0))
    rows = []
    for number in range(ROWS):
        _, low, high = kinds[number % 3]
        clip = encode_wav(make_sweep(low, high, 0.8 + 0.1 * (number % 4)))
        rows.append(
            {
                "id": f"pitch_{number}",
                "audio": {"bytes": clip, "path": f"pitch_{number}.wav"},
                "question": "What does the pitch of the voice do?",
                "choice_a": "It rises",
                "choice_b": "It falls",
                "choice_c": "It stays level",
                "choice_d": "It cannot be heard",
                "answer": "ABC"[number % 3],
                "task_name": "intonation_perception",
                "category": "Perception",
                "sub_category": "Paralinguistics",
            }
        )
    return rows


def mmlu() -> list[Row]:
    """Return rows of `cais/mmlu`: `answer` is the index of the right choice."""
    subjects = ("elementary_mathematics", "abstract_algebra")
    rows = []
    for number in range(ROWS):
        left, right, place = 3 + number, 5 + 2 * number, number % 4
        choices = [str(left + right + offset - place) for offset in range(4)]
        question = f"What is {left} + {right}?"
        subject = subjects[number % 2]
        rows.append({"question": question, "subject": subject, "choices": choices, "answer": place})
    return rows


def video_mme() -> list[Row]:
    """Return rows of `lmms-lab/Video-MME`.

    The video itself is in `video`; there it is a separate file.
    """
    rows = []
    for number in range(ROWS // 2):
        first, last = COLOURS[number % 4], COLOURS[(number + 1) % 4]
        shape = SHAPES[number % 3]
        frames = [draw_picture(colour, shape) for colour in (first, last) for _ in range(4)]
        rows.append(
            {
                "video_id": f"{number + 1:03}",
                "duration": "short",
                "domain": "Knowledge",
                "sub_category": "Astronomy",
                "url": "",
                "videoID": f"drawn{number}",
                "question_id": f"{number + 1:03}-1",
                "task_type": "Temporal Perception",
                "question": f"Which colour does the {shape} have at the end?",
                "options": [
                    f"{a}. {c.capitalize()}." for a, c in zip("ABCD", COLOURS, strict=True)
                ],
                "answer": "ABCD"[(number + 1) % 4],
                "video": {"bytes": encode_mp4(frames), "path": f"drawn{number}.mp4"},
            }
        )
    return rows


_PLACES = ("by the river", "near the old mill", "behind the school", "on the market square")
_PEOPLE = ("the baker", "my neighbour", "the teacher", "a young man", "the doctor", "your sister")
_DEEDS = ("waits for the train", "reads a long letter", "sings a quiet song", "counts the boats")
_PLACES_ZH = ("在河边", "在老房子旁边", "在学校后面", "在市场上")
_PEOPLE_ZH = ("面包师", "我的邻居", "老师", "一位年轻人", "医生", "你的姐姐")
_DEEDS_ZH = ("等火车", "看一封长信", "唱一首歌", "数小船")


def seed_tts_en() -> list[Row]:
    """Return rows of seed-tts-eval, English."""
    return [
        _recited(number, f"{_PEOPLE[number % 6]} {_DEEDS[number // 6]} {_PLACES[number % 4]}.")
        for number in range(SEED_TTS_ROWS)
    ]


def seed_tts_zh() -> list[Row]:
    """Return rows of seed-tts-eval, Chinese."""
    return [
        _recited(
            number, f"{_PEOPLE_ZH[number % 6]}{_PLACES_ZH[number % 4]}{_DEEDS_ZH[number // 6]}。"
        )
        for number in range(SEED_TTS_ROWS)
    ]


def _recited(number: int, text: str) -> Row:
    low = 100.0 + 10 * (number % 8)
    clip = encode_wav(make_sweep(low, 1.3 * low, 1.6))
    return {
        "utt": f"drawn-{number:03}",
        "prompt_text": "Ah, ah.",
        "prompt_wav": {"bytes": clip, "path": f"drawn-{number:03}.wav"},
        "infer_text": text[:1].upper() + text[1:],
    }


def spoken() -> list[Row]:
    """Return spoken questions: a clip, its words, and the texts that a right answer may contain."""
    rows = []
    for number, (country, capital) in enumerate(_CAPITALS):
        samples, rate = soundfile.read(SPOKEN_QUESTIONS / f"{number}.ogg", dtype="int16")
        rows.append(
            {
                "id": f"spoken_{number}",
                "audio": {"bytes": encode_wav(samples, rate), "path": f"spoken_{number}.wav"},
                "question": f"What is the capital of {country}?",
                "answers": [capital],
            }
        )
    return rows


_CAPITALS = (
    ("France", "Paris"),
    ("Italy", "Rome"),
    ("Japan", "Tokyo"),
    ("Spain", "Madrid"),
    ("Germany", "Berlin"),
    ("Egypt", "Cairo"),
)
