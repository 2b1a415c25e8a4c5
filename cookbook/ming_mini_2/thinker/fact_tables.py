"""Tables of what a newcomer may ask for: small knowledge that fits into a small model."""

from collections.abc import Mapping


def _pairs(table: str) -> Mapping[str, str]:
    rows = (row.split("|") for row in table.split(";"))
    return {" ".join(left.split()): " ".join(right.split()) for left, right in rows}


CAPITALS = _pairs("""
France | Paris; Germany | Berlin; Italy | Rome; Spain | Madrid; England | London; the United
Kingdom | London; Portugal | Lisbon; Austria | Vienna; Switzerland | Bern; Belgium | Brussels; the
Netherlands | Amsterdam; Denmark | Copenhagen; Sweden | Stockholm; Norway | Oslo; Finland |
Helsinki; Ireland | Dublin; Poland | Warsaw; Greece | Athens; Turkey | Ankara; Russia | Moscow;
Hungary | Budapest; China | Beijing; Japan | Tokyo; India | New Delhi; Egypt | Cairo; Kenya |
Nairobi; Canada | Ottawa; Mexico | Mexico City; Brazil | Brasilia; Argentina | Buenos Aires; Peru
| Lima; Chile | Santiago; Cuba | Havana; Australia | Canberra; the United States | Washington;
America | Washington; South Korea | Seoul; Thailand | Bangkok; Iceland | Reykjavik; Scotland |
Edinburgh
""")
PLURALS = _pairs("""
mouse | mice; child | children; man | men; woman | women; foot | feet; tooth | teeth; goose |
geese; sheep | sheep; fish | fish; knife | knives; leaf | leaves; wife | wives; person | people;
box | boxes; city | cities; baby | babies; wolf | wolves; ox | oxen; life | lives; half | halves;
bus | buses; cat | cats; house | houses; dish | dishes; story | stories; day | days; potato |
potatoes
""")
PAST = _pairs("""
go | went; see | saw; eat | ate; come | came; take | took; give | gave; make | made; say | said;
run | ran; write | wrote; read | read; speak | spoke; drive | drove; swim | swam; sing | sang;
drink | drank; buy | bought; bring | brought; think | thought; know | knew; find | found; get |
got; have | had; be | was; do | did; fly | flew; sleep | slept; begin | began; break | broke; walk
| walked; play | played; work | worked; leave | left; tell | told; feel | felt; catch | caught;
teach | taught
""")
SOUNDS = _pairs("""
dog | Woof; cat | Meow; cow | Moo; sheep | Baa; duck | Quack; pig | Oink; lion | Roar; bird |
Tweet; mouse | Squeak; bee | Buzz; horse | Neigh; frog | Croak; rooster | Cock-a-doodle-doo; snake
| Hiss; wolf | Howl; owl | Hoot
""")
YOUNG = _pairs("""
dog | a puppy; cat | a kitten; cow | a calf; sheep | a lamb; horse | a foal; duck | a duckling;
goat | a kid; hen | a chick; lion | a cub; bear | a cub; frog | a tadpole; deer | a fawn; kangaroo
| a joey; swan | a cygnet; pig | a piglet; goose | a gosling
""")
COUNTED = _pairs("""
days are in a week | 7; days are there in a week | 7; months are in a year | 12; months are there
in a year | 12; hours are in a day | 24; hours does a day have | 24; minutes are in an hour | 60;
minutes does an hour have | 60; seconds are in a minute | 60; days are in a year | 365; days does
a year have | 365; weeks are in a year | 52; letters are in the alphabet | 26; letters does the
alphabet have | 26; legs does a spider have | 8; legs does a dog have | 4; legs does a cat have |
4; legs does a horse have | 4; legs does a bird have | 2; legs does an insect have | 6; legs does
an ant have | 6; legs does a snake have | 0; arms does an octopus have | 8; sides does a triangle
have | 3; sides does a square have | 4; corners does a triangle have | 3; sides does a hexagon
have | 6; wheels does a car have | 4; wheels does a bicycle have | 2; wheels does a tricycle have
| 3; fingers are on one hand | 5; fingers do I have | 10; toes do people have | 10; continents are
there | 7; oceans are there | 5; colours does a rainbow have | 7; cents are in a dollar | 100;
centimetres are in a metre | 100; metres are in a kilometre | 1000; grams are in a kilogram |
1000; millimetres are in a centimetre | 10; years are in a century | 100; years are in a decade |
10; eggs are in a dozen | 12; players does a football team have | 11; players does a basketball
team have | 5; strings does a guitar have | 6; strings does a violin have | 4; seasons are there |
4; days are in June | 30; days are in January | 31; days are in December | 31; degrees does a
circle have | 360; sides does a cube have | 6; cards are in a deck | 52; sides does a coin have |
2; wings does a bird have | 2
""")
COUNTRIES = _pairs("""
Brazil | Portuguese; Germany | German; Austria | German; France | French; Spain | Spanish; Mexico
| Spanish; Italy | Italian; England | English; Australia | English; China | Chinese; Japan |
Japanese; Egypt | Arabic; Russia | Russian; Portugal | Portuguese; Argentina | Spanish; Sweden |
Swedish; Poland | Polish; Greece | Greek; the United States | English; Turkey | Turkish
""")
MONEY = _pairs("""
Japan | the yen; the United States | the dollar; America | the dollar; England | the pound;
Germany | the euro; France | the euro; Spain | the euro; Italy | the euro; China | the yuan; India
| the rupee; Mexico | the peso; Switzerland | the franc; Russia | the rouble; Sweden | the krona
""")
RHYMES = _pairs("""
cat | hat; dog | fog; sun | run; moon | spoon; tree | sea; house | mouse; car | star; day | play;
night | light; book | cook; red | bed; blue | shoe; green | queen; ball | tall; cake | lake; fish
| dish; king | ring; snow | slow; time | rhyme; love | dove; boat | coat; rain | train; bear |
pear; box | fox; ten | pen; tea | bee; hand | sand; heart | part; bell | well; fun | sun
""")
ASKED = _pairs("""
What is the largest planet | Jupiter; What is the biggest planet | Jupiter; Which planet is the
smallest | Mercury; Which planet is closest to the sun | Mercury; Which planet is called the red
planet | Mars; Which planet has rings | Saturn; What is the largest ocean | The Pacific; What is
the biggest ocean | The Pacific; What is the highest mountain | Mount Everest; What is the tallest
mountain | Mount Everest; What is the longest river | The Nile; What is the largest animal | The
blue whale; What is the biggest animal | The blue whale; What is the fastest animal | The cheetah;
What is the tallest animal | The giraffe; What is the largest country | Russia; What is the
biggest country | Russia; What is the smallest country | Vatican City; What is the largest
continent | Asia; What is the hottest planet | Venus; Which star is nearest to the earth | The
sun; What is the closest star | The sun; What is frozen water called | Ice; What do bees make |
Honey; What do cows give us | Milk; What do hens lay | Eggs; Where do fish live | In water; Where
does the sun rise | In the east; Where does the sun set | In the west; Who wrote Romeo and Juliet
| William Shakespeare; Who wrote Hamlet | William Shakespeare; Who painted the Mona Lisa |
Leonardo da Vinci; Who was the first man on the moon | Neil Armstrong; Who first walked on the
moon | Neil Armstrong; Who was the first president of the United States | George Washington; Who
invented the telephone | Alexander Graham Bell; Who invented the light bulb | Thomas Edison; Who
discovered America | Christopher Columbus; Who developed relativity | Albert Einstein; At what
temperature does water boil | At 100 degrees Celsius; At what temperature does water freeze | At 0
degrees Celsius; What is the chemical formula of water | H2O; What is water made of | Hydrogen and
oxygen; What gas do we breathe | Oxygen; What do plants need to grow | Water, air and light; What
is the hardest stone | The diamond; What colour is grass | Green;
What colour is snow | White; What colour is a banana | Yellow; What colour is the sun | Yellow;
What colour is blood | Red; What colour is coal | Black; What colour is a tomato | Red; What
colour is an orange | Orange; What colour do you get from blue and yellow | Green; What colour do
you get from red and yellow | Orange; What colour do you get from red and blue | Purple; What are
the primary colours | Red, yellow and blue; Which season comes after summer | Autumn; Which season
comes after winter | Spring; Which season is the coldest | Winter; Which season is the warmest |
Summer; Which month is the first of the year | January; Which month is the last of the year |
December; Which month is the shortest | February; What is the first day of the week | Monday; What
is the first letter of the alphabet | A; What is the last letter of the alphabet | Z; What are the
vowels | A, E, I, O and U; What do you use to write | A pen; What do you use to cut paper |
Scissors; What do you wear on your feet | Shoes; What do you wear on your head | A hat; What do
you open a door with | A key; What does a clock show | The time; What is ice made of | Water; What
is bread made of | Flour and water; What is cheese made of | Milk; What is a table made of | Wood;
What animal says meow | A cat; What animal says moo | A cow; Which animal barks | A dog; Which
bird cannot fly | The penguin; Which animal has a trunk | The elephant; What is the national bird
of America | The bald eagle; Is the earth flat | No, it is round; Is the earth round | Yes; Is
water wet | Yes; Is fire hot | Yes; Is ice cold | Yes; Can fish swim | Yes; Can birds fly | Yes,
most of them; Can dogs fly | No; Can pigs fly | No; Do cats bark | No, dogs do; Is the sun a star
| Yes; Is the moon a planet | No, it goes around the earth; Is a whale a fish | No, it is a
mammal; Is a tomato a fruit | Yes; Is zero even | Yes; What is pi | About 3.14; What does OK mean
| All right; What is a group of lions called | A pride; What is a group of wolves called | A pack;
What is a group of fish called | A school; What is the square root of 9 | 3; What is the square
root of 16 | 4; What is the square root of 25 | 5; What is the square root of 64 | 8; What is the
square root of 81 | 9; What is the square root of 100 | 10; In which country is the Eiffel Tower |
In France; Where is the Eiffel Tower | In Paris; In which country are the pyramids | In Egypt; On
which continent is Egypt | In Africa; On which continent is China | In Asia; On which continent is
France | In Europe; On which continent is Brazil | In South America; Where do penguins live | In
the south, around Antarctica; Where do polar bears live | In the Arctic; Where do lions live | In
Africa; What do pandas eat | Bamboo; What do rabbits eat | Grass and carrots; What do lions eat |
Meat
""")
"""Questions without their mark, and the answers without their full stop."""
