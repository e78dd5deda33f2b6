# SPDX-License-Identifier: GPL-2.0
"""Faults that are planted in a copy of our files: the check of the list must find them all."""
import pathlib
import re
import shutil
import subprocess
import sys

from bench import check

HERE = pathlib.Path(__file__).resolve().parent
PLANTED_RUST = '''
// bindings::only_a_comment(1)
const _: &str = "bindings::only_a_string(1)";
/// # Safety
///
/// As `blk_mq_tagset_busy_iter()` says, and `BlockMajor`.
unsafe fn planted(_: *mut bindings::bio_set) {
    unsafe { bindings::no_such_function(bindings::percpu_ref_tryget(bindings::hrtimer_restart_HRTIMER_NORESTART)) };
    unsafe { bindings::blk_mq_quiesce_queue(bindings::hrtimer_restart::HRTIMER_MAYBE) };
}
'''
PLANTED_C = '''
/* As no_such_comment() does. */
__rust_helper void rust_helper_planted(struct no_such_struct *s)
{
	no_such_call(NO_SUCH_CONSTANT);
	blk_mq_unquiesce_queue("only_a_string()");
}
'''
PLANTED = {
    "bindings::no_such_function, which the tree": "rust/kernel/block/major.rs uses",
    "bindings::no_such_function, which is": "rust/kernel/block/major.rs calls",
    "bindings::percpu_ref_tryget, which C has inline only": "rust/kernel/block/major.rs uses",
    "bindings::hrtimer_restart_HRTIMER_NORESTART, which the tree": "rust/kernel/block/major.rs uses",
    "bindings::hrtimer_restart::HRTIMER_MAYBE, which the tree": "rust/kernel/block/major.rs uses",
    "bindings::blk_mq_quiesce_queue, which is": "rust/kernel/block/major.rs calls",
    "bindings::bio_set, which is": "rust/kernel/block/major.rs uses",
    "blk_mq_tagset_busy_iter in a comment": "rust/kernel/block/major.rs relies on",
    "no_such_comment in a comment": "rust/helpers/blk.c relies on",
    "no_such_struct, which no header": "rust/helpers/blk.c uses",
    "no_such_call, which no header": "rust/helpers/blk.c uses",
    "no_such_call, which is": "rust/helpers/blk.c calls",
    "NO_SUCH_CONSTANT, which no header": "rust/helpers/blk.c uses",
    "blk_mq_unquiesce_queue, which is": "rust/helpers/blk.c calls",
    "never_used is exempt but": "",
    "put_disk is exempt although": "",
    "rust/kernel/gone.rs is no file": "block/genhd.c: put_disk:",
}


def honesty(bench):
    """What the check of the list itself finds: just what is planted."""
    def run(tree):
        command = [sys.executable, HERE / "check", tree, bench.repo]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        return said.returncode, [line for line in said.stdout.splitlines() if not line.startswith("ok ")], said.stderr

    before = bench.list.read_text()
    tree = bench.base.parent / "links"
    tree.mkdir()
    for path in bench.stock.iterdir():
        if path.name != "Makefile":
            (tree / path.name).symlink_to(path)
    shutil.copyfile(bench.stock / "Makefile", tree / "Makefile")
    bench.list.write_text(before.replace('\nhash = "', '\nhash = "0', 1))
    status, lines, said = run(tree)
    check("check: a hash that does not fit", status == 1 and len(lines) == 1 and lines[0].startswith(
        "not ok contracts: hashes - these differ: block/"), f"{lines} {said}")
    makefile = (tree / "Makefile").read_text()
    (tree / "Makefile").write_text(re.sub(r"(?m)^SUBLEVEL = .*", "SUBLEVEL = 99", makefile))
    status, lines, said = run(tree)
    check("check: a hash of another stable version", status == 0 and len(lines) == 1 and lines[0].startswith(
        "skip contracts: hashes - "), f"{lines} {said}")

    text = before.replace("[exempt]\n", '[exempt]\nnever_used = "No."\nput_disk = "No."\n', 1)
    bench.list.write_text(re.sub(r'(genhd.c".put_disk\]\n.*\n)', r'\1"rust/kernel/gone.rs" = "No."\n', text, count=1))
    for file, planted in (("rust/kernel/block/major.rs", PLANTED_RUST), ("rust/helpers/blk.c", PLANTED_C)):
        path = bench.repo / file
        path.write_text(path.read_text() + planted)
    status, lines, said = run(bench.stock)
    check("check: faults fail", status == 1, f"status {status} {said}")
    for fault, where in PLANTED.items():
        found = [line for line in lines if line.startswith(f"not ok contracts: {where} {fault}".replace(":  ", ": "))]
        check(f"check: {where} {fault}".replace("  ", " "), len(found) == 1, f"reported {len(found)} times")
    check("check: no false alarm", len(lines) == len(PLANTED), f"{len(lines)} faults of {len(PLANTED)}: {lines}")
    bench.list.write_text(before)
