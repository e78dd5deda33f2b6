# shellcheck shell=bash disable=SC2154,SC2034,SC2004 # the variables of scripts/overlay
# SPDX-License-Identifier: GPL-2.0
# What scripts/overlay knows of the text of stock files.

# Fills `known` and `expected` from the list of hashes for the release in TREE.
read_base() {
	local hash path
	[[ -f $tree/Makefile && -f $tree/rust/kernel/lib.rs ]] ||
		die "$tree is not a Linux source tree with rust/ in it"
	release=$(sed -n 's/^VERSION = //p' "$tree/Makefile").$(sed -n 's/^PATCHLEVEL = //p' \
		"$tree/Makefile")
	list=$repo/scripts/overlay.d/$release.hashes
	[[ -f $list ]] || die "$tree is Linux $release, whose files are not known (there is no" \
		"$list)"
	while IFS=' ' read -r hash path; do
		[[ $hash && $hash != '#'* ]] || continue
		known["$path $hash"]=1
		expected[$path]+=${expected[$path]+ or }$hash
	done <"$list"
}

# Fills `stock` for each listed file that is replaced: what the tree holds, else what was kept
# aside, if it is known.
find_stock() {
	local path patch_target
	local -A replaced=() now=() kept=()
	for path in "${!expected[@]}"; do
		replaced[$path]=1
	done
	# What a patched file held before is found by taking the patch off.
	while IFS= read -r patch_target; do
		unset "replaced[$patch_target]"
	done < <(patch_targets "$repo"/patches/*.patch)
	((${#replaced[@]})) || return 0
	hash_into now "$tree" "${!replaced[@]}"
	[[ ! -d $state/stock ]] || hash_into kept "$state/stock" "${!replaced[@]}"
	for path in "${!replaced[@]}"; do
		stock[$path]=${expected[$path]%% *}
		if [[ -v known["$path ${now[$path]-}"] ]]; then
			stock[$path]=${now[$path]}
		elif [[ -v known["$path ${kept[$path]-}"] ]]; then
			stock[$path]=${kept[$path]}
		fi
	done
}

# not_stock PATH FOUND: says that PATH holds something else than a known text.
not_stock() {
	printf 'overlay: %s: expected %s, found %s\n' "$1" "${expected[$1]:-absent}" "$2" >&2
}

# Dies, naming every such file, unless TREE is as it was published wherever this repository replaces
# or patches it.
verify() {
	local path found refused=0
	local -A paths=() now=()
	[[ ! -d $state ]] || die "$tree has this repository laid over it; --verify is for a stock" \
		"tree"
	for path in "${!expected[@]}" "${!want[@]}" "${patched[@]}"; do
		paths[$path]=1
	done
	hash_into now "$tree" "${!paths[@]}"
	while IFS= read -r path; do
		found=${now[$path]:-absent}
		[[ $found != "${expected[$path]:-absent}" && ! -v known["$path $found"] ]] ||
			continue
		not_stock "$path" "$found"
		refused=1
	done < <(printf '%s\n' "${!paths[@]}" | sort)
	((refused == 0)) || die "the files above are not as rnull knows them in Linux $release" \
		"(${list#"$repo"/})"
}
