# The claims, first look: does exploration pay on `tiny:deep`, and synthesis on `tiny:trap`, at equal generated tokens?
#
#   make -j2 -f pipelines/experiments/first-look.mk         3 seeds of 4 arms of 600 thousand tokens; about 50 minutes
#   make -j2 -f pipelines/experiments/first-look.mk SEEDS=0 TOKENS=100000 RUNS=runs/glance
#   make -j2 -f pipelines/experiments/first-look.mk demo                      the demo itself on 3 seeds
#
# Each run is pipelines/demo.mk with other settings, step after step until the tokens are spent: all that were sampled
# for training count, those of failed and of dropped rollouts too. The tables go to $(RUNS)/first-look.md and
# $(RUNS)/demo.md; what was measured for this repository is first-look.md beside this file.

SHELL := bash
.SHELLFLAGS := -o pipefail -ec
.DELETE_ON_ERROR:

RLVR ?= rlvr
PYTHON ?= python3
RUNS ?= runs/first-look
SEEDS ?= 0 1 2
TOKENS ?= 600000
EVAL ?= tiny:eval tiny:deep-eval

HERE := $(dir $(lastword $(MAKEFILE_LIST)))
LOOP = $(MAKE) --no-print-directory -f $(HERE)../demo.mk RLVR="$(RLVR)" PYTHON="$(PYTHON)" EVAL="$(EVAL)" \
	BASE=$(RUNS)/base

# A step of deep-explore has fewer problems and a pivot in every failed rollout, so that it samples about as many tokens
# as one of deep-grpo: the arms take about as many steps.
deep-grpo := PROBLEMS=tiny:deep BRANCHES=0 CHILDREN=0 SAMPLES=8
deep-explore := PROBLEMS=tiny:deep BRANCHES=8 CHILDREN=0 SAMPLES=8 BATCH=16 PIVOTS=0
trap-grpo := PROBLEMS=tiny:trap BRANCHES=0 CHILDREN=0 SAMPLES=8
trap-synthesis := PROBLEMS=tiny:trap BRANCHES=0 CHILDREN=32 SAMPLES=8
ARMS := deep-grpo deep-explore trap-grpo trap-synthesis

runs := $(foreach arm,$(ARMS),$(SEEDS:%=$(arm)/%))

.PHONY: first-look
first-look: $(runs:%=$(RUNS)/%/summary.json)
	@$(PYTHON) $(HERE)first_look.py table $(RUNS) $(runs) | tee $(RUNS)/first-look.md

# the buckets are those of one base run, so that all arms and seeds speak of the same problems
$(RUNS)/base/scored.jsonl:
	+@$(LOOP) RUN=$(RUNS) $@

define ARM
$(RUNS)/$(1)/summary.json: $(RUNS)/base/scored.jsonl
	+@for steps in {1..99}; do \
		$$(LOOP) RUN=$$(@D) SEED=$(notdir $(1)) $($(patsubst %/,%,$(dir $(1)))) STEPS=$$$$steps steps; \
		left=$$$$($$(PYTHON) $$(HERE)first_look.py left $$(@D) $$(TOKENS) $$$$steps); [ $$$$left -gt 0 ] || break; \
	done; $$(LOOP) RUN=$$(@D) SEED=$(notdir $(1)) $($(patsubst %/,%,$(dir $(1)))) STEPS=$$$$steps demo > $$(@D)/page.txt
endef
$(foreach run,$(runs),$(eval $(call ARM,$(run))))

# --- the demo, seed by seed: with its own settings and buckets ---

.PHONY: demo
demo: $(SEEDS:%=$(RUNS)/demo/%/summary.json)
	@$(PYTHON) $(HERE)first_look.py demo $^ | tee $(RUNS)/demo.md

$(SEEDS:%=$(RUNS)/demo/%/summary.json):
	@mkdir -p $(@D)
	+@$(MAKE) --no-print-directory -f $(HERE)../demo.mk RLVR="$(RLVR)" PYTHON="$(PYTHON)" \
		RUN=$(@D) SEED=$(notdir $(@D)) demo > $(@D)/page.txt
