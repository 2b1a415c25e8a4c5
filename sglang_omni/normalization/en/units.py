"""The units of measurement, by their written forms: km/h, m², mg/dL, fl oz."""

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class UnitName:
    """The singular and the plural of a unit."""

    one: str
    many: str

    def name(self, *, is_one: bool) -> str:
        """Return the singular or the plural."""
        return self.one if is_one else self.many


_PREFIXES = {
    "E": "exa", "P": "peta", "T": "tera", "G": "giga", "M": "mega", "k": "kilo", "K": "kilo",
    "h": "hecto", "d": "deci", "c": "centi", "m": "milli", "µ": "micro", "μ": "micro",
    "u": "micro", "n": "nano", "p": "pico",
}  # fmt: skip
# Written form, name, and the prefixes in use with it.
_PREFIXED = (
    ("m", "meter", "kdcmµμun"), ("g", "gram", "kmµμun"), ("L", "liter", "mcdhµμu"),
    ("l", "liter", "mcdhµμu"), ("s", "second", "mµμunp"), ("Hz", "hertz", "kKMGT"),
    ("W", "watt", "mkMGT"), ("Wp", "watt peak", "kM"), ("Wh", "watt hour", "kMGT"),
    ("V", "volt", "mµμkM"), ("VA", "volt ampere", "kM"), ("A", "amp", "mµμnk"),
    ("Ah", "amp hour", "mk"), ("J", "joule", "kMG"), ("N", "newton", "mkM"),
    ("Nm", "newton meter", "k"), ("Pa", "pascal", "hkMG"), ("Ω", "ohm", "mkMG"),
    ("Ω", "ohm", "mkMG"), ("F", "farad", "mµμunp"), ("B", "byte", "kKMGTPE"),
    ("b", "bit", "kKMGT"), ("cal", "calorie", "k"), ("mol", "mole", "mµμnk"),
    ("Sv", "sievert", "mµμ"), ("Bq", "becquerel", "kMG"), ("Gy", "gray", "m"),
    ("bar", "bar", "m"), ("eV", "electron volt", "kMGT"), ("T", "tesla", "m"),
    ("t", "ton", "kM"), ("K", "kelvin", "m"), ("lx", "lux", "k"), ("ohm", "ohm", "kM"),
)  # fmt: skip
_BINARY = {"Ki": "kibi", "Mi": "mebi", "Gi": "gibi", "Ti": "tebi", "Pi": "pebi"}
_RATES = (("bps", "bit"), ("bit/s", "bit"), ("Bps", "byte"))
# These are ambiguous without a prefix.
_ONLY_PREFIXED = frozenset({"B", "b", "F", "T", "K", "Wp", "Gy"})
_INVARIABLE = ("hertz", "lux", "bar")

_IRREGULAR = {
    "in": UnitName("inch", "inches"),
    "ft": UnitName("foot", "feet"),
    "sec": UnitName("second", "seconds"),
    "hp": UnitName("horsepower", "horsepower"),
    "bhp": UnitName("horsepower", "horsepower"),
    "mph": UnitName("mile per hour", "miles per hour"),
    "mpg": UnitName("mile per gallon", "miles per gallon"),
    "rpm": UnitName("revolution per minute", "revolutions per minute"),
    "fps": UnitName("frame per second", "frames per second"),
    "bpm": UnitName("beat per minute", "beats per minute"),
    "wpm": UnitName("word per minute", "words per minute"),
    "dpi": UnitName("dot per inch", "dots per inch"),
    "ppi": UnitName("pixel per inch", "pixels per inch"),
    "psi": UnitName("pound per square inch", "pounds per square inch"),
    "ppm": UnitName("part per million", "parts per million"),
    "ppb": UnitName("part per billion", "parts per billion"),
    "rps": UnitName("request per second", "requests per second"),
    "qps": UnitName("query per second", "queries per second"),
    "kph": UnitName("kilometer per hour", "kilometers per hour"),
    "kmh": UnitName("kilometer per hour", "kilometers per hour"),
    "kmph": UnitName("kilometer per hour", "kilometers per hour"),
    "mmHg": UnitName("millimeter of mercury", "millimeters of mercury"),
    "kgf": UnitName("kilogram force", "kilograms force"),
    "cc": UnitName("cc", "cc"),
    "°": UnitName("degree", "degrees"),
    "%": UnitName("percent", "percent"),
    "‰": UnitName("per mille", "per mille"),
    "％": UnitName("percent", "percent"),
    "dBA": UnitName("decibel", "decibels"),
    "dBm": UnitName("decibel milliwatt", "decibel milliwatts"),
    "cd": UnitName("candela", "candelas"),
    "tok/s": UnitName("token per second", "tokens per second"),
    "IU": UnitName("international unit", "international units"),
}
for _sign, _scale in (("C", "Celsius"), ("F", "Fahrenheit")):
    for _form in (f"°{_sign}", f"° {_sign}", f"º{_sign}", f"deg{_sign}", f"deg {_sign}"):
        _IRREGULAR[_form] = UnitName(f"degree {_scale}", f"degrees {_scale}")
