"""Scores and ratios: 3:2, 110-98, 16:9."""

from sglang_omni.normalization.rule import FormStart, Match, Rule
from sglang_omni.normalization.zh.numbers import spell_cardinal
from sglang_omni.normalization.zh.patterns import form, one_of, text_before

# What is said after a score, and before one.
RESULTS = (
    "获胜", "取胜", "战胜", "击败", "大胜", "完胜", "险胜", "小胜", "逆转", "横扫",
    "淘汰", "告负", "不敌", "惜败", "战平", "打平", "握手言和", "领先", "落后", "力克",
    "击溃", "胜", "负于", "胜出", "锁定", "完败", "输给", "赢", "的比分", "大比分", "平",
)  # fmt: skip
_SCORE_BEFORE = form(
    r"(?:比分|得分|总分|战绩|大比分|比数|战平|比例|配比|比率|之比|按|长宽比|宽高比|队|终场|半场)[^，。；,;]{0,6}\Z"
    r"|(?:以|按|成|(?<!时间)为|(?<!时间)约为)\s?\Z"
)
_COLON = form(
    r"(?<![\w:.：])(?P<first>\d{1,5}(?:\.\d+)?)\s?[:：\u2236]\s?(?P<last>\d{1,5}(?:\.\d+)?)(?![\d:：]|\.\d|[A-Za-z])"
)
_MORE = form(r"(?<=\d)\s?[:：\u2236]\s?(?=\d)")
_DASH = form(
    r"(?<![\w:.-])(?P<first>\d{1,3})\s?[-\u2013—]\s?(?P<last>\d{1,3})(?![\w.-])"
    rf"(?P<result>(?={one_of(RESULTS)}))?"
)


def _spell_score(match: Match) -> str:
    return f"{spell_cardinal(match['first'])}比{spell_cardinal(match['last'])}"


def _read_clear_score(match: Match) -> str | None:
    """Read a score that could be a time or a range: the words around it tell."""
    after = match.string[match.end() : match.end() + 4].lstrip()
    if after.startswith(RESULTS):
        return _spell_score(match)
    before = text_before(match, 12)
    is_score = _SCORE_BEFORE.search(before) is not None and not before.endswith(("约为", "队 "))
    return _spell_score(match) if is_score else None


def _read_dash(match: Match) -> str | None:
    after = match.string[match.end() : match.end() + 4].lstrip()
    before = text_before(match, 8)
    is_draw = match["first"] == match["last"]
    is_score = is_draw or after.startswith(RESULTS) or _COMPARED.search(before) is not None
    return _spell_score(match) if is_score else None


_COMPARED = form(r"(?:比分|大比分|战绩|总比分|决赛|主场|客场|总分)[为是：: ]{0,2}\Z")

RULES_BEFORE_TIMES = (
    Rule("score", _COLON, _read_clear_score, FormStart.DIGIT),
    Rule("score", _DASH, _read_dash, FormStart.DIGIT),
)
RULES = (
    Rule("score", _COLON, _spell_score, FormStart.DIGIT),
    Rule("score", _MORE, lambda _: "比", FormStart.SIGN),
)
