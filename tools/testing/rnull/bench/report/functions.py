# SPDX-License-Identifier: GPL-2.0
"""The function that an address is in, with the part of the work that the function does."""

import bisect
import re
from dataclasses import dataclass
from functools import cache

DRIVER, ABSTRACTION, BLOCK, SYNC, ALLOCATION, COPY, REST = CLASSES = ("driver", "abstraction",
                                                                      "block", "lock/tree/timer",
                                                                      "allocation", "copy", "rest")
DRIVER_MODULES = {"null_blk", "rnull_mod", "brd", "nvme", "nvme_core", "rnvme_mod"}
DRIVER_CRATES = {"rnull", "rnull_mod", "rnvme", "rnvme_mod"}
# What the abstraction has in place of a function of C that is in another class.
RUST_TREES = {"kernel::xarray::walk", "kernel::xarray::look_up"}

# Functions of the kernel written in C, by name; the first rule that fits decides.
RULES = [(name, re.compile(pattern, re.VERBOSE)) for name, pattern in [
    (ABSTRACTION, "rust_helper_"
     ), (ALLOCATION, "_?_?(rcu_free_sheaf|refill_objects|build_detached_freelist|refill_sheaf)"),
    (COPY,
     """_?_?(memcpy|memmove|memset|copy_page|clear_page) | memset_orig | memcpy_orig | clear_huge |
              rep_(movs|stos) | _?copy_(to|from)_(user|iter) | (raw_)?memzero |
              clear_(user_)?page"""),
    (SYNC, """_?_?(raw_)?(spin|read|write|queued)_?(spin|read|write)?_?(un|try)?lock | _?_?mutex |
              _?_?(down|up)_(read|write) | _?_?lock_text_start | __sched_text_start_never | rwsem |
              native_queued_spin | _?_?xas?_ | radix_tree | idr_ | ida_ |
              rb_(insert|erase|next|first) | __rb_ | timerqueue | llist | plist | _?_?(s?rcu)_ |
              call_rcu | kfree_rcu | kvfree_call | synchronize_rcu | _?_?hrtimer | _?_?mod_timer |
              add_timer | del_timer | timer_ | ktime | clockevents | lapic | tick_program |
              read_(tsc|hpet) | _?_?sysvec_apic_timer | asm_sysvec_apic_timer | native_apic |
              tmigr |
              run_timer | __run_timer | enqueue_hrtimer"""),
    (ALLOCATION, """_?_?(slab|kmem_cache|kmalloc|kfree|kzalloc|krealloc|kvmalloc|mempool) |
              _?_?(alloc_pages|free_pages) | _?_?_?(slab_alloc|slab_free) |
              _?_?(alloc|free)_(frozen|unref|pages|from_pcs|to_pcs|to_partial) |
              get_(from_)?(partial|page_from) | new_slab | free_slab | biovec_slab | __rmqueue |
              rmqueue | prep_new_page | free_(frozen|unref|one|tail) | __free_ | ___slab |
              zone_watermark | __mod_zone_page | policy_node | zone_statistics | kvfree"""),
    (BLOCK, """_?_?(blk|bio|bdev|blkdev|submit_bio|elv|dd_|kyber|sbitmap|disk_|part_|bvec|block_) |
              _?_?(wbt_|rq_|should_fail_bio|bd_|I_BDEV|flush_busy|req_)"""),
]]

CRATE = re.compile(r"C(?:s[0-9a-zA-Z]*_)?(\d+)_?")
# A reference back, or the length of an identifier.
WORD = re.compile(r"B[0-9a-zA-Z]*_|(?:s[0-9a-zA-Z]*_)?(\d+)_?")


@dataclass(frozen=True)
class Symbol:
    """A function."""

    name: str
    module: str  # "" for the kernel itself

    @property
    def crate(self):
        """The Rust crate whose source the function is from, or "" for C."""
        if not self.name.startswith("_R"):
            return ""
        found = CRATE.search(self.name)
        return self.name[found.end():found.end() + int(found[1])] if found else ""

    @property
    def readable(self):
        """The name to show: of mangled Rust names the path, without the types in it."""
        if not self.name.startswith("_R"):
            return self.name
        words, at = [], CRATE.search(self.name).start() + 1
        while at < len(self.name):
            word = WORD.match(self.name, at)
            at = word.end() if word else at + 1
            if word and word[1]:
                words.append(self.name[at:at + int(word[1])])
                at += int(word[1])
        return "::".join(dict.fromkeys(word for word in words if word))


@cache
def class_of(symbol):
    """The class of a function."""
    if symbol.readable in RUST_TREES:
        return SYNC
    if symbol.crate:
        return DRIVER if symbol.crate in DRIVER_CRATES else ABSTRACTION
    if symbol.module:
        return DRIVER if symbol.module in DRIVER_MODULES else REST
    return next((name for name, pattern in RULES if pattern.match(symbol.name)), REST)


class SymbolTable:
    """Functions by address."""

    def __init__(self, kernel_map, module_symbols):
        """Of the kernel's System.map, and of (address, name, module) of the loaded modules."""
        found, self.text = {}, None
        with open(kernel_map, encoding="ascii") as lines:
            for address, kind, name in (line.split() for line in lines):
                if name == "_text":
                    self.text = int(address, 16)
                elif kind in "tTwW" and not name.startswith(("__pfx_", "__cfi_")):
                    found.setdefault(int(address, 16), Symbol(name, ""))
        for address, name, module in module_symbols:
            if module and not name.startswith(("__pfx_", "__cfi_")):
                found.setdefault(address, Symbol(name, module))
        self.addresses = sorted(found)
        self.found = found

    def at(self, address):
        """The function that an instruction is in."""
        index = bisect.bisect_right(self.addresses, address) - 1
        return self.found[self.addresses[index]] if index >= 0 else Symbol("?", "")
