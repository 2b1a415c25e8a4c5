"""Sends messages through a socket, as the links do."""

import socket
import threading
from typing import Any

from sglang_omni.engines.runtime.output_sender import send_all
from sglang_omni.engines.runtime.transport import encode, receive


def through_a_socket(message: Any) -> Any:
    """Return what the other end of a socket receives."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sender = threading.Thread(target=send_all, args=(ours, encode(message)))
        sender.start()
        received = next(receive(theirs))
        sender.join()
        return received
