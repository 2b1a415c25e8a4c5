#!/bin/sh
# smg 1.13 (pip install smg==1.13.0) in front of servers, which it is given as URLs:
#   sh smg.sh http://10.0.0.1:8000 http://10.0.0.2:8000
# $HOST and $PORT are its address, $METRICS_PORT that of its own metrics, $PYTHON the interpreter that has it,
# and $SMG_ADMIN_KEY the key of its routes that add and remove servers (by default a random one).
set -eu
[ $# -gt 0 ] || { sed -n '2,5p' "$0"; exit 2; }
HOST=${HOST:-127.0.0.1} PORT=${PORT:-30000} METRICS_PORT=${METRICS_PORT:-29000}
key=${SMG_ADMIN_KEY:-$(od -An -tx1 -N16 /dev/urandom | tr -d ' \n')}

# Add the servers. Without the label, smg asks no server of its own for a realtime session.
add_servers() {
    curl --silent --retry 60 --retry-delay 1 --retry-connrefused --fail --output /dev/null \
        "http://$HOST:$PORT/liveness"
    for url in "$@"; do
        curl --silent --show-error --fail --output /dev/null "http://$HOST:$PORT/workers" \
            -H "Authorization: Bearer $key" -H "Content-Type: application/json" \
            -d "{\"url\": \"$url\", \"labels\": {\"realtime\": \"true\"}}"
    done
}
# Beside smg, which takes the place of this shell below, and ends if there is a server that cannot be added.
{ add_servers "$@" || kill $$; } &

# A server is asked for /ready: 503 while it starts or drains. One failure is enough to ask it no more.
exec "${PYTHON:-python3}" -m smg launch --host "$HOST" --port "$PORT" \
    --prometheus-host 127.0.0.1 --prometheus-port "$METRICS_PORT" \
    --control-plane-api-keys "admin:admin:admin:$key" \
    --policy cache_aware --routing-key-headers x-session-id \
    --health-check-endpoint /ready --health-check-interval-secs 1 \
    --health-failure-threshold 1 --health-success-threshold 1
