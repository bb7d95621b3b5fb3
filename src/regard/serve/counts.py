"""Prometheus metrics: numbers, and names of routes and models, never a text."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
TEXTS = (1, 2, 4, 8, 16, 32, 64)


class Counts:
    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "regard_requests", "Requests answered", ["route", "status"], registry=registry
        )
        self.seconds = Histogram(
            "regard_request_seconds",
            "Seconds from a request to the end of its answer",
            ["route"],
            buckets=SECONDS,
            registry=registry,
        )
        self.waiting = Gauge("regard_waiting_texts", "Texts in the queue", ["model"], registry=registry)
        self.ready = Gauge("regard_model_ready", "Whether a model is ready", ["model"], registry=registry)
        self.batches = Histogram(
            "regard_batch_texts", "Texts in a batch", ["model"], buckets=TEXTS, registry=registry
        )
        self.dropped = Counter(
            "regard_dropped_texts", "Texts whose clients disconnected", ["model"], registry=registry
        )
        self.lost = Counter("regard_lost_workers", "Workers that died", ["model"], registry=registry)

    def exposition(self) -> bytes:
        """Metrics in Prometheus's text format."""
        return generate_latest(self.registry)
