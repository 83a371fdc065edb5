# The plain loop on the embedded policy: select, rollout, verify, train-step, step after step, on a bare CPU.
#
#   make -j2 -f pipelines/demo.mk             RUN=runs/demo, 8 steps; the evaluation runs beside the loop
#   make -j2 -f pipelines/demo.mk STEPS=12 RUN=runs/longer
#
# Every arrow of the loop is a file under $(RUN) that can be looked at, kept and made again alone. Killed anywhere, the
# same command goes on where it was: finished files stay, an unfinished rollout is resumed batch by batch.

SHELL := bash
.SHELLFLAGS := -o pipefail -ec
.DELETE_ON_ERROR:
.SECONDARY:

RLVR ?= rlvr
PYTHON ?= python3
RUN ?= runs/demo
STEPS ?= 8
SEED ?= 0
PROBLEMS ?= tiny:learnable
EVAL ?= tiny:eval
BATCH ?= 64
SAMPLES ?= 16
ROLLOUT := $(RLVR) rollout --max-tokens 200 --batch-size 512 --resume
TRAIN := $(RLVR) train-step --learning-rate 4e-4 --mini-batch 128 --micro-tokens 16384

HERE := $(dir $(lastword $(MAKEFILE_LIST)))
steps := $(shell seq -f %03g 0 $$(($(STEPS) - 1)))
FINAL := $(RUN)/step-$(lastword $(steps))

# make deletes what an interrupted recipe was making, but a policy is a directory that is put in place whole.
.PRECIOUS: $(RUN)/step-%/policy/rlvr.json

# A stage whose make was killed may still be at work: let it finish.
$(shell for work in $(RUN)/*/.*.partial; do [ ! -e $$work ] || flock --timeout 300 $$work true; done 2> /dev/null)

.PHONY: demo
demo: $(RUN)/before/stats.jsonl $(FINAL)/after/stats.jsonl $(steps:%=$(RUN)/step-%/policy/rlvr.json)
	@$(PYTHON) $(HERE)demo_summary.py $(RUN) $(steps)

# --- evaluation: the buckets are set on samples (base) apart from those that are reported (before, after) ---

$(RUN)/base/rollouts.jsonl:
	@mkdir -p $(@D)
	$(ROLLOUT) $(EVAL) --samples 32 --seed 1$(SEED)1 -o $@

$(RUN)/before/rollouts.jsonl:
	@mkdir -p $(@D)
	$(ROLLOUT) $(EVAL) --samples 16 --seed 1$(SEED)2 -o $@

$(FINAL)/after/rollouts.jsonl: $(FINAL)/policy/rlvr.json
	@mkdir -p $(@D)
	$(ROLLOUT) $(EVAL) --samples 16 --seed 1$(SEED)3 --model $(<D) -o $@

$(RUN)/base/scored.jsonl $(RUN)/before/scored.jsonl $(FINAL)/after/scored.jsonl: %/scored.jsonl: %/rollouts.jsonl
	$(RLVR) verify $< --resume -o $@

$(RUN)/before/stats.jsonl $(FINAL)/after/stats.jsonl: %/stats.jsonl: %/scored.jsonl $(RUN)/base/scored.jsonl
	$(RLVR) bucketize $< --base $(RUN)/base/scored.jsonl -o $@

# --- one step: $(1) its number, $(2) the number before (empty for the first), $(3) all before ---

define STEP
$(RUN)/step-$(1)/problems.jsonl: $(3:%=$(RUN)/step-%/stats.jsonl)
	@mkdir -p $$(@D)
	$(RLVR) select $(PROBLEMS) --step $(1) --batch $(BATCH) --seed $(SEED) $(3:%=--stats $(RUN)/step-%/stats.jsonl) \
		--metrics $$(@D)/metrics.jsonl -o $$@

$(RUN)/step-$(1)/rollouts.jsonl: $(RUN)/step-$(1)/problems.jsonl $(2:%=$(RUN)/step-%/policy/rlvr.json)
	$(ROLLOUT) $$< --samples $(SAMPLES) --seed $(SEED) $(2:%=--model $(RUN)/step-%/policy) \
		--metrics $$(@D)/metrics.jsonl -o $$@

$(RUN)/step-$(1)/scored.jsonl: $(RUN)/step-$(1)/rollouts.jsonl
	$(RLVR) verify $$< --resume --metrics $$(@D)/metrics.jsonl -o $$@

$(RUN)/step-$(1)/stats.jsonl: $(RUN)/step-$(1)/scored.jsonl
	$(RLVR) bucketize $$< --metrics $$(@D)/metrics.jsonl -o $$@ 2> $$(@D)/buckets.txt || { cat $$(@D)/buckets.txt >&2; exit 1; }

$(RUN)/step-$(1)/policy/rlvr.json: $(RUN)/step-$(1)/scored.jsonl
	$(TRAIN) $$< $(2:%=--model $(RUN)/step-%/policy) --seed $(SEED) \
		--metrics $(RUN)/step-$(1)/metrics.jsonl -o $$(@D) > /dev/null
endef

before :=
$(foreach step,$(steps),$(eval $(call STEP,$(step),$(lastword $(before)),$(before)))$(eval before += $(step)))
