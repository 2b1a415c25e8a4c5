"""Keys of entries in Redis."""

import json
from hashlib import blake2b

# Servers whose entries have another form must not see each other's: raise it with the form.
_FORM = 1
_DIGEST_BYTES = 32


def make_key(prefix: str, kind: str, tenant: str | None, entry_id: str) -> str:
    """Return the key of an entry.

    Ids come from clients. A digest of both keeps them apart from other tenants' and from other
    keys, whatever is in them, and does not tell who the tenant is.
    """
    pair = json.dumps([tenant, entry_id]).encode("ascii")
    digest = blake2b(pair, digest_size=_DIGEST_BYTES, person=kind.encode("ascii")).hexdigest()
    return f"{prefix}:{_FORM}:{kind}:{digest}"
