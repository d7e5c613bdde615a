# Two commands: make audit, make test. make help lists the rest.
PYTHON ?= python3
# Before the export, which defines what has no value yet as empty, and ?= then keeps that.
K8S ?= v1.36.3
# Of several clusters that are up, the one that K8S names where somebody gave it.
ONE = $(if $(filter-out file,$(origin K8S)),--k8s "$$K8S")
MASTERS ?= 3
WORKERS ?= 1
VMS ?= 0
LAYOUT ?= kubeadm
# What is given on the command line reaches the programs by the environment, so
# that a path with spaces or quotes arrives as it was written.
export INVENTORY ARGS CASES K8S MASTERS WORKERS VMS LAYOUT INCIDENT HOST
# What the caller's shell holds for other projects is not ours.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP VIRTUAL_ENV MAKEFLAGS
.DEFAULT_GOAL := help
.PHONY: audit docs test unit test-full bench faults lab-up lab-status lab-down lab-break lab-heal clean help

audit: ## Judge the bundled evidence, or INVENTORY=<file>; ARGS='-e k=v' are for ansible-playbook
	@$(PYTHON) -m tests.gate.audit

test: ## Install whatever is missing and pass every test, a real cluster included
	@$(PYTHON) -m tests.gate

unit: ## Before a commit: unit tests that start no playbook, and lint of the changed files
	@$(PYTHON) -m tests.gate --quick

test-full: ## The whole matrix with the components' own timers; CASES=<glob> picks
	@$(PYTHON) -m tests.gate --full

docs: ## The docs site, in tests/output/site/html
	@$(PYTHON) -m tests.docs.site

bench: ## What an audit costs, as ratios to ping and to fact gathering
	@$(PYTHON) -m tests.gate.venvs test tests.bench

faults: ## Every kind of step killed and refused at everything that it does, an API that fails in every way; resumable
	@$(PYTHON) -m tests.gate.venvs test tests.fault_injection

lab-up: ## A real cluster in podman: K8S=v1.36.3 MASTERS=3 WORKERS=1 [VMS=1] [LAYOUT=kubespray]
	@$(PYTHON) -m tests.lab up --k8s "$$K8S" --masters "$$MASTERS" --workers "$$WORKERS" --vms "$$VMS" --layout "$$LAYOUT"

lab-status: ## What runs
	@$(PYTHON) -m tests.lab status

lab-down: ## Take it away
	@$(PYTHON) -m tests.lab down $(ONE)

lab-break: ## Break it the way it was once broken: INCIDENT=two-leaders [HOST=m2] [K8S=v1.36.3]
	@$(PYTHON) -m tests.lab break $(ONE) --incident "$$INCIDENT" $${HOST:+--host "$$HOST"}

lab-heal: ## Undo what lab-break did
	@$(PYTHON) -m tests.lab heal $(ONE)

clean: ## Remove what the commands above made in this folder (not a running lab)
	@rm -rf .venv tests/output .cache .ansible .hypothesis .pytest_cache

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
