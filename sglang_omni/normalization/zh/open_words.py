"""Han characters that may start a reading which goes on after them, or stand inside one."""

from sglang_omni.normalization.zh.classifiers import COUNTED_WORDS
from sglang_omni.normalization.zh.currencies import WRITTEN_NAMES
from sglang_omni.normalization.zh.dates import NAMED_YEARS
from sglang_omni.normalization.zh.identifiers import KNOWN_CONTEXT, PLACES
from sglang_omni.normalization.zh.scores import RESULTS
from sglang_omni.normalization.zh.telephone import CALL_AFTER
from sglang_omni.normalization.zh.units import PER_HAN

_CONTEXTS = (
    *COUNTED_WORDS,
    *WRITTEN_NAMES,
    *NAMED_YEARS,
    *KNOWN_CONTEXT,
    *PLACES,
    *RESULTS,
    *CALL_AFTER,
    *PER_HAN,
)
# Inside dates, times, ranges, fractions and amounts: 3月5日-8日, 5点差4分am, 1又1/5, 10到15.
_INSIDE = "年月日号点时分秒刻半差整又到至万亿千百十兆两第周星期代转打个"
# The first characters of words that tell what a number before them is: 上午, 以来, 历史, 劳动节.
_AFTER_DATES = "上下早晚凌中当国元假以历如之文左汶恐袭惨劳动长黄大购广起政讲消反晚"

# A text that is still arriving is not cut after one of them. The last character of a word that
# only follows a number does not count: the reading has seen all of it by then.
OPEN_CHARACTERS: str = "".join(
    sorted({*_INSIDE, *_AFTER_DATES, *(character for word in _CONTEXTS for character in word[:-1])})
)
