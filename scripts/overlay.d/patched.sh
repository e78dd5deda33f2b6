# shellcheck shell=bash disable=SC2154,SC2034,SC2004 # the variables of scripts/overlay
# SPDX-License-Identifier: GPL-2.0
# What scripts/overlay has to know of files in which our lines stand among those of others.

# Prints the files that the given patches change.
patch_targets() {
	(($# == 0)) || sed -n 's|^+++ b/||p' "$@" | sort -u
}

# git_apply DIR ARGUMENT...: git apply in DIR, whatever repository may surround it.
git_apply() {
	local dir=$1
	shift
	env -u GIT_DIR -u GIT_WORK_TREE -u GIT_INDEX_FILE GIT_CEILING_DIRECTORIES="${dir%/*}" \
		git -C "$dir" apply "$@" 2>/dev/null
}

# unpatch DIR TARGET PATCH...: takes the patches off DIR/TARGET, all of them or none.
unpatch() {
	local dir=$1 target=$2 i
	shift 2
	cp -- "$dir/$target" "$work/before"
	for ((i = $#; i > 0; i--)); do
		grep -qxF "+++ b/$target" "${!i}" || continue
		git_apply "$dir" --reverse --include="$target" "${!i}" && continue
		cp -- "$work/before" "$dir/$target"
		return 0
	done
}

# Puts TARGET as it is without any patch of ours into $work/stock.
find_unpatched() {
	local target=$1 hash
	[[ -f $tree/$target ]] || die "$tree has no $target to be patched; nothing was changed"
	mkdir -p "$(dirname "$work/stock/$target")" "$(dirname "$work/new/$target")"
	hash=$(sha256sum <"$tree/$target")
	if [[ -v mine["$target ${hash%% *}"] && -f $state/stock/$target ]]; then
		cp -- "$state/stock/$target" "$work/stock/$target"
	else
		cp -- "$tree/$target" "$work/stock/$target"
		unpatch "$work/stock" "$target" "${applied[@]}"
	fi
}

# apply_patches TARGET: makes $work/new/TARGET from $work/stock/TARGET.
apply_patches() {
	local target=$1 patch
	cp -- "$work/stock/$target" "$work/new/$target"
	for patch in "${patches[@]}"; do
		grep -qxF "+++ b/$target" "$patch" || continue
		git_apply "$work/new" --include="$target" "$patch" && continue
		# Not applicable: then other hands must have put the lines there, and --remove takes
		# them out.
		git_apply "$work/stock" --reverse --include="$target" "$patch" ||
			die "patches/${patch##*/} fits $tree/$target neither forwards nor" \
				"backwards; nothing was changed"
	done
}

# Fills `want`, `from` and `stock` for each file that our patches change, or changed before.
want_patched() {
	local target
	mapfile -t patched < <(patch_targets "${applied[@]}" "${patches[@]}")
	((${#patched[@]})) || return 0
	command -v git >/dev/null || die "git, which applies the patches, is not installed"
	for target in "${patched[@]}"; do
		find_unpatched "$target"
		apply_patches "$target"
		from[$target]=$work/new/$target
	done
	hash_into stock "$work/stock" "${patched[@]}"
	hash_into want "$work/new" "${patched[@]}"
	hash_into have "$tree" "${patched[@]}"
	# All that such a file holds beside our lines stays in it, so no edit is lost.
	for target in "${patched[@]}"; do
		mine["$target ${have[$target]}"]=1
	done
}
