# Everything a newcomer needs is `make demo` and `make test`; `make help` lists the rest.
SHELL := /bin/bash
PYTHON ?= /usr/bin/python3
VENV := .venv
BIN := $(VENV)/bin
SLURM_PACKAGES := slurmctld slurmd slurm-client munge slurm-wlm-basic-plugins python3-venv
DRIVER_PACKAGES := gcc libc6-dev
# Tests on real daemons mostly wait, the others keep a core busy each.
WAITING := --numprocesses 7 --dist loadgroup --no-loadscope-reorder
COMPUTING := --numprocesses 3 --dist loadgroup --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help install packages demo test quick thorough end-to-end lint types layers format render decisions bench sandbox clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

install: packages $(VENV)/.installed ## Install Debian's Slurm, munge and gcc where missing, and the package into .venv

packages:
	@packaging/install-debian-packages $(SLURM_PACKAGES) $(DRIVER_PACKAGES)

$(VENV)/.installed: pyproject.toml | packages
	@umask 022 && { test -x $(BIN)/python3 || $(PYTHON) -m venv $(VENV); }
	@umask 022 && $(BIN)/python3 -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

demo: install ## Run the main story on a real Slurm cluster in a box: a job waits, nodes come, it runs, they go
	@$(BIN)/slurm-hooks sandbox demo

test: install lint types layers ## Run all checks and tests (`make thorough` walks on from there)
	@$(BIN)/python3 -m pytest -m 'not slow' --numprocesses 2
	@$(BIN)/python3 -m pytest -m 'slow and not thorough' tests/end_to_end $(WAITING)
	@$(BIN)/python3 -m pytest -m 'slow and not thorough' --ignore tests/end_to_end $(COMPUTING)

quick: install ## Run the tests that start no daemons, about a minute
	@$(BIN)/python3 -m pytest -m 'not slow' --numprocesses 2

thorough: install ## Walk the proofs for all Slurm versions, second deaths and all surroundings, half an hour
	@$(BIN)/python3 -m pytest -m thorough --numprocesses 2

end-to-end: install ## Run the tests on real Slurm daemons alone
	@$(BIN)/python3 -m pytest tests/end_to_end $(WAITING)

lint: install ## Check style
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: install ## Check types
	@$(BIN)/mypy

layers: install ## Check who imports whom
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

format: install ## Rewrite the code in the project's style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

render: install ## Write etc/ anew from the example cluster
	@$(BIN)/slurm-hooks render etc/slurm-hooks/cluster_config.json --output etc --force

decisions: install ## Write docs/decisions.md anew from the decision table
	@$(BIN)/python3 -m slurm_hooks.reconcile.decision_docs > docs/decisions.md

bench: install ## Measure hooks and passes side by side and print ratios
	@$(BIN)/python3 -m tests.bench

sandbox: install ## Start a cluster in a box and leave it running
	@$(BIN)/slurm-hooks sandbox up

clean: ## Remove the virtual environment and caches
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
