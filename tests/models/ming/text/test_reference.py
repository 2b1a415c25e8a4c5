"""Every stage of the front end against the reference's strings, with the reference's rules."""

from collections.abc import Iterable
from typing import Any

import pytest

from sglang_omni.models.ming.text.duration import Alignment, exceeds_reading_time
from sglang_omni.models.ming.text.reference.chinese import spell_out_chinese
from sglang_omni.models.ming.text.reference.clean import clean
from sglang_omni.models.ming.text.reference.english import spell_out_english
from sglang_omni.models.ming.text.reference.front import (
    collect_reference_fragments,
    normalize,
    normalize_partly,
)
from sglang_omni.models.ming.text.reference.grammar import normalize_chinese
from sglang_omni.models.ming.text.split_text import locate_parts, split_text
from sglang_omni.models.ming.text.tokens import (
    contains_chinese,
    count_units,
    has_content,
    split_tokens,
)
from tests.testing.golden import cases, load_case

ENTRIES = [
    entry for name in cases("text_front", "strings") for entry in load_case(name).info["cases"]
]
ALIGNED = [
    entry for name in cases("text_front", "alignment") for entry in load_case(name).info["cases"]
]


def by_text(entry: dict[str, Any]) -> str:
    return entry["text"][:24]


every_entry = pytest.mark.parametrize("entry", ENTRIES, ids=by_text)


def segments(elements: Iterable[str]) -> list[dict[str, Any]]:
    """What the reference hands to synthesis, with one very long chunk for each fragment."""
    alignment, found = Alignment(), []
    for fragment in collect_reference_fragments(elements):
        alignment.start_fragment(fragment)
        heard = alignment.locate_chunk(fragment, 1e6)
        found.append(
            {
                "spoken": normalize_partly(fragment.text),
                "original": fragment.text,
                "position": [heard.first, heard.last],
                "stream": fragment.is_streamed,
            }
        )
    return found


@every_entry
def test_tokens(entry: dict[str, Any]) -> None:
    text = entry["text"]
    assert split_tokens(text) == entry["tokens_whole_string"]
    assert [t for char in text for t in split_tokens(char)] == entry["tokens_per_character"]


@every_entry
def test_measures(entry: dict[str, Any]) -> None:
    text = entry["text"]
    assert count_units(text) == entry["semantic_length"]
    assert contains_chinese(text) == entry["contains_chinese"]
    assert has_content(text) == entry["has_valid_content"]


@every_entry
def test_cutting(entry: dict[str, Any]) -> None:
    text = entry["text"]
    assert split_text(text, 50) == entry["cut50"]
    assert split_text(text, 20) == entry["cut20"]
    positions = {
        str(i): list(span) for i, span in enumerate(locate_parts(text, split_text(text, 50)))
    }
    assert positions == entry["cut50_positions"]


@every_entry
def test_english_numbers(entry: dict[str, Any]) -> None:
    assert spell_out_english(entry["text"]) == entry["normalize_numbers"]


@every_entry
def test_clean_up(entry: dict[str, Any]) -> None:
    assert clean(entry["text"]) == entry["pre_processor"]


@pytest.mark.parametrize("entry", [e for e in ENTRIES if "rule_rewriting" in e], ids=by_text)
def test_chinese_rules(entry: dict[str, Any]) -> None:
    assert spell_out_chinese(clean(entry["text"])) == entry["rule_rewriting"]


@pytest.mark.parametrize("entry", [e for e in ENTRIES if "tn_full_chinese" in e], ids=by_text)
def test_chinese_grammar(entry: dict[str, Any]) -> None:
    """The reference's own grammar; the packaged one gives the same here."""
    text = spell_out_chinese(clean(entry["text"]))
    assert normalize_chinese(text) == entry["tn_full_chinese"]


@every_entry
def test_sentences_of_a_string(entry: dict[str, Any]) -> None:
    assert segments(entry["text"]) == entry["segments_string"]


@every_entry
def test_sentences_of_deltas(entry: dict[str, Any]) -> None:
    elements = [token for delta in entry["deltas"] for token in split_tokens(delta)]
    assert segments(elements) == entry["segments_deltas"]


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e["segments_string_full_tn"]], ids=by_text)
def test_whole_normalisation_of_chinese(entry: dict[str, Any]) -> None:
    """Blanks at the ends, which the reference keeps in Chinese, are stripped."""
    found = [normalize(segment["original"]) for segment in entry["segments_string"]]
    assert found == [text.strip() for text in entry["segments_string_full_tn"]]


@pytest.mark.parametrize("entry", ALIGNED, ids=by_text)
def test_alignment_and_duration_guard(entry: dict[str, Any]) -> None:
    alignment, found, requests = Alignment(), [], 0
    for fragment in collect_reference_fragments(entry["text"]):
        alignment.start_fragment(fragment)
        requests += 1
        seconds = 0.0
        for chunk in entry["chunk_seconds"]:
            if exceeds_reading_time(fragment.text, seconds):
                break
            heard = alignment.locate_chunk(fragment, chunk)
            seconds += chunk
            found.append(
                {
                    "text": heard.text,
                    "position": [heard.first, heard.last],
                    "ms": pytest.approx(chunk * 1000),
                }
            )
    assert found == entry["yielded"]
    assert requests == entry["n_requests"]
