"""uvicorn's WebSocket protocol, which does not take a client's mistakes for errors of its own."""

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

# What is not text, as the WebSocket protocol has it.
INVALID_DATA = 1007


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """One connection, from its handshake on."""

    def send_receive_event_to_app(self) -> None:
        """Pass a message on; close the connection where its text is not UTF-8, for which uvicorn
        would log an error with its stack, as often as a client likes."""
        if self.curr_msg_data_type == "text" and not self.close_sent and not self._is_text():
            self.frames = []
            self.conn.fail(INVALID_DATA, "a text frame must hold UTF-8")
            self.handle_parser_exception()
            return
        super().send_receive_event_to_app()

    def _is_text(self) -> bool:
        try:
            b"".join(self.frames).decode()
        except UnicodeDecodeError:
            return False
        return True
