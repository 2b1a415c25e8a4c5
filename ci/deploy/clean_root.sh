#!/usr/bin/env bash
# Run the commands of deploy/docker/Dockerfile (target cpu) in a new Debian, where there is no container
# engine, and serve from it as its user, without privileges and with a read-only file system.
#   ci/deploy/clean_root.sh ROOT      needs root, debootstrap and unshare; ROOT is a folder to be made
# Packages come from where this machine's own come from.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=${1:?a folder for the new system}
port=${PORT:-8979}
mirror=$(awk '/^URIs:/ {print $2; exit}' /etc/apt/sources.list.d/*.sources)
say() { echo "== $*"; }

say "FROM debian:bookworm-slim"
debootstrap --variant=minbase --include=ca-certificates bookworm "$root" "$mirror" > /dev/null
for file in /etc/apt/sources.list.d /etc/apt/apt.conf.d /etc/ssl/certs/ca-certificates.crt /etc/pip.conf; do
    [ ! -e "$file" ] || cp -r "$file" "$root$(dirname "$file")/"
done
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
trap 'umount "$root/proc" "$root/dev"' EXIT

say "COPY . /src"
mkdir "$root/src"
# What .dockerignore leaves.
sed -n 's/^!//p' .dockerignore | tar --create --exclude=__pycache__ --exclude='*.safetensors' \
    --exclude=.weights-unpacked --files-from - | tar --extract --directory "$root/src"
stage() { # number of the stage: its RUN commands, one by one
    awk -v stage="$1" '/^FROM/ {n++} n == stage' deploy/docker/Dockerfile |
        sed -e ':a' -e '/\\$/{N;s/\\\n *//;ba' -e '}' | sed -n 's/^RUN //p'
}
for number in 1 2; do
    while read -r command; do
        say "RUN $command"
        chroot "$root" sh -c "$command" < /dev/null > /dev/null 2>&1 || { echo "failed: $?"; exit 1; }
    done < <(stage "$number")
done
du -sh "$root/opt/omni" | sed "s|$root||"

say "USER 10001, read-only, no capabilities: ENTRYPOINT"
unshare --mount --propagation private bash -c '
    root=$1; shift
    mount --bind "$root" "$root"
    mount --rbind /dev "$root/dev"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount -o remount,bind,ro "$root"
    mount -t tmpfs -o size=256m,mode=1777 none "$root/tmp"
    mount -t tmpfs -o size=1g,mode=1777 none "$root/dev/shm"
    mount -t tmpfs -o size=256m,uid=10001,gid=10001 none "$root/var/lib/omni"
    exec chroot "$root" setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs \
        --bounding-set=-all env -i --chdir=/var/lib/omni HOME=/var/lib/omni \
        PATH=/opt/omni/bin:/usr/bin:/bin "$@"
' -- "$root" sgl-omni serve --version v1 --host 127.0.0.1 --port "$port" &
server=$!
trap 'kill "$server"; wait "$server" || true; umount "$root/proc" "$root/dev"' EXIT
until curl --silent --fail "http://127.0.0.1:$port/ready" > /dev/null; do
    kill -0 "$server"
    sleep 1
done
say "HEALTHCHECK: ready"
curl --silent --fail "http://127.0.0.1:$port/v1/chat/completions" --header 'Content-Type: application/json' \
    --data '{"messages": [{"role": "user", "content": "What is 17 + 25?"}]}' |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["choices"][0]["message"]["content"])'
curl --silent --fail "http://127.0.0.1:$port/v1/audio/speech" --header 'Content-Type: application/json' \
    --data '{"input": "Hello, how are you?"}' | wc --bytes | sed 's/$/ bytes of speech/'
