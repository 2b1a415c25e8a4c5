"""From a text to fragments the talker can read aloud; `front.fragments` is the way in."""
