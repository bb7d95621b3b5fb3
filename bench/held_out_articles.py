"""Splits a SQuAD file by articles: every tenth is held out, so that no paragraph is on both sides.

python bench/held_out_articles.py ALL.json[.gz] TRAIN.json VALID.json
"""

import gzip
import json
import sys
from pathlib import Path

EVERY = 10


def main(whole: Path, train: Path, valid: Path) -> None:
    content = gzip.decompress(whole.read_bytes()) if whole.suffix == ".gz" else whole.read_bytes()
    told = json.loads(content)
    articles = told["data"]
    held_out = articles[EVERY - 1 :: EVERY]
    learnt = [article for article in articles if article not in held_out]
    for path, own in ((train, learnt), (valid, held_out)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(told | {"data": own}, ensure_ascii=False), "utf-8")
        n_questions = sum(len(part["qas"]) for article in own for part in article["paragraphs"])
        sys.stdout.write(f"{path}: {len(own)} articles, {n_questions:,} questions\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
