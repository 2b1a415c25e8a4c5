"""Units of measure that are written with letters or signs, and their Chinese names."""

from dataclasses import dataclass

from sglang_omni.normalization.zh.patterns import one_of

_PREFIXES = {
    "n": "纳", "μ": "微", "µ": "微", "u": "微", "m": "毫", "c": "厘", "d": "分", "h": "百",
    "p": "皮", "k": "千", "K": "千", "M": "兆", "G": "吉", "T": "太",
}  # fmt: skip


@dataclass(frozen=True)
class _Base:
    """A unit, and the prefixes that it takes."""

    symbol: str
    name: str
    prefixes: str = ""
    is_alone: bool = True


_BASES = (
    _Base("m", "米", "nμµumcd"), _Base("g", "克", "nμµum"), _Base("L", "升", "μµumcd"),
    _Base("l", "升", "μµumcd"), _Base("s", "秒", "nμµum"), _Base("W", "瓦", "mkMG"),
    _Base("w", "瓦", "k"), _Base("V", "伏", "mkμ"), _Base("A", "安", "mμµu", is_alone=False),
    _Base("Hz", "赫兹", "kKMGT"), _Base("hz", "赫兹", "k"), _Base("HZ", "赫兹", "K"),
    _Base("Pa", "帕", "hkM"), _Base("J", "焦", "kM", is_alone=False), _Base("cal", "卡", "k"),
    _Base("Cal", "卡", "k"), _Base("Wh", "瓦时", "kMG"), _Base("Ah", "安时", "m"),
    _Base("AH", "安时", "m"), _Base("Ω", "欧姆", "kM"), _Base("F", "法", "pnμµ", is_alone=False),
    _Base("mol", "摩尔", "mμµ"), _Base("N", "牛", "k", is_alone=False), _Base("t", "吨", "k"),
    _Base("eV", "电子伏", "kMG"), _Base("Sv", "西弗", "mμµ"),
    _Base("T", "特斯拉", "m", is_alone=False),
)  # fmt: skip
_OTHERS = {
    "km": "公里", "KM": "公里", "Km": "公里", "kg": "公斤", "KG": "公斤", "Kg": "公斤",
    "ML": "毫升", "CM": "厘米", "MM": "毫米", "mmHg": "毫米汞柱", "sqm": "平方米",
    "ha": "公顷", "hm²": "公顷", "cc": "毫升", "dB": "分贝", "db": "分贝", "lm": "流明",
    "lx": "勒克斯", "lux": "勒克斯", "hp": "马力", "atm": "个大气压", "h": "小时",
    "hr": "小时", "hrs": "小时", "min": "分钟", "mins": "分钟", "sec": "秒", "ft": "英尺",
    "in": "英寸", "inch": "英寸", "inches": "英寸", "″": "英寸", "yd": "码", "mi": "英里",
    "lb": "磅", "lbs": "磅", "oz": "盎司", "px": "像素", "MP": "百万像素", "bit": "比特",
    "bits": "比特", "bp": "个基点", "N·m": "牛米", "Nm": "牛米", "kW·h": "千瓦时",
    "kN·m": "千牛米", "VA": "伏安", "kVA": "千伏安", "IU": "国际单位", "ly": "光年",
    "kgf": "千克力", "°": "度", "℃": "摄氏度", "°C": "摄氏度", "°c": "摄氏度", "º": "度",
    "ºC": "摄氏度", "℉": "华氏度", "°F": "华氏度", "㎡": "平方米", "㎥": "立方米",
    "㎞": "公里", "㎝": "厘米", "㎜": "毫米", "㎏": "公斤", "㎎": "毫克", "㎖": "毫升",
    "㏄": "毫升", "㎢": "平方公里", "㎠": "平方厘米", "㎾": "千瓦", "㎐": "赫兹",
    "℧": "西门子",
    # People say the letters of the larger sizes of data.
    "MB": "兆", "KB": "KB", "kB": "KB", "GB": "GB", "TB": "TB", "PB": "PB", "MiB": "兆",
    "GiB": "GiB", "Byte": "字节", "bytes": "字节",
}  # fmt: skip
_LENGTHS = {
    "nm": "纳米", "μm": "微米", "mm": "毫米", "cm": "厘米", "dm": "分米", "m": "米", "km": "公里",
    "ft": "英尺", "in": "英寸", "mi": "英里",
}  # fmt: skip
_POWERS = {"²": "平方", "2": "平方", "^2": "平方", "³": "立方", "3": "立方", "^3": "立方"}
# Units per time: 每秒一百兆 for 100Mbps.
RATES = {
    "bps": ("每秒", "比特"), "kbps": ("每秒", "千比特"), "Kbps": ("每秒", "千比特"),
    "Mbps": ("每秒", "兆"), "mbps": ("每秒", "兆"), "Mb/s": ("每秒", "兆比特"),
    "Gbps": ("每秒", "G"), "Tbps": ("每秒", "T"), "fps": ("每秒", "帧"), "FPS": ("每秒", "帧"),
    "rpm": ("每分钟", "转"), "RPM": ("每分钟", "转"), "bpm": ("每分钟", "次"),
    "BPM": ("每分钟", "拍"), "mph": ("每小时", "英里"), "kph": ("每小时", "公里"),
    "kmh": ("每小时", "公里"), "dpi": ("每英寸", "点"), "ppi": ("每英寸", "像素"),
    "m/s²": ("每二次方秒", "米"), "m/s^2": ("每二次方秒", "米"), "m/s2": ("每二次方秒", "米"),
    "r/min": ("每分钟", "转"), "㎞/h": ("每小时", "公里"),
}  # fmt: skip


def _names() -> dict[str, str]:
    names: dict[str, str] = {}
    for base in _BASES:
        if base.is_alone:
            names[base.symbol] = base.name
        for prefix in base.prefixes:
            names[prefix + base.symbol] = _PREFIXES[prefix] + base.name
    for symbol, name in _LENGTHS.items():
        for sign, power in _POWERS.items():
            names[symbol + sign] = power + name
    return names | _OTHERS


UNITS = _names()
PER_NAMES = UNITS | {"d": "天", "day": "天", "y": "年", "yr": "年", "mo": "月"}
UNIT = one_of(UNITS)
RATE = one_of(RATES)
TEMPERATURES = frozenset({"℃", "°C", "°c", "℉", "°F", "ºC"})
# A blank may stand between a number and these; a single letter after a blank may be anything.
SPACED = one_of(unit for unit in UNITS if len(unit) > 1 or not unit.isascii() or unit in "mgLhW")
# What may stand after a slash: 每天, 每人.
PER_HAN = (
    "秒", "分钟", "分", "小时", "时", "天", "日", "周", "月", "年", "季度", "季", "人",
    "次", "台", "个", "件", "只", "张", "页", "斤", "公斤", "千克", "克", "吨", "米",
    "公里", "平米", "平方米", "平方公里", "立方米", "升", "毫升", "度", "间", "晚", "夜",
    "位", "套", "份", "瓶", "盒", "箱", "袋", "包", "辆", "亩", "公顷", "户", "股",
    "字", "本", "杯", "支", "节", "课时", "期", "平", "条", "场", "桶", "手",
)  # fmt: skip
