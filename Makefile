# Short names for what `./agentbox.sh test` runs, and for the generated files. `make help` lists them.
PY = .venv/bin/python

.PHONY: help test lint types imports unit client schema docs golden bench format

help:  ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

test:  ## everything, as CI runs it
	./agentbox.sh test --yes

lint:  ## ruff
	$(PY) -m ruff check . && $(PY) -m ruff format --check .

types:  ## mypy, strict
	$(PY) -m mypy agentbox tools testkit tests/support

imports:  ## the layers of .importlinter
	.venv/bin/lint-imports

unit:  ## the quick tests
	./agentbox.sh test lint unit

format:  ## rewrite the sources in the house's form
	$(PY) -m ruff format . && $(PY) -m ruff check --fix .

schema:  ## schema/agentbox.schema.json and tests/rules/full.toml
	$(PY) -m agentbox.manifest.schema.generator
	$(PY) tools/full_manifest.py

client:  ## the generated parts of the client
	$(PY) tools/request_lines.py
	$(PY) tools/client_operations.py
	$(PY) tools/sync_client.py

docs: schema  ## the generated reference pages
	$(PY) tools/write_pages.py

golden:  ## the golden files: what is rendered, and what others read
	$(PY) tests/golden/goldens.py
	$(PY) tools/freeze.py

bench:  ## every measured claim; raw numbers to bench/results
	./agentbox.sh bench all
