# The loop on the embedded policy, on a bare CPU: problems that it cannot learn from in, a policy that solves some out.
#
#   make -j2 -f pipelines/demo.mk                        RUN=runs/demo; the evaluation runs beside the loop
#   make -j2 -f pipelines/demo.mk STEPS=10 RUN=runs/longer
#   make -j2 -f pipelines/demo.mk BRANCHES=0 CHILDREN=0 RUN=runs/plain     without exploration and synthesis: GRPO
#
# A step: select -> rollout -> verify -> find-pivots -> resample -> verify -> train-step, and bucketize -> synthesize for
# the steps after it. Every arrow is a file under $(RUN) that can be looked at, kept and made again alone. Killed
# anywhere, the same command goes on where it was: finished files stay, unfinished rollouts are resumed.

SHELL := bash
.SHELLFLAGS := -o pipefail -ec
.DELETE_ON_ERROR:

RLVR ?= rlvr
PYTHON ?= python3
RUN ?= runs/demo
STEPS ?= 6
SEED ?= 0
PROBLEMS ?= tiny:trap tiny:deep
EVAL ?= tiny:eval
BASE ?= $(RUN)/base
BATCH ?= 64
SAMPLES ?= 16
# branches a pivot (0 leaves exploration out), and failed rollouts of a group that get a pivot (0: all)
BRANCHES ?= 8
PIVOTS ?= 1
# problems synthesized a step; 0 leaves synthesis out
CHILDREN ?= 48
MIX ?= $(if $(filter-out 0,$(CHILDREN)),frontier=0.5$(,)children=0.4$(,)problems=0.1,frontier=0.5$(,)problems=0.5)
LEARNING_RATE ?= 4e-4

, := ,
ROLLOUT := $(RLVR) rollout --max-tokens 200 --batch-size 512 --resume
TRAIN := $(RLVR) train-step --learning-rate $(LEARNING_RATE) --mini-batch 128 --micro-tokens 16384

HERE := $(dir $(lastword $(MAKEFILE_LIST)))
steps := $(shell seq -f %03g 0 $$(($(STEPS) - 1)))
FINAL := $(RUN)/step-$(lastword $(steps))
explores := $(filter-out 0,$(BRANCHES))
grows := $(filter-out 0,$(CHILDREN))

ifeq ($(steps),)
$(error STEPS is $(STEPS), expected at least 1)
endif
ifneq ($(words $(RUN) $(BASE)),2)
$(error RUN is '$(RUN)' and BASE '$(BASE)': make splits names at spaces, name directories without)
endif

# What the files of a run were made with. Without this, make would take old files for those of new settings.
settings := PROBLEMS=$(PROBLEMS) EVAL=$(EVAL) SEED=$(SEED) BATCH=$(BATCH) SAMPLES=$(SAMPLES) BRANCHES=$(BRANCHES) \
	PIVOTS=$(PIVOTS) CHILDREN=$(CHILDREN) MIX=$(MIX) LEARNING_RATE=$(LEARNING_RATE)
before := $(shell cat $(RUN)/settings 2> /dev/null)
ifneq ($(strip $(before)),)
ifneq ($(strip $(before)),$(strip $(settings)))
$(error $(RUN) was made with $(before); give these again, name another RUN, or remove it)
endif
endif
# make deletes what an interrupted recipe was making, but a policy is a directory that is put in place whole.
.PRECIOUS: $(steps:%=$(RUN)/step-%/policy/rlvr.json)

# A stage whose make was killed may still be at work: let it finish.
$(shell for work in $(BASE)/.*.partial $(RUN)/*/.*.partial $(RUN)/*/*/.*.partial; do \
	[ ! -e $$work ] || flock --timeout 300 $$work true; done 2> /dev/null)

.PHONY: demo steps
demo: $(RUN)/before/stats.jsonl $(FINAL)/after/stats.jsonl steps
	@$(PYTHON) $(HERE)demo_summary.py $(RUN) $(steps)

steps: $(foreach made,policy/rlvr.json stats.jsonl $(if $(grows),children.jsonl),$(steps:%=$(RUN)/step-%/$(made)))

# --- evaluation: the buckets are set on samples (base) apart from those that are reported (before, after) ---

