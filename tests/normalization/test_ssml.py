"""SSML: what a document says, and which documents are refused."""

import re

import pytest

from sglang_omni.normalization.normalizer import build_normalizer
from sglang_omni.normalization.ssml import (
    MAX_LANG_CHARACTERS,
    MAX_PRONUNCIATIONS,
    MAX_SILENCE_S,
    Break,
    is_ssml,
    parse_ssml,
)
from sglang_omni.normalization.ssml_elements import ELEMENTS, MAX_DEPTH, MAX_ELEMENTS, STRENGTHS
from sglang_omni.protocol.errors import InvalidRequest


def speak(content: str, attributes: str = "") -> str:
    return f"<speak{attributes}>{content}</speak>"


def read(source: str) -> str:
    document = parse_ssml(source)
    normalizer = build_normalizer(document.pronunciations)
    return normalizer.normalize(document.text, 0, document.language)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<speak>Hello</speak>", True),
        ("  \n<speak version='1.0'>Hello</speak>", True),
        ("<speak/>", True),
        ("<?xml version='1.0' encoding='UTF-8'?>\n<speak>Hello</speak>", True),
        ("<speak", False),
        ("<speaker>Hello</speaker>", False),
        ("Say <speak>", False),
        ("<p>Hello</p>", False),
        ("", False),
    ],
)
def test_a_text_that_starts_with_speak_is_ssml(text: str, expected: bool) -> None:
    assert is_ssml(text) == expected


@pytest.mark.parametrize(
    ("content", "spoken"),
    [
        ("I paid <sub alias='five bucks'>$5</sub>.", "I paid five bucks."),
        (
            "The <sub alias='World Wide Web Consortium'>W3C</sub> met.",
            "The World Wide Web Consortium met.",
        ),
        ("It is <sub alias='3 km'>far</sub> away.", "It is three kilometers away."),
        ("Read<sub alias='two'>2</sub>it", "Read two it"),
        ("😀<sub alias='yes'>y</sub>😀", "yes"),
        ("Code <say-as interpret-as='characters'>A1</say-as>!", "Code A one!"),
        ("房间是<say-as interpret-as='digits'>205</say-as>。", "房间是二零五。"),
        (
            "On <say-as interpret-as='date' format='dmy'>1/2/2024</say-as>.",
            "On February first, twenty twenty-four.",
        ),
        ("<say-as interpret-as='ordinal'>3</say-as>", "third"),
        ("今天<lang xml:lang='en-US'>3:30</lang>见。", "今天three thirty见。"),
        ("Tom &amp; Jerry", "Tom and Jerry"),
        ("<!-- not this --><![CDATA[1 < 2]]>", "one less than two"),
        ("3\n  o'clock", "three o'clock"),
    ],
)
def test_elements_are_read_within_their_sentence(content: str, spoken: str) -> None:
    assert read(speak(content)) == spoken


def test_the_language_of_the_document_decides_where_the_text_shows_none() -> None:
    number = "<say-as interpret-as='cardinal'>12</say-as>"
    assert read(speak(number)) == "twelve"
    assert read(speak(number, " xml:lang='zh-CN'")) == "十二"
    assert read(speak("12", " xml:lang='zh-CN'")) == "十二"
    assert parse_ssml(speak("12"), "zh").language == "zh"
    assert parse_ssml(speak("12", " xml:lang='en-GB'"), "zh").language == "en"


def test_a_paragraph_ends_a_sentence() -> None:
    content = "<p><s>One 2</s><s>Three.</s></p>\n<p>Four</p>five"
    assert parse_ssml(speak(content)).text == "One 2\n\nThree. \n\nFour\n\nfive"
    assert read(speak(content)) == "One two. Three. Four. five"


@pytest.mark.parametrize(
    ("element", "seconds"),
    [
        ("<break time='500ms'/>", 0.5),
        ("<break time='1.5s'/>", 1.5),
        ("<break time='+2s'></break>", 2.0),
        ("<break time='10s' strength='weak'/>", 10.0),
        ("<break/>", STRENGTHS["medium"]),
        *((f"<break strength='{name}'/>", STRENGTHS[name]) for name in STRENGTHS if name != "none"),
    ],
)
def test_a_break_is_a_pause_between_two_words(element: str, seconds: float) -> None:
    document = parse_ssml(speak(f"one {element} two"))
    assert document.text == "one two"
    assert document.breaks == (Break(4, seconds),)


@pytest.mark.parametrize("element", ["<break strength='none'/>", "<break time='0s'/>"])
def test_no_pause_changes_nothing(element: str) -> None:
    document = parse_ssml(speak(f"one {element}two"))
    assert (document.text, document.breaks) == ("one two", ())


def test_pauses_may_stand_anywhere() -> None:
    document = parse_ssml(speak("<break time='1s'/><p>a</p><break time='2s'/>b<break time='3s'/> "))
    assert document.text == "a\n\nb"
    assert document.breaks == (Break(0, 1.0), Break(3, 2.0), Break(4, 3.0))


