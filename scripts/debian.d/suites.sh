# shellcheck shell=bash disable=SC2034 # for the scripts that read this, after scripts/lib.sh
# SPDX-License-Identifier: GPL-2.0
# Which suites of the Debian archive are searched.

read -ra suites <<<"${RNULL_SUITES:-trixie-backports forky sid}"
RNULL_KEYRING=${RNULL_KEYRING:-}
# The package lists that belong together; $lists_read is touched when all of them have been read.
lists_key=$(hash_text <<<"${suites[*]} $RNULL_MIRROR $RNULL_KEYRING")
lists_read=$RNULL_CACHE/apt/read-$lists_key

# older FILE MINUTES: is FILE missing, or was it last touched longer ago than that?
older() {
	[[ ! -e $1 || -n $(find "$1" -mmin "+$2") ]]
}
