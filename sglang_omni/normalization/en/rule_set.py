"""The English rules, in the order in which they are tried."""

from sglang_omni.normalization.en import (
    abbreviations,
    addresses,
    cardinals,
    chemistry,
    dates,
    fractions,
    links,
    markup,
    maths,
    measures,
    money,
    ordinals,
    ranges,
    roman,
    serials,
    symbols,
    telephone,
    times,
    versions,
    years,
)
from sglang_omni.normalization.rule import RuleSet

RULE_SET = RuleSet(
    (
        *maths.EARLY_RULES,
        *markup.RULES,
        *links.RULES,
        *telephone.RULES,
        *cardinals.SEPARATED_RULES,
        *versions.RULES,
        *serials.CODE_RULES,
        *addresses.RULES,
        *money.RULES,
        *cardinals.ROUND_RULES,
        *years.RULES,
        *dates.RULES,
        *times.RULES,
        *measures.RULES,
        *fractions.RULES,
        *cardinals.SUFFIX_RULES,
        *ranges.RULES,
        *ordinals.RULES,
        *roman.RULES,
        *chemistry.RULES,
        *serials.RULES,
        *symbols.SHORT_RULES,
        *maths.RULES,
        *abbreviations.RULES,
        # After whatever else may read four digits, such as a model or a house number.
        *years.LATE_RULES,
        *cardinals.RULES,
        *fractions.LATE_RULES,
        *symbols.RULES,
    )
)