def test_words_can_be_put_into_the_text_itself() -> None:
    source = speak("1 <sub alias='two 2'>x</sub><break time='1s'/><sub alias='3'>y</sub>.")
    document = parse_ssml(source, normalizes=False).spell_out()
    assert document.text == "1 two 2 3."
    assert document.breaks == (Break(8, 1.0),)
    assert not document.pronunciations


def test_private_characters_of_the_text_stand_for_nothing() -> None:
    assert read(speak("a\ue000 <sub alias='b'>x</sub>")) == "a b"


def test_equal_words_share_a_character() -> None:
    document = parse_ssml(speak("<sub alias='b'>x</sub> " * 2 * MAX_PRONUNCIATIONS))
    assert list(document.pronunciations.values()) == ["b"]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (speak("a & b"), r"line 1, column 11: not well-formed XML"),
        ("<speak>\n <p>a</speak>", r"line 2, column \d+: not well-formed XML: mismatched tag"),
        ("<speak>a", r"not well-formed XML: no element found"),
        (speak("a") + "b", r"not well-formed XML: junk"),
        ("<speak><!DOCTYPE a></speak>", r"not well-formed XML"),
        ("<?xml version='1.0'?><!DOCTYPE a><speak/>", r"document type"),
        (speak("&lol;"), r"not well-formed XML: undefined entity"),
        (speak("<prosody rate='slow'>a</prosody>"), r"<prosody> is not supported.*<sub>"),
        (speak("<mstts:express-as>a</mstts:express-as>"), r"<mstts:express-as> is not supported"),
        (speak("<phoneme ph='a'>a</phoneme>"), r"<phoneme> is not supported.*<sub alias>.*lexicon"),
        (speak("<speak>a</speak>"), r"<speak> must contain all other"),
        (speak("<sub>a</sub>"), r"needs the attribute alias"),
        (speak("<sub alias='a'><s>b</s></sub>"), r"<sub> must not contain <s>"),
        (speak("<break>a</break>"), r"<break> must be empty"),
        (speak("<break time='11s'/>"), r"at most 10 s"),
        (speak("<break time='-1s'/>"), r"write it as 500ms"),
        (speak("<break time='1'/>"), r"write it as 500ms"),
        (speak("<break strength='loud'/>"), r"'loud'; it may be none, x-weak"),
        (speak("<break size='1'/>"), r"unknown attribute 'size'"),
        (speak("<say-as>a</say-as>"), r"needs the attribute interpret-as"),
        (speak("<say-as interpret-as='song'>a</say-as>"), r"'song'.*characters, spell-out"),
        (speak("<say-as interpret-as='date' format='xyz'>1</say-as>"), r"'xyz'; it may be mdy"),
        (speak("<say-as interpret-as='date'>a</say-as>"), r"column 8: .*cannot read 'a' as 'date'"),
        (speak("<say-as interpret-as='date'> </say-as>"), r"must contain 1 to 300"),
        (speak("<lang>a</lang>"), r"needs the attribute xml:lang"),
        (speak("<lang xml:lang='fr-FR'>a</lang>"), r"'fr-FR' is not supported"),
        (speak("<p>" * MAX_DEPTH + "</p>" * MAX_DEPTH), r"more than 20 deep"),
        (
            speak("<break time='10s'/>" * int(MAX_SILENCE_S / 10 + 1)),
            r"pauses last more than 600 s",
        ),
        (
            speak("".join(f"<sub alias='a{n}'/>" for n in range(MAX_PRONUNCIATIONS + 1))),
            r"more than 1000",
        ),
        (speak("<s/>" * MAX_ELEMENTS), r"more than 50000 elements"),
        (
            speak(f"<lang xml:lang='en'>{'a ' * MAX_LANG_CHARACTERS}</lang>"),
            r"more than 20000 char",
        ),
        ("<speak>\ud800</speak>", r"not well-formed XML"),
        ("<speak>\x00</speak>", r"not well-formed XML"),
    ],
)
def test_what_is_not_supported_is_refused_with_its_place(source: str, told: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_ssml(source)
    assert refused.value.param == "input"
    assert refused.value.message.startswith("input: SSML, ")
    assert re.search(told, refused.value.message)


def test_the_supported_elements_are_those_of_the_documentation() -> None:
    assert ELEMENTS == ("speak", "p", "s", "break", "sub", "say-as", "lang")


@pytest.mark.parametrize("words", ["a simple word", "三月"])
def test_a_text_can_be_cut_after_a_sentence_with_a_pronunciation(words: str) -> None:
    sentence = f"It says <sub alias='{words}'>x</sub> here. And so it goes on"
    document = parse_ssml(speak(sentence))
    normalizer = build_normalizer(document.pronunciations)
    end = document.text.index(" here. ") + len(" here. ")
    assert normalizer.safe_cut(document.text, end) == end
    assert words in normalizer.normalize(document.text[:end])
