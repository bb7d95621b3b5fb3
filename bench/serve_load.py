"""The server under load, at full size; every section checks what it counts.

    python bench/serve_load.py [SECTION …] [--scale 1] [--append bench/RESULTS.md]

clients    1,000 at once × 20 requests: each its own answer, or 429; memory before and after
fairness   8 clients with 64 texts a request, and a ninth with one: its refusals and its waits
batching   64 clients on a 3+3 model with beam 4, with dynamic batches and one text at a time
malformed  10,000 requests that are wrong in some way, a good one after every 100
signals    SIGTERM under load × 50
kills      kill -9 of a worker under load × 10
canaries   20,000 mixed requests, secrets in every second one
page       500 hostile strings through the page, in Chromium

Models have random weights: what is measured is the server, and the answers are compared with the model's own.
`--scale 0.01` makes everything smaller, to try the script.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import torch

import regard
from hostile import canary_request, fault, malformed, send
from hostile_texts import SENDABLE
from served import Served, make_models, sentences, served, until

SLOW = {"beam": 16, "min_length": 15, "no_repeat": 0}


class Client:
    """One connection that is kept; the least HTTP that uvicorn speaks."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.pair: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, fields: dict[str, Any]) -> tuple[int, bytes]:
        if self.pair is None:
            self.pair = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.pair
        body = json.dumps(fields).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost:{self.port}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
        if "content-length" in headers:
            answer = await reader.readexactly(int(headers["content-length"]))
        else:
            answer = b""
            while size := int(await reader.readline(), 16):
                answer += (await reader.readexactly(size + 2))[:-2]
            await reader.readline()
        if headers.get("connection") == "close":
            self.close()
        return int(lines[0].split()[1]), answer

    def close(self) -> None:
        if self.pair is not None:
            self.pair[1].close()
            self.pair = None


def memory(server: Served) -> float:
    """Megabytes held by the server and its workers."""
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    statuses = (Path(f"/proc/{pid}/status").read_text() for pid in (server.process.pid, *children))
    return sum(int(status.split("VmRSS:")[1].split()[0]) for status in statuses) / 1000


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def clients(folder: Path, scale: float) -> list[str]:
    n_clients, n_requests = max(2, round(1000 * scale)), 20
    models = make_models(folder / "models")
    texts = sentences(1000)
    expected = [answer.text for answer in regard.load(models[0]).predict(texts)]
    statuses: Counter[int] = Counter()
    wrong, waits = 0, []

    async def client(port: int, number: int) -> None:
        nonlocal wrong
        rng, connection = random.Random(number), Client(port)
        for _ in range(n_requests):
            at = rng.randrange(len(texts))
            began = time.perf_counter()
            async with asyncio.timeout(120):
                status, body = await connection.post("/v1/translate", {"text": texts[at]})
            statuses[status] += 1
            if status == 200:
                waits.append(time.perf_counter() - began)
                wrong += json.loads(body)["answers"][0]["text"] != expected[at]
            else:
                await asyncio.sleep(rng.uniform(0.5, 1.5))  # as Retry-After says
        connection.close()

    async def all_clients(port: int) -> None:
        await asyncio.gather(*(client(port, number) for number in range(n_clients)))

    with served(models[:1], folder / "log") as server:
        server.post("/v1/translate", text=texts[:64])
        before, began = memory(server), time.perf_counter()
        asyncio.run(all_clients(server.port))
        took = time.perf_counter() - began
        peak = memory(server)
        until(lambda: server.metric("regard_waiting_texts") == 0)
        time.sleep(11)  # connections that were kept have ended by then
        after = memory(server)
    assert not wrong, wrong
    assert set(statuses) <= {200, 429}, statuses
    assert after - before < 200, (before, after)
    return [
        f"{n_clients:,} clients × {n_requests} requests: {statuses[200]:,} answered, each with its own; "
        f"{statuses[429]:,} told to come back (429); nothing else, nothing hung.",
        f"{sum(statuses.values()) / took:,.0f} requests/s, {statuses[200] / took:,.0f} answers/s; "
        f"p50 {1000 * quantile(waits, 0.5):.0f} ms, p99 {1000 * quantile(waits, 0.99):.0f} ms; "
        f"memory {before:.0f} MB before, {peak:.0f} MB at the end, {after:.0f} MB afterwards.",
    ]


