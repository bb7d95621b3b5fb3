"""The report: one self-contained HTML file with curves, samples, mishaps and use of time."""

import json
import re
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from regard import durable
from regard.baselines.standing import Standing
from regard.runs.mistakes import Mistake, Mistakes
from regard.runs.report.curves import Curve, draw
from regard.runs.report.history import History
from regard.text.sanitize import printable

NAME = "report.html"
KEY_OF_MISTAKES = "in colour what was answered, in bold what is right, and how sure the model was"
CHINESE = {
    "loss": "损失",
    "learning rate": "学习率",
    "gradient norm": "梯度范数",
    "throughput": "吞吐量",
    "where the time went": "时间去向",
    "samples": "验证样例",
    "worst mistakes": "最有把握的错误",
    KEY_OF_MISTAKES: "彩色为模型的答案，粗体为正确答案，数字为模型的把握",
    "mishaps": "异常",
    "recipe": "配方",
    "training": "训练",
    "validation": "验证",
    "learning": "学习",
    "waiting for data": "等待数据",
    "validating": "验证",
    "saving": "保存",
    "other": "其他",
    "baselines": "基线",
    "expected": "参考答案",
    "step": "步",
    "none": "无",
}


def write_report(run: Path, path: Path | None = None) -> Path:
    """Write the report of the current state of a run, atomically."""
    path = path or run / NAME
    durable.write_file(path, page(History.read(run)))
    return path


def page(history: History) -> str:
    template = files("regard.runs.report").joinpath("page.html").read_text("utf-8")
    metric = history.metric
    charts = [
        ("loss", [
            Curve("training", history.series("loss"), "faint"),
            Curve("validation", history.validated("loss"), "main"),
        ]),
        *([(metric, [Curve(metric, history.validated(metric), "main")])] if metric else []),
        ("learning rate", [Curve("learning rate", history.series("lr"), "main")]),
        ("gradient norm", [Curve("gradient norm", history.series("grad_norm"), "main")]),
        ("throughput", [Curve(f"{history.unit}/s", history.throughput, "main")]),
    ]  # fmt: skip
    parts = {
        "title": _plain(history.run.name),
        "facts": _facts(history),
        "tiles": _tiles(history),
        "baselines": _baselines(history),
        "charts": "".join(_chart(name, curves, history) for name, curves in charts),
        "spent": _spent(history),
        "samples": _samples(history),
        "mistakes": _mistakes(history),
        "mishaps": _mishaps(history),
        "recipe": _plain(json.dumps(history.recipe, ensure_ascii=False, indent=1)),
    }
    return re.sub(r"{{(\w+)}}", lambda match: parts[match[1]], template)


def _plain(text: str) -> str:
    """Text of the user, escaped."""
    return escape(printable(text) if "\n" not in text else text)


def _bilingual(text: str) -> str:
    """A word of the page in both languages, of which it shows one."""
    return f'<span class="en">{escape(text)}</span><span class="zh">{escape(CHINESE.get(text, text))}</span>'


def _facts(history: History) -> str:
    task, model = (history.recipe.get(part, {}).get("kind", "?") for part in ("task", "model"))
    minutes = history.seconds / 60
    facts = f"{task} · {model} · {history.step:,} steps · {minutes:.1f} min · {history.state}"
    return f"<p>{_plain(facts)}</p>"


def _tiles(history: History) -> str:
    """The scores of the finished model, or the best so far."""
    scores = history.model.get("scores") or {}
    if not scores and history.metric:
        scores = {"valid": {history.metric: history.best}}
    intervals = history.model.get("intervals") or {}
    tiles = [
        f'<div class="tile"><b>{value:.2f}</b><span>{_plain(f"{name} · {split}")}</span>'
        f"{_within(intervals.get(split, {}).get(name))}</div>"
        for split, metrics in scores.items()
        for name, value in metrics.items()
        if isinstance(value, int | float)
    ]
    return "".join(tiles)


def _baselines(history: History) -> str:
    """Scores of the baselines and the verdict on the model; empty if none was measured."""
    try:
        standing = Standing.model_validate(history.model.get("baselines") or {})
    except ValidationError:
        return ""
    rows = "".join(
        f"<tr><td>{_plain(name)}</td>"
        f"<td>{_plain(_scored(scores, standing.intervals.get(name, {})))}</td></tr>"
        for name, scores in standing.scores.items()
    )
    notes = "".join(f"<p>{_plain(note)}</p>" for note in standing.notes)
    verdict = f"<p><b>{_plain(standing.verdict)}</b></p>" if standing.verdict else ""
    if not rows and not notes:
        return ""
    title = f"<h2>{_bilingual('baselines')} · {_plain(standing.split)}</h2>"
    return f'{title}<table class="wide">{rows}</table>{verdict}{notes}'


