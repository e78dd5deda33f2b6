# SPDX-License-Identifier: GPL-2.0
# Turns what a suite says on its standard output into KTAP, as tools/testing/kunit of the kernel
# reads it. Lines that are no result become diagnostics.
#
# usage: awk -v suite=NAME -v status=EXIT-STATUS -v limit=SECONDS -f ktap.awk

# result(KIND, WORD, TEXT, DIRECTIVE): TEXT is NAME or NAME - why.
function result(kind, word, text, directive,    at) {
	gsub(/# */, "#", text)
	at = kind == "pass" ? 0 : index(text, " - ")
	if (at) {
		directive = " # " directive (directive ? " " : "") substr(text, at + 3)
		text = substr(text, 1, at - 1)
	}
	gsub(/#/, "", text)
	# The parser takes a check with the name of the suite for the result of the suite.
	if (text == suite)
		text = "suite " text
	lines[++count] = word " " ++tests " " text directive
	found[kind]++
}

{ gsub(/\r/, "") }
/^ok / { result("pass", "ok", substr($0, 4)); next }
/^not ok / { result("fail", "not ok", substr($0, 8)); next }
/^skip / { result("skip", "ok", substr($0, 6), "SKIP"); next }
{ lines[++count] = "#   " $0 }

END {
	# What is wrong with the run itself is a failed check, too.
	if (status == 124 || status == 137)
		why = "stopped after its time limit of " limit " s"
	else if (!tests)
		why = "no check reported anything (exit status " status ")"
	else if (status && !found["fail"])
		why = "exit status " status " without a failed check"
	if (why)
		result("fail", "not ok", suite " - " why)
	print "KTAP version 1\n# Subtest: " suite "\n1.." tests
	for (i = 1; i <= count; i++)
		print lines[i]
	printf "# Totals: pass:%d fail:%d skip:%d seconds:%d stated:%s\n",
		found["pass"], found["fail"], found["skip"], seconds, stated
}