_IRREGULAR |= {"℃": _IRREGULAR["°C"], "℉": _IRREGULAR["°F"]}
# Their plural is formed with s.
_REGULAR = {
    "h": "hour", "hr": "hour", "hrs": "hour", "min": "minute", "mins": "minute", "secs": "second",
    "wk": "week", "wks": "week", "mo": "month", "mos": "month", "yr": "year", "yrs": "year",
    "msec": "millisecond", "lb": "pound", "lbs": "pound", "oz": "ounce", "fl oz": "fluid ounce",
    "gal": "gallon", "gals": "gallon", "qt": "quart", "qts": "quart", "pt": "point", "pts": "point",
    "tsp": "teaspoon", "tsps": "teaspoon", "tbsp": "tablespoon", "tbsps": "tablespoon",
    "Tbsp": "tablespoon", "yd": "yard", "yds": "yard", "mi": "mile", "nmi": "nautical mile",
    "ly": "light year", "px": "pixel", "MP": "megapixel", "Mpx": "megapixel", "ha": "hectare",
    "mcg": "microgram", "dB": "decibel", "db": "decibel", "kn": "knot", "kt": "knot",
    "kts": "knot", "atm": "atmosphere", "lm": "lumen", "kcals": "kilocalorie", "bbl": "barrel",
    "doz": "dozen", "rad": "radian", "deg": "degree", "kgs": "kilogram", "kms": "kilometer",
    "mls": "milliliter", "cms": "centimeter", "gm": "gram", "gms": "gram", "vol": "volume",
    "ltr": "liter", "kilos": "kilo", "sqft": "square foot", "sqm": "square meter",
    "sqkm": "square kilometer", "sqmi": "square mile", "mb": "megabyte", "gb": "gigabyte",
    "tb": "terabyte", "acre": "acre", "ct": "carat", "mAh": "milliamp hour",
}  # fmt: skip
_LENGTHS = frozenset({"m", "km", "dm", "cm", "mm", "µm", "μm", "nm", "in", "ft", "yd", "mi"})
_FORM = re.compile(
    r"(?:(?P<power>sq|cu|square|cubic)\.? ?)?(?P<base>[^\d²³^]+?)\.?(?:\^?(?P<exponent>[23²³]))?"
)
# Words after a slash that are no units: $5/person, 3 times/day.
_WORD = re.compile(r"[a-z]{3,12}")
_DENOMINATORS = {"y": "year", "a": "year", "d": "day", "w": "week", "hour": "hour", "ea": "item"}


def _pluralize(name: str) -> str:
    if name.endswith(_INVARIABLE):
        return name
    if name.endswith("foot"):
        return f"{name[:-4]}feet"
    return f"{name}es" if name.endswith("inch") else f"{name}s"


def _iter_units() -> Iterator[tuple[str, UnitName]]:
    """Yield the written form of every unit, and the unit."""
    for form, name, prefixes in _PREFIXED:
        if form not in _ONLY_PREFIXED:
            yield form, UnitName(name, _pluralize(name))
        for prefix in prefixes:
            full = _PREFIXES[prefix] + name
            yield prefix + form, UnitName(full, _pluralize(full))
    for form, name in _RATES:
        for prefix in ("", *"kKMGTm"):
            # mbps is written for Mbps: nobody means thousandths of a bit.
            full = _PREFIXES["M" if prefix == "m" else prefix] + name if prefix else name
            yield prefix + form, UnitName(f"{full} per second", f"{full}s per second")
    for prefix, start in _BINARY.items():
        yield f"{prefix}B", UnitName(f"{start}byte", f"{start}bytes")
    yield from ((form, UnitName(name, _pluralize(name))) for form, name in _REGULAR.items())
    yield from _IRREGULAR.items()


UNITS = dict(_iter_units())
# Units are written in other cases, such as KM and Kg, where nothing else is meant.
_FOLDED = {
    form.lower(): UNITS[form]
    for form in (
        "km", "kg", "cm", "mm", "lb", "lbs", "oz", "ft", "yd", "mph", "rpm", "fps", "bpm", "psi",
        "dpi", "ppm", "kph", "kmh", "kgs", "kms", "ml", "hz", "khz", "mhz", "ghz", "kwh", "mwh",
        "kw", "min", "mins", "sec", "secs", "hr", "hrs", "yr", "yrs", "tsp", "tbsp", "gal", "mah",
        "db", "hp", "kbps", "mbps", "gbps", "kb", "mb", "gb", "tb", "kcal", "cal", "sqft", "°c",
        "°f", "mcg",
    )
    for form in (next(known for known in UNITS if known.lower() == form),)
}  # fmt: skip


def find_unit(form: str) -> UnitName | None:
    """Return the unit of a written form, or None: km, m², m/s, sq ft, kg/m³, L/100km."""
    if form in UNITS:
        return UNITS[form]
    above, slash, below = form.partition("/")
    unit = _find_simple(above.rstrip())
    if unit is None or not slash:
        return unit
    denominator = _name_denominator(below.strip())
    if denominator is None:
        return None
    return UnitName(f"{unit.one} per {denominator}", f"{unit.many} per {denominator}")


def name_unit(form: str) -> str:
    """Return the singular of what stands after a slash: "year" for yr, "person" as it is."""
    return _name_denominator(form) or form


def _find_simple(form: str) -> UnitName | None:
    if form in UNITS:
        return UNITS[form]
    parts = _FORM.fullmatch(form)
    if parts is None:
        return None
    base = parts["base"]
    unit = UNITS.get(base) or _FOLDED.get(base.lower())
    power = parts["power"] or parts["exponent"]
    if power is None or unit is None:
        return unit
    return _raise(unit, base, power)


def _raise(unit: UnitName, base: str, power: str) -> UnitName | None:
    """Return the square or the cube of a unit."""
    is_square = power[0] in "s2²"
    if base in _LENGTHS:
        word = "square" if is_square else "cubic"
        return UnitName(f"{word} {unit.one}", f"{word} {unit.many}")
    if base != "s":
        return None
    word = "squared" if is_square else "cubed"
    return UnitName(f"{unit.one} {word}", f"{unit.many} {word}")


def _name_denominator(form: str) -> str | None:
    if form in _DENOMINATORS:
        return _DENOMINATORS[form]
    unit = _find_simple(form)
    if unit is not None:
        return unit.one
    return form if _WORD.fullmatch(form) else None
