# The two commands of the README are `make demo` and `make test`; both set everything up themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: install install-browser experiments demo test check check-js docs wheel format bench-speed bench-bottleneck bench-growth bench-quality bench-decode bench-serve same-as same-speed soak clean

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

# Tests draw pages in a real browser: Debian's chromium, with fonts for Chinese.
install-browser:
	@command -v chromium >/dev/null || \
	  { apt-get update -qq && apt-get install -y -qq chromium fonts-noto-cjk >/dev/null; } || \
	  echo "chromium is missing and could not be installed: the browser tests will fail" >&2

demo: install
	$(BIN)/regard demo

# One thread per worker and a worker per core: the same numbers everywhere, and the fastest.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses auto

test: install install-browser
	$(PYTEST)

check: install install-browser check-js
	$(BIN)/ruff format --check src tests bench docs examples
	$(BIN)/ruff check src tests bench docs examples
	$(BIN)/mypy
	$(PYTEST)

# The types of the pages' modules stand in their comments; TypeScript checks them and writes nothing.
TYPESCRIPT := 5.9.3
TSC := .node/typescript-$(TYPESCRIPT)/node_modules/.bin/tsc

check-js: $(TSC)
	$(TSC) --project jsconfig.json --noEmit

$(TSC):
	@command -v npm >/dev/null || \
	  { echo "make check-js needs Node.js and npm, which are not there: install them (on Debian: nodejs and npm)" >&2; exit 1; }
	npm install --loglevel=error --no-save --no-audit --no-fund --ignore-scripts \
	  --prefix .node/typescript-$(TYPESCRIPT) typescript@$(TYPESCRIPT)

format: install
	$(BIN)/ruff format src tests bench docs examples
	$(BIN)/ruff check --fix src tests bench docs examples

# The documentation as a site, in site/: search, both languages, the Python API; nothing is fetched when it is read.
# To look at it: python -m http.server --directory site
docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --clean

# What `pip install` takes: dist/regard-*.whl and the sdist.
wheel: install
	$(BIN)/hatchling build

# Long campaigns, for a quiet machine. DATA is a folder with Multi30k's lc_tok files (train.en.gz …).
bench-speed: install
	$(BIN)/python bench/train_speed.py --data $(DATA) --append bench/RESULTS.md

bench-bottleneck: install
	test -e multi30k || ln -s $(DATA) multi30k
	$(BIN)/python bench/bottleneck.py

# Every claim of the texts as an experiment, into docs/experiments; some ten minutes on two quiet cores.
EXPERIMENTS := parallelism long_distance price scale positions depth static
experiments: install
	for name in $(EXPERIMENTS); do OMP_NUM_THREADS=1 $(BIN)/regard experiment $$name --out docs/experiments || exit 1; done

bench-growth: install
	$(BIN)/python bench/growth.py --data $(DATA) --append bench/RESULTS.md

bench-quality: install
	$(BIN)/python bench/time_to_quality.py --data $(DATA) --append bench/RESULTS.md

# RUN is a trained Transformer translator, TEXTS a file of sentences it can read.
bench-decode: install
	$(BIN)/python bench/decode_speed.py --run $(RUN) --texts $(TEXTS) --append bench/RESULTS.md

bench-serve: install install-browser
	$(BIN)/python bench/serve_load.py

# Whether every number is the same as at the commit REV, to the bit. CASES is smoke, all, or names with commas between.
CASES ?= smoke
JOBS ?= 2
same-as: install
	$(BIN)/python bench/same_as.py $(REV) --cases '$(CASES)' --jobs $(JOBS)

# How fast it is beside the commit REV, in 9 pairs in turn; for a quiet machine, 20 minutes.
same-speed: install
	$(BIN)/python bench/same_speed.py $(REV) --append bench/RESULTS.md

# Hundreds of real kills, at random moments and at every named moment of a save; thousands of batches mixed at random;
# every kind of model as ONNX graphs.
soak: install
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python tests/kills.py
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python tests/mixes.py
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python tests/exports.py

clean:
	rm -rf $(VENV) .node .same-as dist build site .pytest_cache .mypy_cache .ruff_cache