def _scored(scores: Mapping[str, float | None], intervals: Mapping[str, tuple[float, float]]) -> str:
    return "  ".join(
        f"{name} {'∞' if value is None else f'{value:.2f}'}"
        + (f" [{intervals[name][0]:.2f}, {intervals[name][1]:.2f}]" if name in intervals else "")
        for name, value in scores.items()
    )


def _within(interval: Any) -> str:
    """The 95 % interval of a score, for a tile."""
    match interval:
        case (int() | float() as low, int() | float() as high):
            return f"<span>95 %: {low:.2f} – {high:.2f}</span>"
    return ""


def _chart(name: str, curves: list[Curve], history: History) -> str:
    drawn = [curve for curve in curves if curve.points]
    legend = "".join(
        f'<i class="{curve.kind}"></i>{_bilingual(curve.name)}' for curve in drawn if len(curves) > 1
    )
    unit = f" ({_plain(history.unit)}/s)" if name == "throughput" else ""
    return f"<figure><figcaption>{_bilingual(name)}{unit} {legend}</figcaption>{draw(curves, name)}</figure>"


def _spent(history: History) -> str:
    total = sum(history.spent.values()) or 1.0
    bars = "".join(
        f'<i class="part{number}" style="width:{100 * seconds / total:.2f}%"></i>'
        for number, seconds in enumerate(history.spent.values())
    )
    names = "".join(
        f'<li><i class="part{number}"></i>{_bilingual(name)} '
        f"{100 * seconds / total:.1f} % · {seconds:,.0f} s</li>"
        for number, (name, seconds) in enumerate(history.spent.items())
    )
    return f'<div class="bar">{bars}</div><ul class="legend">{names}</ul>'


def _samples(history: History) -> str:
    blocks = []
    for sample, answers in history.samples:
        rows = "".join(f"<tr><td>{step:,}</td><td>{_plain(answer)}</td></tr>" for step, answer in answers)
        expected = f"<tr><td>{_bilingual('expected')}</td><td>{_plain(sample['expected'])}</td></tr>"
        blocks.append(f"<h3>{_plain(sample['input'])}</h3><table>{rows}{expected}</table>")
    return "".join(blocks) or f"<p>{_bilingual('none')}</p>"


def _mistakes(history: History) -> str:
    """The wrong answers that the model was most sure of: a contact sheet of pictures, a table of texts."""
    mistakes = Mistakes.read(history.run)
    if mistakes is None or not mistakes.worst:
        return ""
    counted = f"{mistakes.split}: {mistakes.n_wrong:,} / {mistakes.n_examples:,}"
    title = f"<h2>{_bilingual('worst mistakes')} · {_plain(counted)}</h2>"
    title += f"<p>{_bilingual(KEY_OF_MISTAKES)}</p>"
    if all(one.picture for one in mistakes.worst):
        return f'{title}<div class="sheet">{"".join(map(_print, mistakes.worst))}</div>'
    rows = "".join(
        f"<tr><td>{one.probability:.3f}</td><td>{_answered(one)}</td><td>{_plain(one.input)}</td></tr>"
        for one in mistakes.worst
    )
    return f'{title}<table class="mistakes">{rows}</table>'


def _print(one: Mistake) -> str:
    """A picture with what it was taken for, and what it is."""
    source = f"data:image/png;base64,{one.picture}"
    caption = f"<figcaption>{_answered(one)}<span>{one.probability:.3f}</span></figcaption>"
    return f'<figure title="{_plain(one.where)}"><img alt="" src="{source}">{caption}</figure>'


def _answered(one: Mistake) -> str:
    return f"<s>{_plain(one.answer)}</s> <b>{_plain(one.expected)}</b>"


def _mishaps(history: History) -> str:
    rows = "".join(f"<tr><td>{step:,}</td><td>{_plain(text)}</td></tr>" for step, text in history.mishaps)
    return f"<table>{rows}</table>" if rows else f"<p>{_bilingual('none')}</p>"
