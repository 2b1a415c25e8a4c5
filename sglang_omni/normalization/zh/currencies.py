"""Currencies, by their signs, their codes and their Chinese names."""

from dataclasses import dataclass

from sglang_omni.normalization.zh.patterns import one_of

_NAMES = {
    "元": ("¥", "￥", "RMB¥", "CN¥", "RMB", "CNY"),
    "美元": ("$", "US$", "USD$", "USD", "美元$"),
    "港元": ("HK$", "HKD$", "HKD"),
    "澳元": ("A$", "AU$", "AUD$", "AUD"),
    "加元": ("C$", "CA$", "CAD$", "CAD"),
    "新台币": ("NT$", "TW$", "TWD", "NTD"),
    "新加坡元": ("S$", "SG$", "SGD"),
    "新西兰元": ("NZ$", "NZD"),
    "澳门元": ("MOP$", "MOP"),
    "欧元": ("€", "EUR"),
    "英镑": ("£", "GBP"),
    "日元": ("JP¥", "JPY"),
    "韩元": ("₩", "￦", "KRW"),
    "卢布": ("₽", "RUB"),
    "印度卢比": ("₹", "INR"),
    "泰铢": ("฿", "THB"),
    "越南盾": ("₫", "VND"),
    "菲律宾比索": ("₱", "PHP"),
    "瑞士法郎": ("CHF", "Fr."),
    "雷亚尔": ("R$", "BRL"),
    "墨西哥比索": ("MX$", "MXN"),
    "土耳其里拉": ("₺", "TRY"),
    "格里夫纳": ("₴", "UAH"),
    "谢克尔": ("₪", "ILS"),
    "马来西亚林吉特": ("RM", "MYR"),
    "印尼盾": ("Rp", "IDR"),
    "南非兰特": ("ZAR",),
    "瑞典克朗": ("SEK",),
    "挪威克朗": ("NOK",),
    "丹麦克朗": ("DKK",),
    "波兰兹罗提": ("zł", "PLN"),
    "阿联酋迪拉姆": ("AED",),
    "沙特里亚尔": ("SAR",),
    "比特币": ("₿", "BTC"),
    "以太币": ("ETH",),
    "泰达币": ("USDT",),
    "美分": ("¢", "￠"),
}


@dataclass(frozen=True)
class Currencies:
    """What a currency is called, by its sign or code."""

    names: dict[str, str]

    @property
    def marks(self) -> str:
        """Return a pattern for any sign or code."""
        return one_of(self.names)

    @property
    def signs(self) -> str:
        """Return a pattern for the signs that are no letters, alone or after letters: HK$, €."""
        return one_of(mark for mark in self.names if not mark.isascii() or mark.endswith("$"))


CURRENCIES = Currencies({mark: name for name, marks in _NAMES.items() for mark in marks})
# Names that a writer repeats after a sign: ¥500元.
WRITTEN_NAMES = (
    "元", "块钱", "块", "圆", "人民币", "美元", "美金", "刀", "港元", "港币", "澳元",
    "加元", "新台币", "台币", "欧元", "英镑", "日元", "韩元", "韩币", "卢布", "卢比",
    "泰铢", "越南盾",
)  # fmt: skip
# The power of ten that a letter stands for after an amount.
POWERS = {"k": 3, "K": 3, "m": 6, "M": 6, "mn": 6, "mln": 6, "b": 9, "B": 9, "bn": 9, "T": 12}
POWER_WORDS = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
