# SPDX-License-Identifier: GPL-2.0
# Copies of a Debian system in which the test of the package works.
# shellcheck shell=bash disable=SC2034,SC2154 # variables for, and of, the script that reads this

# On the file system of the roots, whose files the copies share. Copies of a run that was killed
# are removed.
for work in "$RNULL_CACHE"/package/run-*; do
	kill -0 "${work##*-}" 2>/dev/null || rm -rf "$work"
done
work=$RNULL_CACHE/package/run-$$
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
small=

# system NAME: its directory; a path is one already.
system() {
	case $1 in
	/*) echo "$1" ;;
	*) echo "$work/$1" ;;
	esac
}

# copy FROM TO: all that is only replaced is shared; what may be written to is copied.
copy() {
	local from to part
	from=$(system "$1") to=$(system "$2")
	mkdir -p "$to"
	for part in "$from"/*; do
		case ${part##*/} in
		etc | var) cp -a "$part" "$to/" ;;
		*) cp -al "$part" "$to/" ;;
		esac
	done
	mkdir -p "$to/debs"
}

# run_in SYSTEM COMMAND...: prints the exit status; what it says is in `said`. With `small`, the
# package's directory for what it keeps is on a file system of so many megabytes.
run_in() {
	local name status=0
	local options=(--chdir /)
	name=$(system "$1")
	shift
	if [ "$small" ]; then
		mkdir -p "$name/var/lib/rnull-dkms"
		options+=(--tmpfs "$small" /var/lib/rnull-dkms)
	fi
	"$top/scripts/in-root" --system "$name" --bind "$work" /mnt "${options[@]}" \
		--env INITRD=No --env DEBIAN_FRONTEND=noninteractive -- "$@" >"$work/said" 2>&1 ||
			status=$?
	{
		echo "--- in ${name##*/}, status $status: $*"
		cat "$work/said"
	} >&2
	echo "$status"
}

# install SYSTEM [OPTION] DEB...
install() {
	local name=$1 file names=()
	shift
	for file; do
		case $file in
		-*) names+=("$file") ;;
		*)
			[ "$file" -ef "$work/$(basename "$file")" ] ||
				cp -l "$file" "$work/" 2>/dev/null || cp "$file" "$work/"
			names+=("/mnt/$(basename "$file")")
			;;
		esac
	done
	run_in "$name" dpkg --force-confnew -i "${names[@]}"
}

# install_headers SYSTEM RELEASE: the headers of another flavour, with the link that its own
# linux-base would have.
install_headers() {
	local file modules
	file=$("$top/scripts/debian" "$version" "linux-headers-$2")
	modules=$(system "$1")/usr/lib/modules/$2
	mkdir -p "$modules"
	ln -s "/usr/src/linux-headers-$2" "$modules/build"
	install "$1" --force-depends "$file"
}

said() {
	grep -q -e "$1" "$work/said" || {
		grep -e rnull-dkms: "$work/said" || echo "it says nothing of that"
		return 1
	}
}

unsaid() {
	! grep -e "$1" "$work/said"
}

absent() {
	! grep -e "$1" "$2"
}

# unconfigured SYSTEM: the packages that are not as they should be.
unconfigured() {
	dpkg-query --admindir="$(system "$1")/var/lib/dpkg" -W \
		-f '${db:Status-Abbrev} ${Package}\n' |
		grep -v -e '^ii ' -e '^rc ' -e "^.n "
}

# replace SYSTEM FILE COMMAND: a script instead of that program, until it is restored.
replace() {
	local file
	file=$(system "$1")/$2
	[ ! -e "$file" ] || [ -e "$file.real" ] || mv "$file" "$file.real"
	rm -f "$file"
	printf '#!/bin/sh\n%s\n' "$3" >"$file"
	chmod +x "$file"
}

# edit SYSTEM FILE SED: writes another file, since other systems share the one that is there.
edit() {
	sed -i "$3" "$(system "$1")/$2"
}

restore() {
	local file
	file=$(system "$1")/$2
	rm "$file"
	mv "$file.real" "$file"
}

# listing SYSTEM: all that packages or their scripts put there. dkms has a key that it makes when it
# first signs.
listing() {
	(cd "$(system "$1")" && find . -path ./var/log -prune -o -path ./debs -prune -o -print) |
		grep -v -e '^./var/lib/dkms/mok\.' -e '^./var/lib/dpkg/' \
			-e '^./var/cache/debconf/.*-old$' | sort
}

