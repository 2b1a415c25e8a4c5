"""The panels of the Grafana dashboard: titles, units, queries and thresholds."""

from dataclasses import dataclass

# Of one server or of all, as the variable at the top says.
ON = 'instance=~"$instance"'
RATE = "[$__rate_interval]"


@dataclass(frozen=True)
class Query:
    """A query and how its series are called."""

    text: str
    name: str


@dataclass(frozen=True)
class Panel:
    """A panel: what it shows, in which unit, and from which values on it is yellow and red.

    `thresholds` in falling order mean that small values are bad.
    """

    title: str
    description: str
    unit: str
    queries: tuple[Query, ...]
    thresholds: tuple[float, float] | None = None
    is_stat: bool = False
    width: int = 8
    maximum: float | None = None


def rate(name: str, labels: str = "", by: str = "") -> str:
    """Return the sum of a counter's rates."""
    inner = f"{ON},{labels}" if labels else ON
    return f"sum{f' by ({by})' if by else ''} (rate({name}{{{inner}}}{RATE}))"


def quantile(share: float, name: str, by: str = "") -> str:
    """Return a quantile of a histogram."""
    groups = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, {rate(f'{name}_bucket', by=groups)})"


def both(name: str, by: str) -> tuple[Query, ...]:
    """Return the median and the 95th percentile of a histogram."""
    shown = f"{{{{{by}}}}}"
    return (
        Query(quantile(0.5, name, by), f"{shown}, p50"),
        Query(quantile(0.95, name, by), f"{shown}, p95"),
    )


def share(part: str, whole: str) -> str:
    """Return a share of two rates, 0 while there is nothing to divide by."""
    return f"({part}) / (({whole}) > 0) or vector(0)"


def per_step(counter: str, engine: str, name: str) -> Query:
    """Return what a counter of an engine adds in one of its steps."""
    added = rate(f"sgl_omni_engine_{counter}_total", engine)
    steps = rate("sgl_omni_engine_steps_total", engine)
    return Query(f"{added} / ({steps} > 0)", name)


