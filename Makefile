# Two commands do all the set-up: `make demo` and `make test`. Both make the environment in .venv first.
PYTHON := $(shell command -v python3.11 || command -v python3)
EXAMPLE ?= examples/buffer_reuse/broken.py
BIN := .venv/bin
WORKERS ?= 2
WHAT ?= twins

.PHONY: demo test coverage quality benchmark sweep env clean

# Exit code 1 is the demo's point: a fault was measured. Anything above it is a failure.
demo: .venv.stamp
	@$(BIN)/warp-debug-gradients diagnose $(EXAMPLE); code=$$?; \
	if [ $$code -gt 1 ]; then echo "exit code $$code"; exit $$code; fi

test: .venv.stamp
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/pytest -q -n $(WORKERS)

# Of what runs in the tests' own process: the server, the static patterns, the numerics. The probe runs in others.
coverage: .venv.stamp
	$(BIN)/pytest -q -n $(WORKERS) --cov=server/warp_debug_gradients --cov-report=term tests/numerics tests/patterns tests/server

quality: .venv.stamp
	PYTHONPATH=server $(BIN)/python tests/numerics/quality.py

benchmark: .venv.stamp
	$(BIN)/python tests/benchmarks/run.py

sweep: .venv.stamp
	$(BIN)/python tests/end_to_end/sweep.py $(WHAT) $(NAMES)

env: .venv.stamp

# The environment is made again when the package's description changes, and only then.
.venv.stamp: pyproject.toml
	@test -n "$(PYTHON)" || { echo "No python3 found: install Python 3.10 or later."; exit 1; }
	rm -rf .venv
	"$(PYTHON)" -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv .venv.stamp build dist
