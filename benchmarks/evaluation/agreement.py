"""Check that this harness scores as the authors' own code does, on the same outputs.

    pip install --no-deps lm-eval==0.4.13 lmms-eval==0.7.3 jiwer sacrebleu portalocker evaluate
    python -m benchmarks.evaluation.agreement --out benchmarks/results/agreement.json

Outputs are handwritten forms of models' answers, filled with right and wrong answers. Each has a
label: whether a human reader takes it as right. lm-eval judges GSM8K and MMLU, lmms-eval MMMU
(whose parsers it copied) and Video-MME, SGLang GSM8K and MMMU; jiwer counts word errors. Where a
convention guesses, the comparison is whether it guesses, not the letter drawn. The file has every
output with both verdicts; a test compares this harness with it where those packages are missing.
"""

import argparse
import ast
import importlib.util
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.evaluation.tasks import choices, numbers, open_answers
from measurement.word_errors import count_word_errors

GUESS = "guess"
OPTIONS = ("Kidney", "Liver", "Heart muscle", "Left lung")
COUNTS = (3, 18, 42, 75, 104, 1250, 99, 7, 260, 31, 540, 12000)

# Answers with a number: "{n}" is the answer, "{n:,}" with thousands, "{m}" another number.
NUMBER_FORMS = {
    "hashes": "First {m} + 1 is computed.\n#### {n}",
    "hashes, dollars": "They earn ${n}.\n#### ${n}",
    "hashes, thousands": "So it is {n:,}.\n#### {n:,}",
    "hashes, decimals": "It costs {n} dollars.\n#### {n}.00",
    "hashes, unit": "#### {n} apples",
    "hashes, no space": "####{n}",
    "hashes, then more": "#### {n}\n\nQuestion: Ben has {m} pencils. How many are left?",
    "sentence": "There are {m} boxes, so the answer is {n}.",
    "sentence, thousands": "Altogether {m} and then {n:,}.",
    "sentence, money": "She pays ${n}.",
    "sentence, cents": "She pays ${n}.50.",
    "bold": "**Answer: {n}**",
    "boxed": "Therefore \\boxed{{{n}}}",
    "percent": "That makes {n}%.",
    "equation": "{m} - 1 = {n}",
    "the final answer is": "We add {m}. The final answer is {n}",
    "the final answer is, point": "The final answer is {n}.",
    "the final answer is, money": "The final answer is ${n:,}.",
    "number before a unit with digits": "It takes {n} m3 of water.",
    "words": "The answer is twelve.",
    "nothing": "I cannot tell.",
    "minus": "He has -{n} left.",
    "range": "Between {m} and {n}",
    "list": "1. Add.\n2. Subtract to get {n}.",
    "leading zero": "It is 0{n}",
}
# Answers with a letter: "{a}" is the answer, "{b}" another letter, "{x}" and "{y}" their texts.
LETTER_FORMS = {
    "letter": "{a}",
    "letter, point": "{a}.",
    "brackets": "({a})",
    "letter and text": "{a}. {x}",
    "brackets and text": "({a}) {x}",
    "sentence": "The answer is {a}.",
    "sentence, brackets": "The correct answer is ({a}) because of the colour.",
    "sentence, two letters": "It is not {b} but {a} that is shown",
    "brackets of two": "Neither (B) nor (C) fits, except ({a}).",
    "last line": "The shape is dark.\nAnswer: {a}",
    "last line, dollar": "The shape is dark.\nAnswer: ${a}",
    "last line, bold": "**Answer: {a}**",
    "text only": "The organ that is shown here is the {x}",
    "text only, two": "It looks like the {y} at first, but it must be the {x}",
    "short text": "{x}",
    "lower case": "the answer is ({a})".lower(),
    "begins with a": "A careful look shows that the answer is {a}.",
    "option list": "A. Kidney\nB. Liver\nC. Heart muscle\nD. Left lung\n\nI choose {a}",
    "colon": "{a}: {x}",
    "bracket after": "{a}) {x}",
    "thinking": "Let me see. {b} would be red. So the best option is {a}",
    "nothing": "I cannot see the picture.",
    "empty": "",
    "chinese": "答案是{a}",
    "new line first": "\n{a}",
}
OPEN_FORMS = {
    "number": "{n}",
    "sentence": "The answer is {n}.",
    "equation": "We get x = {n}",
    "thousands": "The total is {n:,}",
    "decimals": "So the result is {n}.00",
    "unit": "It is {n} cm",
    "two numbers": "First {m}.\nThus {n}",
    "other number": "The answer is {m}",
    "words": "It could be Paris",
    "scientific": "about {n}e0",
    "none": "unknown",
    "letter in a word": "therefore x",
}
SPEECH_FORMS = (
    ("en", "The baker waits for the train by the river.", "the baker waits for a train by river"),
    ("en", "My neighbour's cat sings.", "my neighbour's cat sings"),
    ("en", "It's well-known, isn't it?", "its well known isn't it"),
    ("en", "Count the boats!", ""),
    ("en", "Good morning.", "good good morning everyone"),
    ("zh", "面包师在河边等火车。", "面包师在河边等货车"),
    ("zh", "会议改到下午举行，请提前到。", "会议改到下午举行请提前到"),
    ("zh", "请稍等。", "请您稍等一下"),
)