REQUESTS = "sgl_omni_requests_total"
TALKER, IMAGE = 'engine="talker"', 'engine="image"'
ROWS: dict[str, tuple[Panel, ...]] = {
    "Overview": (
        Panel(
            *(
                "Ready",
                "Share of engines that are ready. Below 100 % some requests fail.",
                "percentunit",
            ),
            (Query(f"avg(sgl_omni_engine_up{{{ON}}})", "ready"),),
            thresholds=(0.999, 0.75),
            is_stat=True,
            width=4,
        ),
        Panel(
            *(
                "Errors",
                "Share of requests that ended with a status of 500 or above.",
                "percentunit",
            ),
            (Query(share(rate(REQUESTS, 'status=~"5.."'), rate(REQUESTS)), "errors"),),
            thresholds=(0.01, 0.05),
            is_stat=True,
            width=4,
        ),
        Panel(
            *("First audio, p95", "From a request's arrival to its first sound.", "s"),
            (Query(quantile(0.95, "sgl_omni_time_to_first_audio_seconds"), "p95"),),
            thresholds=(0.5, 1.0),
            is_stat=True,
            width=4,
        ),
        Panel(
            *(
                "Listeners",
                "Voices that speak now, of those that can speak at a time.",
                "percentunit",
            ),
            (
                Query(
                    f"sum(sgl_omni_engine_active_slots{{{ON},{TALKER}}}) / "
                    f"sum(sgl_omni_engine_slots{{{ON},{TALKER}}})",
                    "speaking",
                ),
            ),
            thresholds=(0.8, 0.95),
            is_stat=True,
            width=4,
        ),
        Panel(
            *(
                "Silence where speech was due",
                "Of the speech sent. Above 0 listeners hear gaps.",
                "percentunit",
            ),
            (
                Query(
                    share(
                        rate("sgl_omni_underrun_seconds_total"),
                        rate("sgl_omni_audio_seconds_total"),
                    ),
                    "gaps",
                ),
            ),
            thresholds=(0.001, 0.01),
            is_stat=True,
            width=4,
        ),
        Panel(
            *("Version", "Versions of the servers that are shown.", "none"),
            (Query(f"count by (version) (sgl_omni_build_info{{{ON}}})", "{{version}}"),),
            is_stat=True,
            width=4,
        ),
    ),
    "Requests": (
        Panel(
            *("Requests", "Requests that ended, by route and status.", "reqps"),
            (Query(rate(REQUESTS, by="route, status"), "{{route}} {{status}}"),),
        ),
        Panel(
            *("Duration", "From a request's arrival to its last byte.", "s"),
            both("sgl_omni_request_duration_seconds", "route"),
        ),
        Panel(
            *(
                "Refused",
                "Requests refused by the API process, and those for which a queue was full.",
                "reqps",
            ),
            (
                Query(rate("sgl_omni_refusals_total", by="reason"), "{{reason}}"),
                Query(
                    rate("sgl_omni_engine_rejected_total", by="engine"), "{{engine}}: queue full"
                ),
            ),
        ),
        Panel(
            *("First text", "From a request's arrival to its first text.", "s"),
            both("sgl_omni_time_to_first_token_seconds", "route"),
        ),
        Panel(
            *(
                "At work and waiting",
                "Requests in the server, with a place in an engine, and in a queue.",
                "short",
            ),
            (
                Query(f"sum(sgl_omni_requests_in_flight{{{ON}}})", "in the server"),
                Query(f"sum by (engine) (sgl_omni_engine_admitted{{{ON}}})", "{{engine}}: at work"),
                Query(f"sum by (engine) (sgl_omni_engine_queued{{{ON}}})", "{{engine}}: waiting"),
            ),
        ),
        Panel(
            *(
                "Event loop stalls, p99",
                "How late the API process wakes up. Everybody waits meanwhile.",
                "s",
            ),
            (Query(quantile(0.99, "sgl_omni_event_loop_stall_seconds"), "p99"),),
            thresholds=(0.05, 0.25),
        ),
    ),
    "Speech": (
        Panel(
            *("First audio", "From a request's arrival to its first sound.", "s"),
            both("sgl_omni_time_to_first_audio_seconds", "route"),
        ),
        Panel(
            *(
                "Real-time ratio",
                "Seconds of generation for a second of sound. At 1 listeners begin to wait.",
                "none",
            ),
            both("sgl_omni_real_time_ratio", "route"),
            thresholds=(0.8, 1.0),
        ),
        Panel(
            *(
                "Speech",
                "Seconds of sound made in a second, and of silence where sound was due.",
                "none",
            ),
            (
                Query(rate("sgl_omni_audio_seconds_total"), "speech"),
                Query(rate("sgl_omni_underrun_seconds_total"), "silence"),
            ),
        ),
        Panel(
            *("Voices", "Voices that speak, that wait, and that can speak at a time.", "short"),
            (
                Query(f"sum(sgl_omni_engine_active_slots{{{ON},{TALKER}}})", "speaking"),
                Query(f"sum(sgl_omni_engine_waiting{{{ON},{TALKER}}})", "waiting"),
                Query(f"sum(sgl_omni_engine_slots{{{ON},{TALKER}}})", "capacity"),
            ),
        ),
        Panel(
            *("Talker step", "Duration of one step of the talker.", "s"),
            (per_step("step_seconds", TALKER, "step"),),
        ),
        Panel(
            *("Talker batch", "Voices that share a step.", "short"),
            (per_step("patches", TALKER, "voices"),),
        ),
    ),
    "Text and media": (
        Panel(
            *("KV cache", "Share of the thinker's KV cache that is in use.", "percentunit"),
            (
                Query(
                    f"sgl_omni_engine_kv_tokens_used{{{ON}}} / "
                    f"(sgl_omni_engine_kv_tokens_capacity{{{ON}}} > 0)",
                    "{{instance}} {{replica}}",
                ),
            ),
            thresholds=(0.8, 0.95),
            maximum=1,
        ),
        Panel(
            *("Tokens", "Tokens that the thinker generates and reads.", "none"),
            (
                Query(f"sum(rate(sglang:generation_tokens_total{{{ON}}}{RATE}))", "generated"),
                Query(f"sum(rate(sglang:prompt_tokens_total{{{ON}}}{RATE}))", "read"),
            ),
        ),
        Panel(
            *(
                "Encoder caches",
                "Share of encodings that were taken from the cache.",
                "percentunit",
            ),
            tuple(
                Query(
                    share(
                        rate(f"sgl_omni_engine_{kind}_cache_hits_total"),
                        f"{rate(f'sgl_omni_engine_{kind}_cache_hits_total')} + "
                        f"{rate(f'sgl_omni_engine_{kind}_cache_misses_total')}",
                    ),
                    kind,
                )
                for kind in ("image", "audio")
            ),
            maximum=1,
        ),
    ),
    "Images": (
        Panel(
            *("Images", "Images that the image engine completed.", "reqps"),
            (Query(rate("sgl_omni_engine_finished_total", IMAGE), "completed"),),
        ),
        Panel(
            *("Image step", "Duration of one step of the image engine.", "s"),
            (per_step("step_seconds", IMAGE, "step"),),
        ),
        Panel(
            *("Image batch", "Images that share a step.", "short"),
            (per_step("image_steps", IMAGE, "images"),),
        ),
    ),
    "Stages and engines": (
        Panel(
            *("Stages, p95", "Duration of each stage of a request.", "s"),
            (Query(quantile(0.95, "sgl_omni_stage_duration_seconds", "stage"), "{{stage}}"),),
        ),
        Panel(
            *("First output of stages, p95", "From a stage's beginning to its first output.", "s"),
            (Query(quantile(0.95, "sgl_omni_stage_first_output_seconds", "stage"), "{{stage}}"),),
        ),
        Panel(
            *("Failures of stages", "Stages that failed or were cancelled.", "ops"),
            (
                Query(
                    rate("sgl_omni_stage_failures_total", by="stage, error"), "{{stage}}: {{error}}"
                ),
            ),
        ),
        Panel(
            *("Engines", "1 if an engine is ready, else 0.", "short"),
            (Query(f"sgl_omni_engine_up{{{ON}}}", "{{instance}} {{engine}} {{replica}} {{node}}"),),
            maximum=1,
        ),
        Panel(
            *(
                "Replicas",
                "Replicas in each state. Those on standby start when others have too much to do.",
                "short",
            ),
            (
                Query(
                    f"sum by (engine, state) (sgl_omni_engine_replicas{{{ON}}})",
                    "{{engine}}: {{state}}",
                ),
            ),
        ),
        Panel(
            *("Restarts in the last hour", "Restarts of engines after a crash or a hang.", "short"),
            (
                Query(
                    f"increase(sgl_omni_engine_restarts_total{{{ON}}}[1h])",
                    "{{instance}} {{engine}} {{replica}} {{node}}",
                ),
            ),
            thresholds=(1, 3),
        ),
    ),
}
