"""The book: a page for each experiment in two languages, its picture, its figures, an index of verdicts."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard import durable
from regard.experiments.chart import draw
from regard.experiments.experiment import Experiment, Outcome

WORDS = {
    "en": {
        "claim": "The claim",
        "verdict": "Verdict",
        "setting": "The experiment",
        "limits": "What it does not show",
        "figures": "What decides",
        "head": "| part of the claim | measured | must be | |\n|---|---|---|---|",
        "yes": "yes",
        "no": "no",
        "again": "To run it again",
        "index": "The claims, put to the test",
        "about": "Texts about attention claim a good deal. Here each claim is an experiment that anyone "
        "can run again, and its "
        "verdict is computed from intervals over seeds: it holds where the whole interval of every part "
        "lies on the claimed side.",
        "rows": "| claim | verdict |\n|---|---|",
        "machine": "{seeds} seeds, {seconds:.0f} CPU-seconds, torch {torch}{thorough}.",
        "thorough": ", the thorough form",
    },
    "zh": {
        "claim": "论断",
        "verdict": "结论",
        "setting": "实验",
        "limits": "没有说明什么",
        "figures": "判断依据",
        "head": "| 论断的一部分 | 测得 | 应当 | |\n|---|---|---|---|",
        "yes": "是",
        "no": "否",
        "again": "重新运行",
        "index": "检验这些论断",
        "about": "讲注意力的文章常有各种论断。这里每个论断都是一个人人可以重做的实验，结论由多个随机种子"
        "的区间算出："
        "论断的每一部分，整个区间都落在所说的一侧，才算成立。",
        "rows": "| 论断 | 结论 |\n|---|---|",
        "machine": "{seeds} 个随机种子，{seconds:.0f} CPU 秒，torch {torch}{thorough}。",
        "thorough": "，完整版本",
    },
}


def write(
    folder: Path, experiment: Experiment, outcome: Outcome, facts: Mapping[str, Any], order: Sequence[str]
) -> list[Path]:
    """Write the pages, the picture and the figures of one experiment, and the index of all that are there."""
    (folder / "zh").mkdir(parents=True, exist_ok=True)
    files = {
        folder / f"{experiment.name}.svg": draw(outcome.charts),
        folder / f"{experiment.name}.md": _page("en", experiment, outcome, facts),
        folder / "zh" / f"{experiment.name}.md": _page("zh", experiment, outcome, facts),
        folder / f"{experiment.name}.json": json.dumps(
            {
                "format_version": 1,
                "title": experiment.title,
                "claim": experiment.claim,
                "verdict": outcome.verdict,
                **facts,
                "checks": [
                    {"says": check.says, "figure": check.figure, "bound": check.bound, "holds": check.holds}
                    for check in outcome.checks
                ],
                "series": {chart.title.en: chart.series for chart in outcome.charts},
            },
            ensure_ascii=False,
            indent=1,
        )
        + "\n",
    }
    for path, text in files.items():
        durable.write_file(path, text)
    return [*files, *write_index(folder, order)]


def write_index(folder: Path, order: Sequence[str]) -> list[Path]:
    """Write the index from the figures that lie in the folder."""
    entries = []
    for name in order:
        path = folder / f"{name}.json"
        if path.is_file():
            entries.append((name, durable.read_json(path)))
    written = []
    for place, language in enumerate(("en", "zh")):
        words = WORDS[language]
        rows = [
            f"| [{entry['title'][place]}]({name}.md): {entry['claim'][place]} "
            f"| **{entry['verdict'][place]}** |"
            for name, entry in entries
        ]
        other = (
            "English · [简体中文](zh/index.md)" if language == "en" else "[English](../index.md) · 简体中文"
        )
        text = "\n".join([f"# {words['index']}", "", other, "", words["about"], "", words["rows"], *rows, ""])
        path = folder / ("index.md" if language == "en" else "zh/index.md")
        durable.write_file(path, text)
        written.append(path)
    return written


def _page(language: str, experiment: Experiment, outcome: Outcome, facts: Mapping[str, Any]) -> str:
    words, place = WORDS[language], 0 if language == "en" else 1
    name, colon = experiment.name, (": ", "：")[place]
    links = (f"English · [简体中文](zh/{name}.md)", f"[English](../{name}.md) · 简体中文")[place]
    up = "" if language == "en" else "../"
    rows = [
        f"| {check.says[place]} | {check.figure} | {check.bound} | {words['yes' if check.holds else 'no']} |"
        for check in outcome.checks
    ]
    thorough = words["thorough"] if facts["thorough"] else ""
    command = f"regard experiment {name}{' --thorough' * bool(facts['thorough'])}"
    parts = [
        f"# {experiment.title[place]}",
        links,
        f"**{words['claim']}**{colon}{experiment.claim[place]}",
        f"**{words['verdict']}{colon}{outcome.verdict[place]}{('.', '。')[place]}**",
        f"![{experiment.title[place]}]({up}{name}.svg)",
        f"## {words['figures']}",
        "\n".join([words["head"], *rows]),
        *(remark[place] for remark in outcome.remarks),
        f"## {words['setting']}",
        experiment.setting[place],
        words["machine"].format(**{**facts, "thorough": thorough}),
        f"{words['again']}{colon}",
        f"```\n{command}\n```",
        f"## {words['limits']}",
        experiment.limits[place],
    ]
    return "\n\n".join(parts) + "\n"