def fairness(folder: Path, scale: float) -> list[str]:
    seconds, large = max(2, 15 * scale), sentences(64)
    models = make_models(folder / "models")
    waits: dict[int, list[float]] = {1: [], 64: []}
    refused: Counter[int] = Counter()

    async def client(port: int, texts: list[str], end: float) -> None:
        connection = Client(port)
        while (began := time.perf_counter()) < end:
            status, _ = await connection.post("/v1/translate", {"text": texts, "decode": SLOW})
            if status == 200:
                waits[len(texts)].append(time.perf_counter() - began)
            else:
                refused[len(texts)] += 1
                await asyncio.sleep(1)  # as Retry-After says
        connection.close()

    async def all_clients(port: int) -> None:
        end = time.perf_counter() + seconds
        await asyncio.gather(*(client(port, large, end) for _ in range(8)), client(port, large[:1], end))

    with served(models[:1], folder / "log") as server:
        asyncio.run(all_clients(server.port))
    return [
        f"8 clients with 64 texts a request, and a ninth with one, for {seconds:.0f} s: the ninth had "
        f"{len(waits[1])} answers (p50 {1000 * quantile(waits[1], 0.5):.0f} ms, slowest "
        f"{1000 * quantile(waits[1], 1):.0f} ms) and {refused[1]} refusals; the others "
        f"{len(waits[64])} answers (p50 {1000 * quantile(waits[64], 0.5):.0f} ms) and {refused[64]} refusals."
    ]


def batching(folder: Path, scale: float) -> list[str]:
    model, texts = large_model(folder), None
    texts = (folder / "texts").read_text().splitlines()
    found: dict[str, tuple[float, float, float]] = {}
    answers: dict[str, dict[str, str]] = {}

    async def load(port: int, seconds: float, heard: dict[str, str]) -> tuple[float, float, float]:
        waits: list[float] = []
        end = time.perf_counter() + seconds

        async def client(number: int) -> None:
            rng, connection = random.Random(number), Client(port)
            while time.perf_counter() < end:
                text = rng.choice(texts)
                began = time.perf_counter()
                status, body = await connection.post("/v1/translate", {"text": text})
                assert status == 200, body
                waits.append(time.perf_counter() - began)
                heard[text] = json.loads(body)["answers"][0]["text"]
            connection.close()

        began = time.perf_counter()
        await asyncio.gather(*(client(number) for number in range(64)))
        return len(waits) / (time.perf_counter() - began), quantile(waits, 0.5), quantile(waits, 0.99)

    for name, limits in (
        ("one text at a time", {"batch_texts": 1, "wait_seconds": 900}),
        ("dynamic batches", {}),
    ):
        with served([model], folder / "log", limits=limits, environment={"OMP_NUM_THREADS": "2"}) as server:
            heard = answers.setdefault(name, {})
            asyncio.run(load(server.port, 5 * min(1, 10 * scale), {}))
            found[name] = asyncio.run(load(server.port, 60 * scale, heard))
    alone, together = answers.values()
    same = [alone[text] == together[text] for text in alone.keys() & together.keys()]
    ratio = found["dynamic batches"][0] / found["one text at a time"][0]
    lines = [
        "| 64 clients, 3+3 layers, d 256, beam 4, 2 threads | requests/s | p50 | p99 |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {rate:.1f} | {p50:.2f} s | {p99:.2f} s |" for name, (rate, p50, p99) in found.items()
    ]
    lines.append(
        f"\nDynamic batches give {ratio:.1f}×; {sum(same)} of {len(same)} answers are the same both ways."
    )
    return lines


