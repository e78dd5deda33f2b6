# SPDX-License-Identifier: GPL-2.0
# Turns the names of null_blk, where they stand in tests, into those of rnull; for sed -E.
s#/sys/kernel/config/nullb\b#/sys/kernel/config/rnull#g
s#/sys/module/null_blk\b#/sys/module/rnull_mod#g
s#\b(_have_driver|_have_module|_have_module_param|_module_file_exists|_patient_rmmod|modprobe|modprobe -q)([ ]+)null_blk\b#\1\2rnull_mod#g
s#(=~ |\+=\()null_blk\b#\1rnull_mod#g
s#\bnullb([0-9])#rnullb\1#g
s#/nullb\*#/rnullb*#g
