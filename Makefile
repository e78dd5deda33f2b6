# SPDX-License-Identifier: GPL-2.0
# The commands of this repository, each of them a script.
#
# Kbuild is what the kernel's own build system reads here; it never reads this file.

.DEFAULT_GOAL := help
.PHONY: help run test fuzz soak bench blktests htmldocs rustdoc kernel debug-kernel modules deb series clean-cache

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

run: ## verified I/O in Debian's kernel: null_blk and rnull, then nvme and rnvme side by side (TREE=1: overlaid kernel)
	@scripts/run $(if $(TREE),--tree)

test: ## the tests, with a summary (FULL=1: also those that take hours)
	@tools/testing/rnull/run

soak: ## queues, power, rmdir, unload, CPUs, NVMe controllers: each changed 1000 times under I/O; an hour of lies to rnvme (SEED=1); then SECONDS=7200 of misuse on each of three
	@ROUNDS=1000 RNULL_TIMEOUT_SCALE=40 tools/testing/rnull/run soak full-soak full-build-debug-up
	@status=0; tools/testing/rnull/nvme-rounds 1000 || status=1; \
		tools/testing/rnull/hostile 3600 "$(or $(SEED),1)" --no-kmemleak || status=1; \
		for guest in "--cpus 2" "--cpus 8" "--kernel debug+up --cpus 1"; do \
		tools/testing/rnull/adversary "$(or $(SECONDS),7200)" next $$guest || status=1; done; exit $$status

fuzz: ## null_blk beside rnull at random (SECONDS=600, SEED=1, or REPLAY=file with the commands of a failure)
	@tools/testing/rnull/parity/fuzz "$(or $(SECONDS),600)" "$(or $(SEED),1)" $(REPLAY)

bench: ## what an I/O costs in instructions, null_blk beside rnull (NATIVE=1: in time, in User Mode Linux)
	@scripts/bench $(if $(NATIVE),--native)

blktests: ## the user's checkout of blktests in guests: BLKTESTS=DIR [GROUPS="block ..."] [MODE=drop-in|native|c] [TIMES=N]
	@tools/testing/rnull/blktests/run --groups "$(GROUPS)" --modes "$(MODE)" --kernel "$(KERNEL)" --times "$(TIMES)" \
		"$(BLKTESTS)"

htmldocs: ## the manual as HTML; a warning about one of our pages is an error
	@tools/testing/rnull/docs/run htmldocs

rustdoc: ## the reference of the crates as HTML; a warning about one of our files is an error
	@tools/testing/rnull/docs/run rustdoc

kernel: ## the overlaid kernel, configuration `fast`
	@scripts/build-kernel fast

debug-kernel: ## the overlaid kernel, configuration `debug`
	@scripts/build-kernel debug

modules: ## rnull and rnvme as modules for the kernel that is running, if that is a 7.3 of Debian's
	@scripts/host-module

deb: ## the Debian package rnull-dkms, which builds the modules for the kernels that are installed
	@scripts/deb

series: ## the work as series of patches to be mailed, in the directory OUT
	@scripts/series "$(OUT)"

clean-cache: ## remove all that was downloaded and built
	@scripts/clean-cache