@dataclass(frozen=True)
class Case:
    """One output under one convention: the reader's label, and both verdicts."""

    convention: str
    form: str
    output: str
    truth: str
    label: bool
    ours: str
    theirs: str


Judge = Callable[[str, str], str]


def format_verdict(right: bool) -> str:
    """Return the verdict as text."""
    return "right" if right else "wrong"


def number_outputs() -> Iterator[tuple[str, str, str, bool]]:
    """Yield form, output, truth and label of answers with a number."""
    for index, truth in enumerate(COUNTS):
        for place, (form, text) in enumerate(NUMBER_FORMS.items()):
            # Every fifth output has another value.
            wrong = (index + place) % 5 == 0
            said = truth + 5 if wrong else truth
            right = not wrong and form not in ("words", "nothing", "minus", "sentence, cents")
            right &= form not in ("range",)
            yield form, text.format(n=said, m=truth + 2), str(truth), right


def letter_outputs() -> Iterator[tuple[str, str, str, bool]]:
    """Yield form, output, truth and label of answers with a letter."""
    for index, truth in enumerate("ABCD" * 3):
        for place, (form, text) in enumerate(LETTER_FORMS.items()):
            wrong = (index + place) % 5 == 0
            said = "ABCD"[(index + wrong) % 4]
            other = "ABCD"[(index + 2) % 4]
            texts = dict(zip("ABCD", OPTIONS, strict=True))
            output = text.format(a=said, b=other, x=texts[said], y=texts[other])
            yield form, output, truth, not wrong and form not in ("nothing", "empty")


def open_outputs() -> Iterator[tuple[str, str, str, bool]]:
    """Yield form, output, truth and label of open answers."""
    for index, number in enumerate(COUNTS):
        for place, (form, text) in enumerate(OPEN_FORMS.items()):
            wrong = (index + place) % 5 == 0
            output = text.format(n=number + 5 * wrong, m=number + 2)
            named = {"words": "Paris", "letter in a word": "x"}.get(form)
            right = form not in ("other number", "none") and (not wrong or named is not None)
            yield form, output, named or str(number), right


def _exact(extract: Callable[[str], str | None]) -> Judge:
    def judge(output: str, truth: str) -> str:
        found = extract(output)
        return format_verdict(found is not None and numbers.same_text(found, truth))

    return judge


def _value(extract: Callable[[str], str | None], of_truth: bool) -> Judge:
    """Judge by value. With `of_truth` the truth is extracted like an answer, as SGLang does."""

    def judge(output: str, truth: str) -> str:
        found, right = extract(output), (extract(truth) or "") if of_truth else truth
        return format_verdict(found is not None and numbers.same_value(found, right))

    return judge


def _letter(read: Callable[..., str | None], none: str) -> Judge:
    def judge(output: str, truth: str) -> str:
        letter = read(output, OPTIONS)
        return none if letter is None else format_verdict(letter == truth)

    return judge


