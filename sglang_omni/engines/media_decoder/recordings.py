"""The recordings that a decoder reads step by step."""

from sglang_omni.engines.media_decoder.contract import RecordingRequest
from sglang_omni.engines.media_decoder.decode_errors import as_client_error
from sglang_omni.media.limits import MediaLimits
from sglang_omni.media.recording import RecordingReader
from sglang_omni.media.speech_spans import RecordingProgress
from sglang_omni.protocol.errors import EngineFailed, OmniError

NAME = "recording"


class OpenRecordings:
    """The readers of recordings that have not ended, by the id of their request."""

    def __init__(self, limits: MediaLimits) -> None:
        self._limits = limits
        self._readers: dict[str, RecordingReader] = {}

    @property
    def ids(self) -> frozenset[str]:
        """Return the ids of the requests."""
        return frozenset(self._readers)

    def open(self, request_id: str, request: RecordingRequest) -> None:
        """Begin to read. Raises `EngineFailed` if the owner of the files is gone."""
        try:
            source, sink = request.source.open(), request.sink.open()
        except OSError as error:
            raise EngineFailed(f"the recording cannot be opened: {error.strerror}") from error
        self._readers[request_id] = RecordingReader(source, sink, request.rules, self._limits)

    def read(self, request_id: str) -> RecordingProgress:
        """Read the next part. The reader is closed at its end, and by an error.

        Raises:
            InvalidRequest: The file is broken or exceeds a limit.
            EngineFailed: The samples cannot be stored.
        """
        try:
            with as_client_error(NAME):
                progress = self._readers[request_id].step()
        except OmniError:
            self.close(request_id)
            raise
        if progress.last:
            self.close(request_id)
        return progress

    def close(self, request_id: str) -> None:
        """Stop reading."""
        reader = self._readers.pop(request_id, None)
        if reader is not None:
            reader.close()
