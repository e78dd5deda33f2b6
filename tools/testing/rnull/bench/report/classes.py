# SPDX-License-Identifier: GPL-2.0
"""Which part of the work a function belongs to."""

import re
from functools import cache

DRIVER, ABSTRACTION, BLOCK, SYNC, ALLOCATION, COPY, REST = CLASSES = (
    "driver",
    "abstraction",
    "block",
    "lock/tree/timer",
    "allocation",
    "copy",
    "rest",
)

DRIVER_MODULES = {"null_blk", "rnull_mod", "brd"}
DRIVER_CRATES = {"rnull", "rnull_mod"}

# Functions of the kernel written in C, by name; the first rule that fits decides.
RULES = [
    (ABSTRACTION, r"rust_helper_"),
    (ALLOCATION, r"_?_?(rcu_free_sheaf|refill_objects|build_detached_freelist|refill_sheaf)"),
    (COPY, r"_?_?(memcpy|memmove|memset|copy_page|clear_page)|memset_orig|memcpy_orig|clear_huge|rep_(movs|stos)"),
    (COPY, r"_?copy_(to|from)_(user|iter)|(raw_)?memzero|clear_(user_)?page"),
    (SYNC, r"_?_?(raw_)?(spin|read|write|queued)_?(spin|read|write)?_?(un|try)?lock|_?_?mutex|_?_?(down|up)_(read|write)"),
    (SYNC, r"_?_?lock_text_start|__sched_text_start_never|rwsem|native_queued_spin"),
    (SYNC, r"_?_?xas?_|radix_tree|idr_|ida_|rb_(insert|erase|next|first)|__rb_|timerqueue|llist|plist"),
    (SYNC, r"_?_?(s?rcu)_|call_rcu|kfree_rcu|kvfree_call|synchronize_rcu"),
    (SYNC, r"_?_?hrtimer|_?_?mod_timer|add_timer|del_timer|timer_|ktime|clockevents|lapic|tick_program|read_(tsc|hpet)"),
    (SYNC, r"_?_?sysvec_apic_timer|asm_sysvec_apic_timer|native_apic|tmigr|run_timer|__run_timer|enqueue_hrtimer"),
    (ALLOCATION, r"_?_?(slab|kmem_cache|kmalloc|kfree|kzalloc|krealloc|kvmalloc|mempool|alloc_pages|free_pages)"),
    (ALLOCATION, r"_?_?_?(slab_alloc|slab_free)|_?_?(alloc|free)_(frozen|unref|pages|from_pcs|to_pcs|to_partial)"),
    (ALLOCATION, r"get_(from_)?(partial|page_from)|new_slab|free_slab|biovec_slab|__rmqueue|rmqueue|prep_new_page|"
                 r"free_(frozen|unref|one|tail)|__free_|___slab|zone_watermark|__mod_zone_page|policy_node|"
                 r"zone_statistics|kvfree"),
    (BLOCK, r"_?_?(blk|bio|bdev|blkdev|submit_bio|elv|dd_|kyber|sbitmap|disk_|part_|bvec|block_|wbt_|rq_|"
            r"should_fail_bio|bd_|I_BDEV|flush_busy|req_)"),
]
COMPILED = [(name, re.compile(f"(?:{pattern})")) for name, pattern in RULES]


@cache
def class_of(symbol):
    """The class of a function."""
    if symbol.crate:
        return DRIVER if symbol.crate in DRIVER_CRATES else ABSTRACTION
    if symbol.module:
        return DRIVER if symbol.module in DRIVER_MODULES else REST
    return next((name for name, pattern in COMPILED if pattern.match(symbol.name)), REST)
