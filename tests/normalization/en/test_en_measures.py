"""Numbers with units in English."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()

READ = [
    ("It is 3 km away.", "It is three kilometers away."),
    ("It is 1 km away.", "It is one kilometer away."),
    ("It weighs 2.5 kg.", "It weighs two point five kilograms."),
    ("It weighs 1 lb.", "It weighs one pound."),
    ("It weighs 7 lb 3 oz.", "It weighs seven pounds three ounces."),
    ("It is 6 ft 2 in. tall.", "It is six feet two inches tall."),
    ("She is 5'4\" tall.", "She is five foot four tall."),
    ('A 27" screen.', "A twenty-seven inch screen."),
    ("It is -8°C today.", "It is minus eight degrees Celsius today."),
    ("It is 75 °F today.", "It is seventy-five degrees Fahrenheit today."),
    ("Turn 90°.", "Turn ninety degrees."),
    ("Up 12%.", "Up twelve percent."),
    ("Up 0.5 % now.", "Up zero point five percent now."),
    ("Up 3-5%.", "Up three to five percent."),
    ("About 2 ‰ of it.", "About two per mille of it."),
    ("Drive at 50 km/h.", "Drive at fifty kilometers per hour."),
    ("Drive at 65 mph.", "Drive at sixty-five miles per hour."),
    ("It falls at 9.8 m/s².", "It falls at nine point eight meters per second squared."),
    ("A flat of 80 m².", "A flat of eighty square meters."),
    ("A flat of 900 sq ft.", "A flat of nine hundred square feet."),
    ("A tank of 3 m3.", "A tank of three cubic meters."),
    ("A tank of 40 cm^3.", "A tank of forty cubic centimeters."),
    ("It uses 6 L/100km.", "It uses six liters per one hundred kilometers."),
    ("Salt at 5 mg/dL.", "Salt at five milligrams per deciliter."),
    ("It has 16GB of RAM.", "It has sixteen gigabytes of RAM."),
    ("It runs at 3.6 GHz.", "It runs at three point six gigahertz."),
    ("A link of 100 Mbps.", "A link of one hundred megabits per second."),
    ("A 12V battery.", "A twelve volt battery."),
    ("A 60 W bulb and 2 kWh.", "A sixty watt bulb and two kilowatt hours."),
    ("A pressure of 2 bar or 30 psi.", "A pressure of two bar or thirty pounds per square inch."),
    ("Use 250 mL and 2 tsp.", "Use two hundred fifty milliliters and two teaspoons."),
    ("Use 1/2 lb of butter.", "Use half a pound of butter."),
    ("Use 1 1/2 cups or 2 1/2 oz.", "Use one and a half cups or two and a half ounces."),
    ("Use 3/4 mi of rope.", "Use three quarters of a mile of rope."),
    ("a 10-km run", "a ten kilometer run"),
    ("a 5 km run", "a five kilometer run"),
    ("It is 10 x 20 cm.", "It is ten by twenty centimeters."),
    ("From 10-15 kg.", "From ten to fifteen kilograms."),
    ("From 2 kg-3 kg.", "From two kilograms to three kilograms."),
    ("About 3 million km.", "About three million kilometers."),
    ("Wait 30 s or 5 min.", "Wait thirty seconds or five minutes."),
    ("In 1080p.", "In ten eighty p."),
    ("At 40.7° N.", "At forty point seven degrees north."),
    ("The area in m² is here.", "The area in square meters is here."),
    ("The speed in km/h is here.", "The speed in kilometers per hour is here."),
    ("Just 2,5 kg.", "Just two point five kilograms."),
    ("It is 5ft10 tall.", "It is five foot ten tall."),
    ("Up 1/2% today.", "Up half a percent today."),
    ("It is 20℃-25℃.", "It is twenty degrees Celsius to twenty-five degrees Celsius."),
    ("A tank of 3.5 kg/m³.", "A tank of three point five kilograms per cubic meter."),
    ("Use 1/2 cup.", "Use one half cup."),
    ("At 98.6°F.", "At ninety-eight point six degrees Fahrenheit."),
    ('A 3/4" bolt.', "A three quarters inch bolt."),
    ("Print at 300 dpi.", "Print at three hundred dots per inch."),
    ("Run at 3,000 rpm.", "Run at three thousand revolutions per minute."),
    ("Take 500 mg.", "Take five hundred milligrams."),
    ("Sold 5 lbs. of it.", "Sold five pounds of it."),
    ("A 2-3 °C rise.", "A two to three degree Celsius rise."),
]

NOT_READ = [
    "5 in the box",
    "100-car train",
    "5 A students",
    "3 W 42nd",
    "a 5G phone",
    'he said "in 2010" here',
    "20 people",
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_it_is_read(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written) == spoken


@pytest.mark.parametrize("written", NOT_READ)
def test_something_else_is_left_to_other_rules(written: str) -> None:
    names = {reading.name for reading in NORMALIZER.read(written)}
    assert not names & {"measure", "height", "length", "angle", "unit", "lines"}
