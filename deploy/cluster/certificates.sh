#!/usr/bin/env bash
# Make the TLS files of the machines that share engines:
#
#   deploy/cluster/certificates.sh FOLDER NAME...
#
# FOLDER gets ca.pem, and NAME.pem with NAME.key for each machine. An authority that is there already
# signs more machines. Copy to each machine ca.pem and its own two files, as the paths that
# cluster.tls_ca, cluster.tls_certificate and cluster.tls_key name. Keep ca.key off the machines: who
# has it can join.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,9p' "$0"; exit 2; }
folder=$1; shift
umask 077
mkdir -p "$folder"
cd "$folder"
key=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
if [ ! -e ca.key ]; then
    openssl req -x509 "${key[@]}" -days 3650 -subj "/CN=sglang-omni cluster" \
        -keyout ca.key -out ca.pem 2> /dev/null
fi
for name in "$@"; do
    openssl req "${key[@]}" -subj "/CN=$name" -keyout "$name.key" -out "$name.csr" 2> /dev/null
    openssl x509 -req -in "$name.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 825 \
        -out "$name.pem" 2> /dev/null
    rm "$name.csr"
done
ls "$PWD"
