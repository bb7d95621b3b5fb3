"""regard's fine-tuning by a recipe, whole or so many steps by the clock; its last line tells how it went."""

import argparse
import json
from pathlib import Path

import regard
from regard.runs.prepare import prepare
from regard.training.events import Step

WARM_UP = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--steps", type=int, default=0, help="only so many, for their speed")
    options = parser.parse_args()
    recipe = regard.Recipe.parse(json.loads(options.recipe.read_text("utf-8")))
    steps: list[Step] = []
    with prepare(recipe) as run:
        for event in run.events():
            steps += [event] if isinstance(event, Step) else []
            if options.steps and len(steps) == options.steps:
                break
    measured = steps[WARM_UP:]
    answer = {
        "examples_per_s": sum(step.tokens for step in measured)
        / sum(step.waited + step.took for step in measured),
        "examples_per_step": sum(step.tokens for step in measured) / len(measured),
        "minutes": sum(step.waited + step.took for step in steps) / 60,
        "steps": len(steps),
        "epochs": steps[-1].epoch + 1,
        "scores": {} if options.steps else regard.load(recipe.run).metrics["scores"],
        "versions": {"regard": regard.__version__},
    }
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
