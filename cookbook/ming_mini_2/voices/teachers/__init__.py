"""Free synthesizers whose speech the talker learns, one file each."""
