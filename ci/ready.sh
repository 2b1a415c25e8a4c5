# Sourced by what measures a server: wait_ready PORT PID SECONDS, which fails if it does not come up.
wait_ready() {
    local seconds
    for seconds in $(seq "$3"); do
        sleep 1
        curl -sf "http://127.0.0.1:$1/ready" > /dev/null && {
            echo "ready after $seconds s"
            return 0
        }
        kill -0 "$2" 2> /dev/null || break
    done
    echo "not ready after $seconds s"
    return 1
}
