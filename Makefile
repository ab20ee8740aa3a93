PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# the environment is new and read by many processes: let Python keep what it compiled
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-faults lint format bench bench-detector bench-kill bench-pool bench-pool-scale bench-repeat bench-store bench-web docs soak lock clean venv

venv: $(STAMP)

$(STAMP): requirements/bootstrap.txt requirements/dev.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("perftrack needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/bootstrap.txt
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements/dev.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	touch $@

demo: venv  ## submit this repository's head against its parent on the CPU and print the report
	$(BIN)/perftrack submit elementwise softmax normalization -d cpu --quick --db perftrack-demo.db

test: venv  ## two processes: half of a test that starts Ray or a child is waiting
	$(BIN)/python -m pytest -n 2 --dist loadgroup

TIMES ?= 1

test-faults: venv  ## the tests in which something goes wrong, TIMES in a row; the first run that fails is the last
	@for number in $$(seq $(TIMES)); do \
	  began=$$(date +%s); \
	  $(BIN)/python -m pytest -n 2 --dist loadgroup -m fault || exit; \
	  echo "run $$number of $(TIMES): $$(($$(date +%s) - began)) s"; \
	done

lint: venv
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/basedpyright

format: venv
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: venv  ## perftrack's own hot paths
	$(BIN)/python -m pytest tests/bench --benchmark-enable --benchmark-only

bench-detector: venv  ## what the history detector finds and misses, seeds 11 to 14 (SEEDS="21 22" for others)
	$(BIN)/python tests/bench/detector_scores.py $(SEEDS)

bench-repeat: venv  ## how medians repeat over ROUNDS whole rounds of all suites, each a fresh process; goes on in FOLDER
	$(BIN)/python tests/bench/repeatability.py run $(or $(FOLDER),build/repeat) --rounds $(or $(ROUNDS),10)

bench-store: venv  ## the store at ROWS rows on SQLite and PostgreSQL, each figure beside its bound; FOLDER keeps what was filled
	$(BIN)/python tests/bench/store_scale.py --rows $(or $(ROWS),1000000) $(if $(FOLDER),--folder $(FOLDER))

bench-kill: venv  ## kill a writer at KILLS random moments, on SQLite and PostgreSQL, and see that nothing is lost
	$(BIN)/python tests/store/store_kills.py --kills $(or $(KILLS),200)

bench-web: venv  ## what the web pages take over 500 cases x 5,000 commits x 8 device classes; makes a file of some GB
	$(BIN)/python tests/bench/web_at_scale.py build build/web.db
	$(BIN)/python tests/bench/web_at_scale.py pages build/web.db
	$(BIN)/python tests/bench/web_at_scale.py browser build/web.db
	$(BIN)/python tests/bench/web_at_scale.py readers build/web.db

docs: venv  ## the site of docs/ and of every command, in build/docs; a warning is an error
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs build/docs

MINUTES ?= 30
FAULT_EVERY ?= 10

soak: venv  ## the pool under a random fault every FAULT_EVERY seconds: nothing lost, doubled or different
	$(BIN)/python tests/soak/soak.py $(MINUTES) $(FAULT_EVERY) $(SEED)

bench-pool: venv  ## overhead of the coordinator, and how soon the pool works again after a fault
	$(BIN)/python tests/bench/pool_overhead.py
	$(BIN)/python tests/bench/pool_host.py
	$(BIN)/python tests/bench/pool_recovery.py

bench-pool-scale: venv  ## what Ray costs the coordinator, real Cards with simulated children, and the model of 1,000 devices
	$(BIN)/python tests/bench/pool_scale.py calls
	$(BIN)/python tests/bench/pool_scale.py streams
	$(BIN)/python tests/bench/pool_scale.py real
	$(BIN)/python tests/bench/pool_scale.py model

lock: venv  ## renew requirements/*.txt from pyproject.toml
	$(BIN)/uv pip compile --quiet --upgrade pyproject.toml --extra cuda13x --extra cpu --extra postgresql --group dev \
	  --python-version 3.11 --universal --generate-hashes --no-emit-index-url --no-header --no-annotate -o requirements/dev.txt

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache
