"""Numbers that name a thing and are read digit by digit: 验证码839201, 302室, 尾号1702, 930新政."""

from sglang_omni.normalization.rule import FormStart, Match, Rule
from sglang_omni.normalization.zh.numbers import spell_digits
from sglang_omni.normalization.zh.patterns import form, one_of, text_before

NAMES = (
    "验证码", "校验码", "动态码", "激活码", "密码", "口令", "尾号", "编号", "编码",
    "学号", "工号", "卡号", "账号", "帐号", "账户", "号码", "身份证号", "身份证", "证号",
    "单号", "订单", "订单号", "运单", "快递", "取件码", "提取码", "邀请码", "兑换码",
    "代码", "邮编", "邮政编码", "房号", "房间号", "门牌号", "航班", "航班号", "车牌",
    "车牌号", "车次", "群号", "流水号", "序列号", "批号", "货号", "文号", "档号", "警号",
    "座位号", "考号", "准考证号", "QQ", "qq", "微信", "微信号", "ID", "id", "Id", "PIN",
    "pin", "番号", "代号", "型号", "病床号", "手机", "手机号", "电话", "固话", "座机",
    "传真", "热线", "ISBN", "ISSN", "SN", "卡", "房间", "邮箱", "短号", "区号", "IMEI",
)  # fmt: skip
_NAME_BEFORE = form(
    rf"{one_of(NAMES)}(?:号码?|码|末尾|后四位|后六位)?\s?[是为：:（(“\"#\s]{{0,3}}\Z"
)
# Two names need no quantity: 房间 305 and 卡 6222.
_DIGITS = form(
    r"(?<![\w.,])\d{2,}+(?:-\d++| \d{2,}+){0,6}(?P<check>[Xx](?!\w))?(?![\w%℃°]|[.,/]\d)"
)
_COUNTED = (
    "个", "元", "块", "次", "分钟", "人", "万", "名", "天", "年", "月", "日", "张",
    "台", "部", "条", "位", "款", "种", "多", "余", "点", "只", "件", "封", "小时",
)  # fmt: skip
_GROUPS = form(r"(?<![\w.,])\d{1,6}+(?:-\d{1,8}+){2,8}+(?![\w%℃°=-])")
_CARD = form(r"(?<![\w.,])\d{4}(?: \d{4}){2,4}(?: \d{1,3})?(?![\w.,%])")
# A number that is partly hidden: 138****1234.
_HIDDEN = form(r"(?<![\w.])(?P<first>\d{1,6})(?P<hidden>[*]{2,12})(?P<last>\d{1,6})(?!\w)")
_IDENTITY = form(r"(?<![\w.])\d{17}[Xx](?!\w)")
# Three digits and more in front of these name a room, a bus or a policy.
PLACES = (
    "室", "房", "号房", "房间", "号房间", "路公交", "路汽车", "路车", "路巴士", "路",
    "国道", "省道", "县道", "航班", "次列车", "新政", "事件", "事变", "工作制", "高校",
    "工程大学", "晚会", "大促", "购物节", "型号", "中学", "医院", "艺术区", "号病房",
    "号文件", "厂", "部队", "研究所", "次航班", "次高铁", "次动车", "信箱", "班次",
)  # fmt: skip
_NAMED_PLACE = form(rf"(?<![\w.,-])\d{{3,5}}(?={one_of(PLACES)})")
# 20 to 29 years of these are known by their digits.
_KNOWN = form(r"(?<![\w.,-])(?:985|211|996|007|618|315|911|918|404|520|1314)(?![\w.,%-])")
KNOWN_CONTEXT = (
    "高校", "大学", "院校", "工程", "工作", "加班", "大促", "年中", "购物", "活动",
    "晚会", "事件", "事变", "页面", "错误", "表白", "情人", "、", "/", "和", "与",
)  # fmt: skip
_LICENCE_PLATE = form(
    r"(?<=[\u4e00-\u9fff])(?P<city>[A-HJ-Z])[·•・ ]?(?P<rest>[A-HJ-NP-Z0-9]{5,6})(?!\w)"
)


def _spell(written: str) -> str:
    """Spell the digits of a form and drop the signs between them."""
    return spell_digits("".join(filter(str.isdigit, written)))


def _read_named(match: Match) -> str | None:
    """Read digits after the name of a code: 尾号1702, 密码是 1234."""
    after = match.string[match.end() : match.end() + 2]
    if after.startswith(_COUNTED) or not _NAME_BEFORE.search(text_before(match, 16)):
        return None
    return _spell(match[0]) + ("X" if match["check"] else "")


def _read_groups(match: Match) -> str:
    return _spell(match[0])


def _read_identity(match: Match) -> str:
    return f"{_spell(match[0])}X"


def _read_place(match: Match) -> str | None:
    """Read 302室 as 三零二室, but 100路 as a number would be."""
    return None if match[0].endswith("00") and match[0] != "100" else _spell(match[0])


def _read_known(match: Match) -> str | None:
    after = match.string[match.end() : match.end() + 2]
    return _spell(match[0]) if after.startswith(KNOWN_CONTEXT) else None


def _read_plate(match: Match) -> str:
    rest = "".join(spell_digits(sign) if sign.isdigit() else sign for sign in match["rest"])
    return match["city"] + rest


def _read_hidden(match: Match) -> str:
    """Read 138****1234 with 星 for each sign that hides a digit."""
    return _spell(match["first"]) + "星" * len(match["hidden"]) + _spell(match["last"])


RULES = (
    Rule("identifier", _HIDDEN, _read_hidden, FormStart.DIGIT),
    Rule("identifier", _CARD, _read_groups, FormStart.DIGIT),
    Rule("identifier", _IDENTITY, _read_identity, FormStart.DIGIT),
    Rule("identifier", _DIGITS, _read_named, FormStart.DIGIT),
    Rule("identifier", _NAMED_PLACE, _read_place, FormStart.DIGIT),
    Rule("identifier", _KNOWN, _read_known, FormStart.DIGIT),
    Rule("identifier", _LICENCE_PLATE, _read_plate, FormStart.LETTER),
)
GROUPS = (Rule("identifier", _GROUPS, _read_groups, FormStart.DIGIT),)