# Sets the kernel's names, fetches its packages.
fetch() {
	local directory abi name
	directory=$("$top/scripts/debian-kernel") || {
		[ $? != 3 ] || {
			skip "the package is installed" \
				"no image was built by the compilers of the build root"
			finish
		}
		not_ok "Debian's kernel is there" "scripts/debian-kernel failed"
		finish
	}
	version=$(basename "$directory") release=$(cat "$directory/release")
	abi=${release%-amd64} rt_release=$abi-rt-amd64
	updates=lib/modules/$release/updates
	own_null_blk=lib/modules/$release/kernel/drivers/block/null_blk/null_blk.ko.xz
	kernel_debs=()
	for name in "linux-base-$release" "linux-binary-$release" "linux-modules-$release" \
		"linux-image-$release" \
		"linux-kbuild-$abi" "linux-headers-$abi-common" "linux-headers-$release"; do
		kernel_debs+=("$("$top/scripts/debian" "$version" "$name")")
	done
	headers_deb=${kernel_debs[-1]}
	source_deb=$("$top/scripts/debian" "$version" "linux-source-$RNULL_BASE")
	metadata=$RNULL_CACHE/package/metadata-$(
		{
			echo "$version $release $("$top/scripts/build-root" install)"
			cat "$top/debian/sbin/rnull-dkms"
		} | hash_text
	)
}

# fake_source VERSION: a package of the kernel's source without the source.
fake_source() {
	local tree=$work/fake-source
	mkdir -p "$tree/DEBIAN" "$tree/usr/src"
	printf '%s\n' "Package: linux-source-$RNULL_BASE" "Version: $1" "Architecture: all" \
		"Maintainer: test <test@localhost>" \
		"Description: no source" >"$tree/DEBIAN/control"
	: >"$tree/usr/src/linux-source-$RNULL_BASE.tar.xz"
	dpkg-deb --build --root-owner-group "$tree" "$work/fake-source.deb" >&2
	echo "$work/fake-source.deb"
}

has_metadata() {
	[ -s "$(system "$1")/var/lib/rnull-dkms/$release/metadata.tar.xz" ]
}

# keep_metadata SYSTEM: for other systems, other runs; of earlier states, the last ones stay.
# Several checkouts may use the cache at once, and each finds there what is complete.
keep_metadata() {
	has_metadata "$1" || return 0
	(
		flock 9
		rm -rf "$metadata.new"
		cp -a "$(system "$1")/var/lib/rnull-dkms/$release" "$metadata.new"
		touch "$metadata.new"
		rm -rf "$metadata"
		mv -T "$metadata.new" "$metadata"
		find "$RNULL_CACHE/package" -maxdepth 1 -name 'metadata-*' -printf '%T@ %p\n' |
			sort -rn | tail -n +4 |
			cut -d' ' -f2- | xargs -r -d '\n' rm -rf
	) 9>"$RNULL_CACHE/package/lock"
}

# give_metadata SYSTEM [RELEASE]: what an earlier build kept, if there was one; also for a kernel
# that is not booted.
give_metadata() {
	local to
	to=$(system "$1")/var/lib/rnull-dkms/${2:-$release}
	(
		flock --shared 9
		[ -e "$metadata" ] || exit 0
		rm -rf "$to"
		mkdir -p "$(dirname "$to")"
		cp -a "$metadata" "$to"
	) 9>"$RNULL_CACHE/package/lock"
}

# has_module SYSTEM NAME [RELEASE]: dkms compresses it if the kernel's own modules are there, which
# are compressed.
has_module() {
	local file
	for file in "$(system "$1")/lib/modules/${3:-$release}/updates/dkms/$2".ko*; do
		[ -s "$file" ] && return
	done
	return 1
}

# built SYSTEM NAME: the same; if not, prints the end of the build's log.
built() {
	has_module "$@" && return
	tail -n 15 "$(system "$1")/var/lib/rnull-dkms/$release.log"
	return 1
}

# installed_as SYSTEM NAME: dkms, files, modprobe agree.
installed_as() {
	check "$1: dkms has built and installed $2" built "$1" "$2"
	run_in "$1" dkms status >/dev/null
	check "$1: dkms says so" said "^rnull/.*, $release, x86_64: installed"
	check "$1: modprobe finds $2 first" grep -q "^updates/dkms/$2.ko.xz:" \
		"$(system "$1")/lib/modules/$release/modules.dep"
	equal "$1: all packages are configured" "$(unconfigured "$1")" ""
}

# module_of SYSTEM NAME: as a guest takes it.
module_of() {
	mkdir -p "$work/modules"
	has_module "$1" "$2" || return 0
	"$top/scripts/in-root" --bind "$work" /mnt -- xz -dc "/mnt/$1/$updates/dkms/$2.ko.xz" \
		>"$work/modules/$2.ko"
}

in_build_root() {
	"$top/scripts/in-root" --bind "$work/modules" /mnt -- "$@"
}

# Makes source-first a drop-in once more.
reconfigure_drop_in() {
	sed -i 's/^DROP_IN=.*/DROP_IN=yes/' "$(system source-first)/etc/default/rnull-dkms"
	[ "$(run_in source-first dpkg-reconfigure -f noninteractive rnull-dkms)" = 0 ] &&
		has_module source-first null_blk
}
