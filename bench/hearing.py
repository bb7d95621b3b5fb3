"""What hearing costs: the transducer's loss, and a model that listens.

    python bench/hearing.py loss
    python bench/hearing.py memory
    python bench/hearing.py stream RUN MANIFEST [--streams 20]
    python bench/hearing.py hour RUN MANIFEST [--hours 1]
    python bench/hearing.py exact RUN MANIFEST [--count 300]
    python bench/hearing.py damaged RUN RECORDING [--count 500]

`loss` puts the loss beside the plain double loop of the tests and beside a product of matrices, in turns;
`memory` measures the peak of a process by how many frames of the joint are made at once; `stream` measures
the time that a second of sound takes, how late words are and streams side by side, `hour` the memory of a
stream on a simulated clock; `exact` cuts recordings at random and compares with the whole; `damaged` gives
broken files.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

import regard
from regard.errors import RegardError
from regard.files.sound import Sound
from regard.layers.transducer import Joint, transducer_loss

sys.path.append(str(Path(__file__).parents[1] / "tests"))
SHAPES = {"loop": (4, 40, 12, 30), "large": (8, 100, 24, 64)}
WIDTH = 144


def inputs(shape: Sequence[int]) -> tuple[Joint, Any, Any, Any]:
    n_batch, n_frames, n_labels, vocabulary = shape
    torch.manual_seed(0)
    encoded, predicted = torch.randn(n_batch, n_frames, WIDTH), torch.randn(n_batch, n_labels + 1, WIDTH)
    weight, bias = torch.randn(vocabulary, WIDTH) / 12, torch.zeros(vocabulary)
    tensors = (one.requires_grad_() for one in (encoded, predicted, weight, bias))
    labels = torch.randint(1, vocabulary, (n_batch, n_labels))
    return (
        Joint(*tensors),
        labels,
        torch.full((n_batch,), n_frames),
        torch.full((n_batch,), n_labels),
    )


def seconds(work: Callable[[], object]) -> float:
    """Of this process, whatever else the machine does."""
    began = time.process_time()
    work()
    return time.process_time() - began


def loss() -> None:
    from oracle.transducers import loop_loss

    torch.set_num_threads(1)
    joint, *rest = inputs(SHAPES["loop"])

    def double_loop() -> torch.Tensor:
        hidden = (joint.encoded_BTF[:, :, None] + joint.predicted_BUF[:, None]).tanh()
        log_probs = torch.log_softmax(hidden @ joint.weight_VF.T + joint.bias_V, -1)
        found: torch.Tensor = loop_loss(log_probs, *rest)
        return found

    plain = double_loop()
    gap = (transducer_loss(joint, *rest) - plain).abs().max()
    pairs = [
        (
            seconds(lambda: double_loop().sum().backward()),
            seconds(lambda: transducer_loss(joint, *rest).sum().backward()),
        )
        for _ in range(9)
    ]
    ratio = median(one / other for one, other in pairs)
    print(f"{SHAPES['loop']}: double loop {1000 * median(one for one, _ in pairs):.1f} ms, ", end="")
    print(
        f"ours {1000 * median(other for _, other in pairs):.1f} ms: {ratio:.1f}× (losses differ by {gap:.1e})"
    )
    joint, *rest = inputs(SHAPES["large"])
    square = torch.randn(512, 512)
    pairs = [
        (seconds(lambda: square @ square), seconds(lambda: transducer_loss(joint, *rest).sum().backward()))
        for _ in range(15)
    ]
    probe = median(one for one, _ in pairs)
    ours = median(other for _, other in pairs)
    rate = 2 * 512**3 / probe / 1e9
    best = min(other for _, other in pairs)
    times = f"{1000 * ours:.1f} ms, the best {1000 * best:.1f}"
    print(f"{SHAPES['large']}: forward and backward {times}")
    print(f"probe: a product of 512 × 512 at {rate:.0f} GFLOP/s")


def memory(at_once: int | None = None) -> None:
    """Peaks of processes of their own, above that of one which computes nothing."""
    if at_once is not None:
        torch.set_num_threads(1)
        joint, *rest = inputs((8, 400, 40, 500))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = transducer_loss(joint, *rest, at_once=at_once)
        found.sum().backward()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        bits = hash(found.detach().numpy().tobytes() + joint.encoded_BTF.grad.numpy().tobytes())
        print(json.dumps({"MB": peak / 1024, "bits": bits}))
        return
    print("(8, 400, 40, 500): frames at once, MB, whether the bits are those of one frame at once")
    first = None
    for frames in (1, 4, 16, 64, 400):
        command = [sys.executable, __file__, "memory", "--at-once", str(frames)]
        environment = {"PYTHONHASHSEED": "0"}
        import os

        said = json.loads(subprocess.check_output(command, env=os.environ | environment))
        first = first or said["bits"]
        print(f"{frames:4d}  {said['MB']:7.1f}  {said['bits'] == first}")


def recordings(manifest: Path) -> Iterator[tuple[dict[str, Any], Any]]:
    for line in manifest.read_text("utf-8").splitlines():
        row = json.loads(line)
        yield row, Sound(manifest.parent / row["audio_filepath"], row["audio_filepath"])


def stream(run: Path, manifest: Path, n_streams: int) -> None:
    torch.set_num_threads(1)
    trained = regard.load(run)
    rate = trained.task.audio.rate
    sounds = [(row, sound.samples(rate)) for row, sound in islice(recordings(manifest), 60)]
    _speed(trained, [samples for _, samples in sounds], rate)
    _lateness(trained, sounds, rate)
    _together(trained, [samples for _, samples in sounds], rate, n_streams)


def _speed(trained: Any, sounds: Sequence[Any], rate: int) -> None:
    for beam in (1, 4):
        began, heard = time.process_time(), 0.0
        for samples in sounds[:30]:
            for _ in trained.listen(np.array_split(samples, 1 + len(samples) // 5120), rate=rate, beam=beam):
                pass
            heard += len(samples) / rate
        used = time.process_time() - began
        factor = f"real-time factor {used / heard:.3f}"
        print(f"beam {beam}: {used:.2f} s of one core for {heard:.0f} s of sound: {factor}")


def _lateness(trained: Any, sounds: Sequence[Any], rate: int) -> None:
    """From the end of a word to the moment when it is shown: the wait for its chunk, and the work."""
    late, n_block = [], rate // 50
    first = []
    for row, samples in sounds:
        listener, shown, n_words = trained.listener(rate, beam=4), "", 0
        for begin in range(0, len(samples), n_block):
            block = samples[begin : begin + n_block]
            began = time.process_time()
            partial = listener.push(block)
            work = time.process_time() - began
            if partial is None:
                continue
            shown += partial.text
            now = (begin + len(block)) / rate + work
            n_now = len((shown + partial.rest).split())
            for word in row["words"][n_words:n_now]:
                late.append(now - word["end"])
                if n_words == 0 and word is row["words"][0]:
                    first.append(now - word["end"])
            n_words = max(n_words, n_now)
    for name, found in (("all words", late), ("first words", first)):
        middle, most = np.percentile(found, (50, 95))
        print(f"{name}: shown {1000 * middle:.0f} ms after their end (median), {1000 * most:.0f} ms (95 %)")


def _together(trained: Any, sounds: Sequence[Any], rate: int, n_streams: int) -> None:
    """Streams in turns, block by block: each must say what it says alone."""
    chosen = list(islice(cycle(sounds), n_streams))
    alone = ["".join(part.text for part in trained.listen([samples], rate=rate)) for samples in chosen]
    listeners = [trained.listener(rate) for _ in chosen]
    texts, longest = [""] * n_streams, max(map(len, chosen))
    began = time.process_time()
    for begin in range(0, longest, rate // 10):
        for at, samples in enumerate(chosen):
            block = samples[begin : begin + rate // 10]
            if len(block) and (partial := listeners[at].push(block)) is not None:
                texts[at] += partial.text
    texts = [text + listener.finish().text for text, listener in zip(texts, listeners, strict=True)]
    used, heard = time.process_time() - began, longest / rate
    wrong = sum(one != other for one, other in zip(texts, alone, strict=True))
    print(f"{n_streams} streams side by side: {wrong} wrong, {used / heard:.2f} of one core")


def hour(run: Path, manifest: Path, hours: float) -> None:
    torch.set_num_threads(1)
    trained = regard.load(run)
    rate = trained.task.audio.rate
    sounds = [sound.samples(rate) for _, sound in islice(recordings(manifest), 60)]
    listener, heard, next_print = trained.listener(rate, beam=1), 0.0, 0.0
    print("an hour on a simulated clock: minutes, MB of the process")
    for samples in cycle(sounds):
        if heard >= 3600 * hours:
            break
        listener.push(samples)
        heard += len(samples) / rate
        if heard >= next_print:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            print(f"{heard / 60:5.0f}  {pages * resource.getpagesize() / 1e6:.1f}", flush=True)
            next_print += 600 * min(1.0, hours)


def exact(run: Path, manifest: Path, count: int) -> None:
    torch.set_num_threads(1)
    trained, rng, wrong, changed = regard.load(run), np.random.default_rng(0), 0, 0
    for at, (row, sound) in enumerate(islice(cycle(list(recordings(manifest))), count)):
        path = manifest.parent / row["audio_filepath"]
        (whole,) = trained.predict([path], streamed=True)
        with Sound(path, str(path)) as sound:
            rate = sound.head.rate
            samples = np.concatenate(list(sound.blocks()))
        borders = np.sort(rng.integers(0, len(samples), int(rng.integers(1, 200))))
        certain = ""
        for part in trained.listen(np.split(samples, borders), rate=rate):
            certain += part.text
            changed += not whole.text.startswith(certain.strip())
        wrong += certain.strip() != whole.text
        if (at + 1) % 100 == 0:
            print(f"{at + 1}: {wrong} differ, {changed} times something certain changed", flush=True)
    print(f"{count} recordings × random blocks: {wrong} differ from the whole under the same mask")


def damaged(run: Path, recording: Path, count: int) -> None:
    """Bytes are changed, cut out, doubled: an answer or one sentence, and nothing else."""
    torch.set_num_threads(1)
    trained, rng, kinds = (
        regard.load(run),
        np.random.default_rng(0),
        {"answered": 0, "refused": 0, "in several lines": 0},
    )
    whole = recording.read_bytes()
    for number in range(count):
        broken = bytearray(whole)
        for _ in range(int(rng.integers(1, 12))):
            at = int(rng.integers(0, min(len(broken), 200 if number % 2 else len(broken)) or 1))
            match number % 4:
                case 0 | 1:
                    broken[at : at + 1] = bytes([int(rng.integers(0, 256))])
                case 2:
                    del broken[at : at + int(rng.integers(1, 1000))]
                case _:
                    broken = broken[: max(1, at)]
        try:
            trained.predict([bytes(broken)])
            kinds["answered"] += 1
        except RegardError as refusal:
            kinds["refused" if "\n" not in str(refusal) else "in several lines"] += 1
    print(f"{count} damaged files of {recording.suffix}: {kinds}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["loss", "memory", "stream", "hour", "exact", "damaged"])
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--streams", type=int, default=20)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--at-once", type=int)
    given = parser.parse_args()
    if given.what in ("loss", "memory"):
        return loss() if given.what == "loss" else memory(given.at_once)
    if given.run is None or given.data is None:
        parser.error(f"{given.what} needs a run and a file")
    if given.what == "stream":
        return stream(given.run, given.data, given.streams)
    if given.what == "hour":
        return hour(given.run, given.data, given.hours)
    return (exact if given.what == "exact" else damaged)(given.run, given.data, given.count)


if __name__ == "__main__":
    main()
