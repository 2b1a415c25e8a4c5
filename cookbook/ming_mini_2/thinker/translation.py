"""Small phrases of other languages: into them and into English."""

from random import Random

from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.thinker.items import Item

_PHRASES = """
hello | bonjour | hola | hallo | ciao
good morning | bonjour | buenos días | guten Morgen | buongiorno
good evening | bonsoir | buenas tardes | guten Abend | buonasera
good night | bonne nuit | buenas noches | gute Nacht | buonanotte
goodbye | au revoir | adiós | auf Wiedersehen | arrivederci
thank you | merci | gracias | danke | grazie
please | s'il vous plaît | por favor | bitte | per favore
yes | oui | sí | ja | sì
no | non | no | nein | no
one | un | uno | eins | uno
two | deux | dos | zwei | due
three | trois | tres | drei | tre
four | quatre | cuatro | vier | quattro
five | cinq | cinco | fünf | cinque
water | eau | agua | Wasser | acqua
bread | pain | pan | Brot | pane
milk | lait | leche | Milch | latte
house | maison | casa | Haus | casa
cat | chat | gato | Katze | gatto
dog | chien | perro | Hund | cane
red | rouge | rojo | rot | rosso
blue | bleu | azul | blau | blu
green | vert | verde | grün | verde
friend | ami | amigo | Freund | amico
book | livre | libro | Buch | libro
Monday | lundi | lunes | Montag | lunedì
how are you? | comment allez-vous ? | ¿cómo estás? | wie geht es dir? | come stai?
I love you | je t'aime | te quiero | ich liebe dich | ti amo
excuse me | excusez-moi | perdón | Entschuldigung | mi scusi
welcome | bienvenue | bienvenido | willkommen | benvenuto
"""
LANGUAGES = ("English", "French", "Spanish", "German", "Italian")
PHRASES = tuple(
    tuple(cell.strip() for cell in line.split("|")) for line in _PHRASES.strip().splitlines()
)
"""Each phrase in all languages, in their order."""


def translation(rng: Random, lexicon: Lexicon) -> Item:
    """Draw a phrase to translate from or into English."""
    row, other = rng.choice(PHRASES), rng.randrange(1, len(LANGUAGES))
    language, english, foreign = LANGUAGES[other], row[0], row[other]
    if rng.random() < 0.6:
        asks = (
            f'Translate "{english}" into {language}.',
            f"How do you say {english.rstrip('?')} in {language}?",
            f"Translate into {language}: {english}",
            f"What is {english.rstrip('?')} in {language}?",
            f"Say {english.rstrip('?')} in {language}.",
        )
        return _item(_quoted(rng.choice(asks), rng), foreign)
    backwards = (
        f'Translate "{foreign}" into English.',
        f"Translate into English: {foreign}",
        f'What does "{foreign}" mean in English?',
    )
    # A word may belong to two languages, with one meaning in each.
    meanings = tuple(r[0].lower().rstrip("?") for r in PHRASES if foreign in r[1:])
    return _item(_quoted(rng.choice(backwards), rng), english, meanings)


def _quoted(ask: str, rng: Random) -> str:
    """Return a question with the quotation marks that users type, if it has any."""
    return ask.replace('"', rng.choice(('"', "'", "")))


def _item(ask: str, answer: str, accept: tuple[str, ...] = ()) -> Item:
    end = "" if answer[-1] in "?!" else "."
    said = f"{answer[0].upper()}{answer[1:]}{end}"
    words = accept or (answer.lower().strip("¿?! "),)
    return Item("translate", ask, said, "contains", words, fixed=True)
