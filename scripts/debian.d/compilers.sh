# shellcheck shell=bash disable=SC2034,SC2154 # for scripts in which $here is scripts/
# SPDX-License-Identifier: GPL-2.0
# Compares the compilers of the build root with those that built a kernel.

# The C compiler that Debian's kernels are built with.
compiler=x86_64-linux-gnu-gcc-14

# config_string FILE SYMBOL: the string that SYMBOL is set to.
config_string() {
	sed -n "s/^$2=\"\(.*\)\"$/\1/p" "$1"
}

# compare_compilers CONFIG: sets `differs` to what is wrong with the build root for that kernel, or
# to nothing. The metadata of crates fits only the same rustc; of gcc, the release has to be the
# same.
compare_compilers() {
	local want have
	differs=''
	want=$(config_string "$1" CONFIG_RUSTC_VERSION_TEXT)
	have=$("$here/in-root" -- rustc --version) ||
		die "the build root has no rustc; remove $RNULL_CACHE/roots"
	if [[ $want != "$have" ]]; then
		differs="was built by '$want', but the build root has '$have'"
		return
	fi
	want=$(config_string "$1" CONFIG_CC_VERSION_TEXT)
	have=$("$here/in-root" -- "$compiler" --version) ||
		die "the build root has no $compiler; remove $RNULL_CACHE/roots"
	have=${have%%$'\n'*}
	[[ ${want##* } == "${have##* }" ]] ||
		differs="was built by '$want', but the build root has '$have'"
}