def large_model(folder: Path) -> Path:
    """3+3 layers, d 256, 8,000 words, as before training: it never ends by itself, so lengths are bound."""
    rng = random.Random(5)
    words = [f"w{number}" for number in range(8000)]
    lines = [words[at : at + 8] for at in range(0, 8000, 8)]
    lines += [rng.choices(words, k=rng.randint(6, 18)) for _ in range(1000)]
    for side in ("source", "target"):
        (folder / f"train.{side}").write_text("".join(" ".join(line) + "\n" for line in lines))
    recipe = {
        "run": str(folder / "run"),
        "task": {
            "kind": "translate",
            "tokenizer": {"kind": "word", "vocab_size": 8100, "min_frequency": 1},
            "decode": {"beam": 4, "max_ratio": 1.0},
        },
        "data": {"train": [str(folder / "train.source"), str(folder / "train.target")]},
        "model": {
            "kind": "transformer",
            "d_model": 256,
            "n_heads": 4,
            "d_ff": 1024,
            "n_encoder_layers": 3,
            "n_decoder_layers": 3,
        },
        "train": {"max_steps": 1, "batch_tokens": 500},
    }
    trained = regard.train(regard.Recipe.parse(recipe), quiet=True)
    trained.save(folder / "large")
    (folder / "texts").write_text("\n".join(" ".join(line) for line in lines[-500:]))
    return folder / "large"


def malformed_requests(folder: Path, scale: float) -> list[str]:
    models, count = make_models(folder / "models"), round(10_000 * scale)
    expected = regard.load(models[0]).predict("一二三").text
    kinds: Counter[str] = Counter()
    with served(models, folder / "log") as server:

        def tried(hundred: list[bytes]) -> None:
            for data in hundred:
                answer = send(server.port, data)
                assert fault(answer) is None, f"{data[:300]!r} got {fault(answer)}"
                kinds[answer[9:12].decode() or "closed"] += 1
            good = server.post("/v1/translate", text="一二三")
            assert good.json["answers"][0]["text"] == expected

        requests = list(malformed(count, seed=2026))
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(tried, (requests[at : at + 100] for at in range(0, count, 100))))
        lost = server.metric("regard_lost_workers_total")
    assert not lost
    assert (folder / "log").read_text() == ""
    told = ", ".join(f"{name}: {number:,}" for name, number in sorted(kinds.items()))
    return [f"{count:,} malformed requests: no crash, no 5xx, a good one answered after every 100. {told}."]


def signals(folder: Path, scale: float) -> list[str]:
    models, times, lost = make_models(folder / "models")[:1], [], 0
    answered = 0
    rounds = max(1, round(50 * scale))
    for number in range(rounds):
        rng = random.Random(number)
        with served(models, folder / "log") as server:
            outcomes: list[tuple[float, int]] = []
            ended: list[bool] = []

            def client(_: int, server: Served = server, outcomes: Any = outcomes, ended: Any = ended) -> None:
                while not ended:
                    sent = time.monotonic()
                    try:
                        status = server.post("/v1/translate", text=sentences(10), decode=SLOW).status
                    except OSError:
                        status = 0
                    outcomes.append((sent, status))

            with ThreadPoolExecutor(8) as pool:
                running = [pool.submit(client, each) for each in range(8)]
                time.sleep(rng.uniform(0.3, 1.0))
                at = time.monotonic()
                server.process.send_signal(signal.SIGTERM)
                time.sleep(0.3)
                ended.append(True)
                assert server.process.wait(15) == 0
                times.append(time.monotonic() - at)
                for each in running:
                    each.result()
        accepted = [status for sent, status in outcomes if sent < at - 0.05]
        lost += sum(status not in (200, 429) for status in accepted)
        answered += len(outcomes)
        assert {status for _, status in outcomes} <= {200, 429, 503}, Counter(s for _, s in outcomes)
    assert not lost
    assert max(times) < 10
    return [
        f"SIGTERM under load × {rounds}: {answered:,} requests, all that came before the signal answered, "
        f"later ones 503; exit 0 after {quantile(times, 0.5):.1f} s (median), {max(times):.1f} s at most."
    ]


def kills(folder: Path, scale: float) -> list[str]:
    models, backs = make_models(folder / "models"), []
    statuses: Counter[int] = Counter()
    rounds = max(1, round(10 * scale))
    with served(models, folder / "log") as server, ThreadPoolExecutor(8) as pool:
        for _ in range(rounds):
            asked = [
                pool.submit(server.post, "/v1/translate", text=sentences(40), decode=SLOW) for _ in range(4)
            ]
            time.sleep(0.05)
            victim = server.worker("numbers")
            assert victim
            os.kill(victim, signal.SIGKILL)
            killed = time.monotonic()
            assert server.post("/v1/classify", text="good film").status == 200
            until(lambda victim=victim: server.worker("numbers") not in (victim, None))
            until(lambda: server.get("/ready").status == 200)
            backs.append(time.monotonic() - killed)
            statuses.update(answer.result().status for answer in asked)
    assert max(backs) < 10, backs
    assert set(statuses) <= {200, 503}, statuses
    told = ", ".join(f"{status}: {number}" for status, number in statuses.items())
    return [
        f"kill −9 of a worker under load × {rounds}: the other model answered meanwhile, the killed one was "
        f"back after {quantile(backs, 0.5):.1f} s (median), {max(backs):.1f} s at most; its requests: {told}."
    ]


