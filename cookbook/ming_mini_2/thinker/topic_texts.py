"""Fifty topics in a few plain sentences each, from the most important one on.

Blank lines separate them. Each is a topic, a question that its text answers, and the sentences.
"""

TEXTS = """
the sky | Why is the sky blue? | The sky is blue because air scatters blue light more than red
light. Light from the sun has all colours. Blue light has short waves, and the air sends it in all
directions. So blue light comes to our eyes from every part of the sky. In the evening the light
goes a longer way, and the sky turns red.

rain | Why does it rain? | Rain comes from water in clouds. The sun warms the sea, and water rises
as vapour. High in the air it is cold, and the vapour turns into small drops. Many drops make a
cloud. When the drops are heavy, they fall as rain.

the sun | What is the sun? | The sun is a star, a very hot ball of gas. It gives us light and
warmth. It is much larger than the earth. The earth goes around it once a year. Without the sun
nothing could live here.

the moon | What is the moon? | The moon goes around the earth in about a month. It has no light of
its own, but shines in the light of the sun. It has no air and no water. The moon makes the tides
of the sea. People first walked on it in the year 1969.

the stars | What are stars? | Stars are suns that are very far away. They are hot balls of gas,
and they make their own light. Their light needs many years to reach us. At night we can see a few
thousand of them. The nearest star is our sun.

the earth | What is the earth? | The earth is the planet on which we live. It goes around the sun
in a year and turns once a day. Most of it is covered by water. The air around it lets us breathe.
It is the third planet from the sun.

the planets | How many planets are there? | Eight planets go around the sun. The four near the sun
are small and made of rock. The four far away are large and made of gas and ice. The largest is
Jupiter. The one closest to the sun is Mercury.

the sea | Why is the sea salty? | The sea is salty because rivers carry salt into it. Rain takes a
little salt out of the rocks. The rivers bring it to the sea. The water leaves the sea as vapour,
but the salt stays. So over a long time the sea became salty.

a river | What is a river? | A river is water that flows over the land to the sea. It begins at a
spring in the hills. Smaller streams flow into it on the way. Many towns lie on rivers. Boats use
them to carry people and things.

a volcano | What is a volcano? | A volcano is a mountain from which hot rock comes out. Deep in
the earth it is so hot that rock melts. Sometimes the melted rock finds a way up. Then there is
fire, smoke and ash. The ash makes good soil for plants.

snow | What is snow? | Snow is water that freezes in the clouds. It falls as small white flakes of
ice. Each flake has six sides. Snow falls in winter, when the air is cold. In spring it melts and
fills the rivers.

wind | What is wind? | Wind is air that moves. The sun warms the land, and warm air rises. Then
cold air flows to its place. That is what we feel as wind. Wind can fill sails and turn mills.

the seasons | Why are there seasons? | There are seasons because the axis of the earth is tilted.
In summer our side leans to the sun, and the days are long. In winter it leans away, and the days
are short. Between them are spring and autumn. South of the equator they are the other way around.

a rainbow | What is a rainbow? | A rainbow is sunlight in drops of rain. Each drop splits the
white light into its colours. We see red at the top and violet at the bottom. To see it, stand
with the sun behind you. It appears when there is sun and rain at once.

thunder | What is thunder? | Thunder is the sound of lightning. Lightning is a large spark in the
clouds. It makes the air very hot, and the air bursts apart. We hear that as thunder. Light is
faster than sound, so we see the lightning first.

water | What is water? | Water is a clear liquid that all living things need. It covers most of
the earth. When it is cold it turns to ice, and when it is hot it turns to steam. We drink it,
cook with it and wash with it. Most of your body is water.

air | What is air? | Air is the gas around us. Most of it is nitrogen, and a fifth is oxygen. We
need the oxygen to breathe. Plants make new oxygen. High in the mountains the air is thin.

fire | What is fire? | Fire is hot gas that gives off light. It needs something to burn, air and
heat. If you take one of them away, the fire goes out. People use fire to cook and to keep warm.
Be careful with it, because it spreads fast.

gravity | What is gravity? | Gravity is the force that pulls things to the earth. It is why an
apple falls from a tree. It also keeps the moon on its way around us. The larger a thing is, the
more it pulls. On the moon gravity is weaker, and you could jump higher.

light | What is light? | Light is what lets us see. It comes from the sun, from lamps and from
fire. It moves faster than anything else. White light has all colours in it. A mirror sends light
back.

sound | What is sound? | Sound is a wave in the air. Something shakes, a string or a voice, and
the air shakes with it. The wave reaches our ears, and we hear. Fast waves are high tones, and
slow waves are low tones. In empty space there is no sound.

electricity | What is electricity? | Electricity is the flow of very small charges. It moves
through wires of metal. It makes lamps shine and motors turn. We make it from wind, sun, water and
fuel. Never touch a bare wire.

a magnet | How does a magnet work? | A magnet pulls iron. It has two ends, a north pole and a
south pole. Equal poles push each other away, and different poles pull each other. The earth is a
large magnet too. That is why a compass shows north.

trees | What are trees? | Trees are large plants with a trunk of wood. Their roots take water from
the soil. Their leaves make food from light and air. They give us oxygen, fruit and wood. Some
trees live for thousands of years.

flowers | Why do plants have flowers? | Plants have flowers to make seeds. Their colours and
scents bring bees. A bee carries pollen from one flower to the next. Then a fruit with seeds
grows. From a seed a new plant can grow.

bees | Why are bees important? | Bees are important because they carry pollen from flower to
flower. Without them many fruits would not grow. They live together in a hive with one queen. They
make honey from the juice of flowers. Honey is their food in winter.

birds | How do birds fly? | Birds fly by moving their wings. The wings push the air down, and the
bird goes up. Their bones are light, and feathers keep them warm. Some birds fly very far to the
south in winter. Not all birds can fly.

fish | How do fish breathe? | Fish breathe with gills. Water flows in through the mouth and out
through the gills. The gills take oxygen from the water. Fish swim with their tails and fins. Most
of them lay eggs.

dogs | What are dogs? | Dogs are animals that live with people. They are related to wolves. They
can smell and hear very well. Dogs guard houses, help hunters and play with children. They need
food, water and a walk every day.

cats | What are cats? | Cats are small animals that live with people. They hunt mice and birds.
They see well in the dark. A happy cat purrs. Cats sleep for most of the day.

horses | What are horses? | Horses are large animals that eat grass. People ride them and let them
pull carts. They run fast and can sleep while they stand. A young horse is a foal. Today most
horses are kept for sport.

elephants | What are elephants? | Elephants are the largest animals on land. They use their long
trunk as a hand. They live in groups that an old female leads. They eat grass, leaves and fruit.
There are elephants in Africa and in Asia.

whales | Are whales fish? | Whales are not fish, though they live in the sea. They breathe air and
feed their young with milk. The blue whale is the largest animal of all. Whales talk to each other
with long songs. They come up to breathe.

dinosaurs | What were dinosaurs? | Dinosaurs were animals that lived long before people. Some were
as large as houses, and some as small as a hen. Most of them died out 66 million years ago.
Probably a large rock from space hit the earth. Birds are their children.

the heart | What does the heart do? | The heart pumps blood through the body. It is a muscle as
large as your fist. It beats about 70 times a minute. The blood carries oxygen and food to every
part. When you run, it beats faster.

sleep | Why do we sleep? | We sleep so that the body and the mind can rest. In sleep the brain
sorts what we have learned. The body repairs itself. Grown people need about eight hours. Children
need more.

bread | How do you make bread? | Bread is made from flour, water, salt and yeast. First you mix
them to a dough. Then you let the dough rise for an hour. After that you bake it in a hot oven.
Bread is best when it is fresh.

tea | How do you make tea? | To make tea, you need water and tea leaves. Boil the water first. Put
the leaves into a pot and pour the hot water over them. Wait for about three minutes. Then pour
the tea into a cup, and add milk or sugar if you like.

coffee | What is coffee? | Coffee is a drink from the roasted beans of a plant. The beans are
ground, and hot water runs through them. It is dark and a little bitter. It keeps you awake.
People drink it with milk or sugar, or black.

chocolate | Where does chocolate come from? | Chocolate comes from the beans of the cocoa tree.
The tree grows where it is warm and wet. The beans are dried, roasted and ground. Then sugar and
milk are added. Chocolate tastes best when it melts slowly.

apples | What are apples? | Apples are fruits that grow on trees. They can be red, green or
yellow. They taste sweet or sour. You can eat them raw, bake them or make juice. In autumn they
are ripe.

a computer | What is a computer? | A computer is a machine that works with numbers. It follows a
list of steps, a program. It can do millions of steps in a second. We use it to write, to draw and
to play. Even a phone is a small computer.

the internet | What is the internet? | The internet is a net of computers all over the world. They
send each other messages. With it you can read news, see films and talk to friends. The messages
run through cables and the air. It began about fifty years ago.

a robot | What is a robot? | A robot is a machine that does work by itself. A computer tells it
what to do. Robots build cars and clean floors. Some of them can walk and see. They do not feel
anything.

a clock | How does a clock work? | A clock shows the time. Inside, something moves at a steady
pace, such as a swinging weight. Wheels count the swings and turn the hands. The short hand shows
the hours, and the long hand the minutes. A day has 24 hours.

a bicycle | How does a bicycle work? | A bicycle has two wheels and a chain. You push the pedals
with your feet. The chain turns the back wheel. You steer with your hands. While it rolls, it does
not fall over.

a ship | Why do ships float? | Ships float because they push water aside. The water pushes back
from below. A ship is hollow, so it is lighter than the water it pushes aside. That is why even
iron can swim. If water gets in, the ship sinks.

a plane | How do planes fly? | Planes fly because air lifts their wings. The engines push the
plane forward. The air flows fast over the wings. It is sent down, and the plane goes up. Large
planes carry hundreds of people.

music | What is music? | Music is sound in an order that people like. It has tones, rhythm and
often words. You can sing it or play it on an instrument. Music can make us happy or sad. Every
people has its own music.

a good day | How can I have a good day? | Start with a good breakfast and a glass of water. Do the
hardest thing first. Take a walk, and look at something green. Call a friend, and be kind to
somebody. In the evening, read a little and go to bed early.
"""