$(BASE)/rollouts.jsonl:
	@mkdir -p $(@D)
	$(ROLLOUT) $(EVAL) --samples 32 --seed 1$(SEED)1 -o $@

$(RUN)/before/rollouts.jsonl:
	@mkdir -p $(@D)
	$(ROLLOUT) $(EVAL) --samples 16 --seed 1$(SEED)2 -o $@

$(FINAL)/after/rollouts.jsonl: $(FINAL)/policy/rlvr.json
	@mkdir -p $(@D)
	$(ROLLOUT) $(EVAL) --samples 16 --seed 1$(SEED)3 --model $(<D) -o $@

$(BASE)/scored.jsonl $(RUN)/before/scored.jsonl $(FINAL)/after/scored.jsonl: %/scored.jsonl: %/rollouts.jsonl
	$(RLVR) verify $< --resume -o $@

$(RUN)/before/stats.jsonl $(FINAL)/after/stats.jsonl: %/stats.jsonl: %/scored.jsonl $(BASE)/scored.jsonl
	$(RLVR) bucketize $< --base $(BASE)/scored.jsonl -o $@

# --- one step: $(1) its number, $(2) the number before (empty for the first), $(3) all before ---

define STEP
$(1)/problems.jsonl: $(if $(grows),$(3:%=%/children.jsonl)) $(3:%=%/stats.jsonl)
	@mkdir -p $$(@D)
	$(RLVR) select $(PROBLEMS) $(if $(grows),$(3:%=%/children.jsonl)) --step $(4) --batch $(BATCH) --seed $(SEED) \
		--mix $(MIX) $(3:%=--stats %/stats.jsonl) --metrics $$(@D)/metrics.jsonl -o $$@
	@echo '$(settings)' > $(RUN)/settings

$(1)/rollouts.jsonl: $(1)/problems.jsonl $(2:%=%/policy/rlvr.json)
	$(ROLLOUT) $$< --samples $(SAMPLES) --seed $(SEED) $(2:%=--model %/policy) --metrics $$(@D)/metrics.jsonl -o $$@

$(1)/scored.jsonl: $(1)/rollouts.jsonl
	$(RLVR) verify $$< --resume --metrics $$(@D)/metrics.jsonl -o $$@

$(1)/pivots.jsonl: $(1)/scored.jsonl $(3:%=%/branches-scored.jsonl)
	$(RLVR) find-pivots $$< --segments sentences --per-group $(PIVOTS) --seed $(SEED) $(2:%=--model %/policy) \
		$(3:%=--history %/branches-scored.jsonl) --metrics $$(@D)/branch-metrics.jsonl -o $$@

$(1)/branches.jsonl: $(1)/pivots.jsonl
	$(RLVR) resample $$< --samples $(BRANCHES) --seed $(SEED) $(2:%=--model %/policy) --batch-size 512 --resume \
		--metrics $$(@D)/branch-metrics.jsonl -o $$@

$(1)/branches-scored.jsonl: $(1)/branches.jsonl
	$(RLVR) verify $$< --resume --metrics $$(@D)/branch-metrics.jsonl -o $$@

$(1)/policy/rlvr.json: $(1)/scored.jsonl $(if $(explores),$(1)/branches-scored.jsonl)
	$(TRAIN) $$^ $(2:%=--model %/policy) --seed $(SEED) --metrics $(1)/metrics.jsonl -o $$(@D) > /dev/null

$(1)/stats.jsonl: $(1)/scored.jsonl
	$(RLVR) bucketize $$< --metrics $$(@D)/metrics.jsonl -o $$@ 2> $$(@D)/buckets.txt || { cat $$(@D)/buckets.txt >&2; exit 1; }

$(1)/children.jsonl: $(1)/stats.jsonl $(3:%=%/children.jsonl)
	$(RLVR) synthesize $$< --count $(CHILDREN) --seed $(SEED) $(PROBLEMS:%=--known %) $(3:%=--known %/children.jsonl) \
		$(EVAL:%=--avoid %) --metrics $$(@D)/metrics.jsonl -o $$@
endef

earlier :=
$(foreach step,$(steps),$(eval $(call STEP,$(RUN)/step-$(step),$(lastword $(earlier)),$(earlier),$(step)))$(eval \
	earlier += $(RUN)/step-$(step)))