def canaries(folder: Path, scale: float) -> list[str]:
    models, count = make_models(folder / "models"), round(20_000 * scale)
    letters = "abcdefghijklmnopqrstuvwxyz"
    secrets = [
        "canary" + "".join(letters[number // 26**place % 26] for place in range(4)) if number % 2 else ""
        for number in range(count)
    ]
    seen, leaked = 0, 0
    statuses: Counter[int] = Counter()

    async def client(port: int, mine: list[str], seed: int) -> None:
        nonlocal seen, leaked
        rng, connection = random.Random(seed), Client(port)
        for secret in mine:
            path, fields = canary_request(rng, secret or "plain")
            status, body = await connection.post(path, fields)
            statuses[status] += 1
            seen += b"canary" in body
            leaked += body.count(b"canary") != (body.count(secret.encode()) if secret else 0)
        connection.close()

    async def all_clients(port: int) -> None:
        await asyncio.gather(*(client(port, secrets[each::32], each) for each in range(32)))

    with served(models, folder / "log") as server:
        asyncio.run(all_clients(server.port))
        metrics = server.get("/metrics").body
    assert not leaked
    assert b"canary" not in metrics
    assert (folder / "log").read_text() == ""
    assert set(statuses) <= {200, 404, 422, 429}, statuses
    return [
        f"{count:,} mixed requests, half with a secret: {seen:,} answers name their own, none another's; "
        f"none in the log or the metrics ({', '.join(f'{k}: {v:,}' for k, v in sorted(statuses.items()))})."
    ]


def page(folder: Path, scale: float) -> list[str]:
    from playwright.sync_api import sync_playwright

    strings, faults = SENDABLE[: max(2, round(500 * scale))], []
    models = make_models(folder / "models")
    with served(models, folder / "log") as server, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        opened = chromium.new_page()
        opened.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
        opened.on("pageerror", lambda error: faults.append(str(error)))
        opened.goto(f"http://localhost:{server.port}/")
        opened.wait_for_selector("html[data-ready]")
        for number, text in enumerate(strings):
            if number % 250 == 0:
                opened.select_option("#model", ("numbers", "films")[number // 250 % 2])
            opened.fill("#input", text)
            opened.locator("#input").press("Enter")
            opened.wait_for_selector("#picture:not([hidden]), #fault:not([hidden])")
        opened.wait_for_timeout(300)
        assert opened.evaluate("window.__pwned") is None
        assert opened.locator("main script, main img, main iframe, main svg").count() == 0
        chromium.close()
    assert not faults, faults
    return [f"{len(strings)} hostile strings through the page in Chromium: shown, none executed."]


RUN: dict[str, Callable[[Path, float], list[str]]] = {
    "clients": clients,
    "fairness": fairness,
    "batching": batching,
    "malformed": malformed_requests,
    "signals": signals,
    "kills": kills,
    "canaries": canaries,
    "page": page,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", default=list(RUN))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--append", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = [
        f"## The server under load, {date.today()}",
        "",
        f"`python bench/serve_load.py {' '.join(sys.argv[1:])}`",
        "",
    ]
    lines += [f"Machine: {os.cpu_count()} cores, which the clients share; torch {torch.__version__}.", ""]
    for name in options.sections:
        with tempfile.TemporaryDirectory() as folder, suppress(KeyboardInterrupt):
            began = time.perf_counter()
            told = RUN[name](Path(folder), options.scale)
            print(f"[{name}, {time.perf_counter() - began:.0f} s]", *told, sep="\n", flush=True)
            lines += [*told, ""]
    if options.append:
        with options.append.open("a", encoding="utf-8") as file:
            file.write("\n" + "\n".join(lines))


if __name__ == "__main__":
    main()