OURS: dict[str, Judge] = {
    "gsm8k/lm-eval-strict": _exact(numbers.after_hashes),
    "gsm8k/lm-eval-flexible": _exact(numbers.last_flexible),
    "gsm8k/llama": _exact(numbers.final_answer),
    "gsm8k/sglang-5-shot": _value(numbers.last_digits, True),
    "gsm8k/sglang-run-eval": _value(numbers.last_signed, False),
    "mmlu/lm-eval-generative": _letter(choices.first_line, "wrong"),
    "mmmu/lmms-eval": _letter(choices.lmms_letter, GUESS),
    "mmmu/sglang-run-eval": lambda output, truth: format_verdict(
        choices.or_first(choices.sglang_letter(output, OPTIONS), truth).right
    ),
    "videomme/lmms-eval": _letter(choices.surest_letter, "wrong"),
    "mmmu/open": lambda output, truth: format_verdict(
        open_answers.matches_truth(open_answers.parse_open_answer(output), truth)
    ),
}


def _peer_file(package: str, path: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        sys.exit(
            f"{package} is not installed: see python -m benchmarks.evaluation.agreement --help"
        )
    return Path(next(iter(spec.submodule_search_locations)), path)


def _peer_module(path: Path) -> ModuleType:
    """Load one file of a peer without the packages around it, which have many more dependencies."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _peer_functions(path: Path, names: set[str]) -> dict[str, Any]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in names]
    found: dict[str, Any] = {"re": re, "ast": ast, "List": list, "INVALID": None}
    exec(compile(tree, str(path), "exec"), found)
    return found


def load_peer_judges() -> dict[str, Judge]:
    """Return the same conventions in their authors' code."""
    return _lm_eval() | _lmms_eval() | _sglang()


def _lm_eval() -> dict[str, Judge]:
    import yaml
    from lm_eval.api.metrics import exact_match_fn
    from lm_eval.filters.extraction import RegexFilter

    def judges(path: str, name: str, chosen: str, whole: bool) -> Judge:
        task = yaml.safe_load(_peer_file("lm_eval", path).read_text(encoding="utf-8"))
        filters = next(one for one in task["filter_list"] if one["name"] == chosen)["filter"]
        regexes = [
            RegexFilter(**{k: v for k, v in one.items() if k != "function"})
            for one in filters
            if one["function"] == "regex"
        ]
        metric = task["metric_list"][0]
        rules = ("regexes_to_ignore", "ignore_case", "ignore_punctuation")
        kept = {rule: metric[rule] for rule in rules if rule in metric}

        def judge(output: str, truth: str) -> str:
            for regex in regexes:
                output = regex.apply([[output]], [{}])[0][0].strip()
            target = f"Worked.\n#### {truth}" if whole else truth
            score = exact_match_fn(predictions=[output], references=[target], **kept)
            return format_verdict(bool(score["exact_match"]))

        return judge

    base, llama = "tasks/gsm8k/gsm8k.yaml", "tasks/gsm8k/gsm8k-cot-llama.yaml"
    mmlu = "tasks/mmlu/generative/_default_template_yaml"
    return {
        "gsm8k/lm-eval-strict": judges(base, "gsm8k", "strict-match", True),
        "gsm8k/lm-eval-flexible": judges(base, "gsm8k", "flexible-extract", True),
        "gsm8k/llama": judges(llama, "gsm8k", "strict-match", False),
        "mmlu/lm-eval-generative": judges(mmlu, "mmlu", "get_response", False),
    }


def _lmms_eval() -> dict[str, Judge]:
    parser = _peer_module(_peer_file("lmms_eval", "tasks/_task_utils/mmmu_mcq_utils.py"))
    surest = _peer_module(_peer_file("lmms_eval", "tasks/_task_utils/mcq_extract.py"))
    names = {
        "extract_numbers",
        "check_is_number",
        "normalize_str",
        "parse_open_response",
        "eval_open",
    }
    opened = _peer_functions(_peer_file("lmms_eval", "tasks/mmmu/utils.py"), names)

    class Guessing:
        @staticmethod
        def choice(_: Any) -> str:
            return GUESS

    parser.random = Guessing  # type: ignore[attr-defined]
    texts, letters = parser.get_multi_choice_info(OPTIONS)

    def mmmu(output: str, truth: str) -> str:
        letter = parser.parse_mmmu_multi_choice_response(output, letters, texts)
        return GUESS if letter == GUESS else format_verdict(letter == truth)

    def video(output: str, truth: str) -> str:
        return format_verdict(surest.extract_mcq_answer(output, choices=list("ABCD")) == truth)

    def spoken(output: str, truth: str) -> str:
        return format_verdict(opened["eval_open"](truth, opened["parse_open_response"](output)))

    return {"mmmu/lmms-eval": mmmu, "videomme/lmms-eval": video, "mmmu/open": spoken}


def _sglang() -> dict[str, Judge]:
    def values(file: str) -> Judge:
        found = _peer_functions(_peer_file("sglang", f"test/{file}.py"), {"get_answer_value"})
        value = found["get_answer_value"]
        return lambda output, truth: format_verdict(value(output) == value(f"#### {truth}"))

    name = "_parse_multi_choice_response"
    found = _peer_functions(_peer_file("sglang", "test/simple_eval_mmmu_vlm.py"), {name})
    texts = dict(zip("ABCD", OPTIONS, strict=True))

    def mmmu(output: str, truth: str) -> str:
        return format_verdict(found[name](output, list(texts), texts) == truth)

    return {
        "gsm8k/sglang-5-shot": values("few_shot_gsm8k"),
        "gsm8k/sglang-run-eval": values("simple_eval_gsm8k"),
        "mmmu/sglang-run-eval": mmmu,
    }


def compare_verdicts(peers: dict[str, Judge]) -> Iterator[Case]:
    """Yield a case for every output under every convention that applies to it."""
    outputs = {"gsm8k": number_outputs, "mmmu/open": open_outputs}
    for convention, ours in OURS.items():
        make = outputs.get(convention) or outputs.get(convention.split("/")[0]) or letter_outputs
        for form, output, truth, label in make():
            verdicts = ours(output, truth), peers[convention](output, truth)
            yield Case(convention, form, output, truth, label, *verdicts)


def compare_word_errors() -> Iterator[Case]:
    """Yield our word errors beside jiwer's, with the normalisation of seed-tts-eval."""
    import jiwer

    from measurement.word_errors import normalise_words

    for language, reference, transcript in SPEECH_FORMS:
        ours = count_word_errors(reference, transcript, language)
        words, transcript_words = (
            normalise_words(reference, language),
            normalise_words(transcript, language),
        )
        peer_errors = jiwer.process_words(" ".join(words), " ".join(transcript_words))
        wrong = peer_errors.substitutions + peer_errors.deletions + peer_errors.insertions
        label = words == transcript_words
        our_errors = f"{ours.wrong}/{ours.words}"
        yield Case(
            "wer", language, transcript, reference, label, our_errors, f"{wrong}/{len(words)}"
        )


def format_table(cases: list[Case]) -> str:
    """Format a row per convention: outputs, those scored alike, those scored as the reader does."""
    lines = ["| convention | outputs | scored alike | as a reader |", "|---|---|---|---|"]
    for convention in dict.fromkeys(case.convention for case in cases):
        selected = [case for case in cases if case.convention == convention]
        alike = sum(case.ours == case.theirs for case in selected)
        human = sum((case.ours == "right") == case.label for case in selected)
        as_reader = human if convention != "wer" else ""
        lines.append(f"| {convention} | {len(selected)} | {alike} | {as_reader} |")
    return "\n".join(lines)


def main() -> int:
    """Judge, print and write. Return 1 if a verdict differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    cases = [*compare_verdicts(load_peer_judges()), *compare_word_errors()]
    print(format_table(cases))
    different = [case for case in cases if case.ours != case.theirs]
    for case in different:
        print(f"DIFFERS {case}")
    if arguments.out:
        columns = [entry.name for entry in fields(Case)]
        rows = ",\n".join(json.dumps([*asdict(case).values()]) for case in cases)
        text = f'{{"columns": {json.dumps(columns)}, "rows": [\n{rows}\n]}}\n'
        arguments.out.write_text(text, encoding="utf-8")
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main())
