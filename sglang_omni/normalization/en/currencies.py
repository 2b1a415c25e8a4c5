"""The currencies, by their signs and codes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Currency:
    """How amounts of a currency are called; `cents` is empty if it has no smaller unit in use."""

    one: str
    many: str
    cent: str = ""
    cents: str = ""


def _dollar(country: str = "") -> Currency:
    name = f"{country} dollar".strip()
    return Currency(name, f"{name}s", "cent", "cents")


def _same(name: str, cent: str = "", cents: str = "") -> Currency:
    return Currency(name, name, cent, cents)


DOLLAR, EURO = _dollar(), Currency("euro", "euros", "cent", "cents")
POUND = Currency("pound", "pounds", "penny", "pence")
YEN, YUAN, WON = _same("yen"), _same("yuan", "fen", "fen"), _same("won")
RUPEE = Currency("rupee", "rupees", "paisa", "paise")
FRANC = Currency("Swiss franc", "Swiss francs", "centime", "centimes")

# Written before the amount, or after it.
SIGNS = {
    "$": DOLLAR, "\uff04": DOLLAR, "€": EURO, "£": POUND, "￡": POUND, "¥": YEN, "￥": YEN,
    "₹": RUPEE, "₩": WON, "￦": WON, "₽": Currency("ruble", "rubles", "kopeck", "kopecks"),
    "₺": Currency("lira", "lira"), "₫": _same("dong"), "฿": _same("baht"),
    "₪": Currency("shekel", "shekels"), "₴": Currency("hryvnia", "hryvnias"),
    "₱": Currency("peso", "pesos", "centavo", "centavos"), "₦": Currency("naira", "naira"),
    "₿": Currency("bitcoin", "bitcoins"),
}  # fmt: skip
# Letters before a dollar sign, or before ¥.
LETTERED = {
    "US$": _dollar("US"), "HK$": _dollar("Hong Kong"), "A$": _dollar("Australian"),
    "AU$": _dollar("Australian"), "AUD$": _dollar("Australian"), "C$": _dollar("Canadian"),
    "CA$": _dollar("Canadian"), "CAD$": _dollar("Canadian"), "NT$": _dollar("New Taiwan"),
    "S$": _dollar("Singapore"), "NZ$": _dollar("New Zealand"), "USD$": _dollar("US"),
    "R$": Currency("Brazilian real", "Brazilian reais", "centavo", "centavos"),
    "MX$": Currency("Mexican peso", "Mexican pesos", "centavo", "centavos"),
    "CN¥": YUAN, "RMB¥": YUAN, "JP¥": YEN,
}  # fmt: skip
CODES = {
    "USD": _dollar("US"), "EUR": EURO, "GBP": Currency("British pound", "British pounds",
    "penny", "pence"), "JPY": YEN, "CNY": YUAN, "RMB": YUAN, "KRW": WON,
    "HKD": _dollar("Hong Kong"), "TWD": _dollar("New Taiwan"), "NTD": _dollar("New Taiwan"),
    "AUD": _dollar("Australian"), "CAD": _dollar("Canadian"), "NZD": _dollar("New Zealand"),
    "SGD": _dollar("Singapore"), "CHF": FRANC, "INR": Currency("Indian rupee", "Indian rupees",
    "paisa", "paise"), "RUB": Currency("Russian ruble", "Russian rubles", "kopeck", "kopecks"),
    "BRL": LETTERED["R$"], "MXN": LETTERED["MX$"], "SEK": Currency("Swedish krona",
    "Swedish kronor"), "NOK": Currency("Norwegian krone", "Norwegian kroner"),
    "DKK": Currency("Danish krone", "Danish kroner"), "PLN": Currency("zloty", "zlotys"),
    "CZK": Currency("Czech koruna", "Czech korunas"), "HUF": Currency("forint", "forints"),
    "ZAR": Currency("rand", "rand"), "THB": _same("baht"), "MYR": Currency("ringgit", "ringgit"),
    "IDR": Currency("Indonesian rupiah", "Indonesian rupiah"), "VND": _same("dong"),
    "ILS": Currency("shekel", "shekels"), "AED": Currency("dirham", "dirhams"),
    "SAR": Currency("Saudi riyal", "Saudi riyals"), "UAH": SIGNS["₴"], "NGN": SIGNS["₦"],
    "BTC": SIGNS["₿"], "ETH": _same("ether"),
}  # fmt: skip
# Words before an amount: Rs. 500.
SHORT_NAMES = {"Rs.": RUPEE, "Rs": RUPEE, "Re.": RUPEE, "Fr.": FRANC}
# Codes that mean something else before a number: PHP 8, TRY 3.
SUFFIX_ONLY = {
    "PHP": Currency("Philippine peso", "Philippine pesos"), "TRY": SIGNS["₺"],
    "kr": Currency("krona", "kronor"), "zł": CODES["PLN"], "Kč": CODES["CZK"],
}  # fmt: skip
# Written after the amount only.
SMALL = {"¢": ("cent", "cents"), "￠": ("cent", "cents"), "p": ("penny", "pence")}
