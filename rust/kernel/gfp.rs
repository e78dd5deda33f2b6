// SPDX-License-Identifier: GPL-2.0

//! The bits of allocation flags, as functions of C take them.
//!
//! C header: [`include/linux/gfp_types.h`](srctree/include/linux/gfp_types.h)

use crate::{
    alloc::Flags,
    bindings, //
};

/// The bits of all flags that there are constants for.
///
/// Safe code gets others by `!`, among them combinations that are a bug to the page allocator.
#[cfg(not(MODULE))]
const KNOWN: bindings::gfp_t = bindings::__GFP_ZERO
    | bindings::__GFP_HIGHMEM
    | bindings::__GFP_NOWARN
    | bindings::GFP_ATOMIC
    | bindings::GFP_KERNEL
    | bindings::GFP_KERNEL_ACCOUNT
    | bindings::GFP_NOWAIT;

/// Returns the bits of `flags`, for an allocation of pages.
#[cfg(not(MODULE))]
#[inline(always)]
pub(crate) fn bits(flags: Flags) -> bindings::gfp_t {
    flags.as_raw() & KNOWN
}

/// Returns the bits of `flags`, for an allocation of pages.
///
/// An external module cannot ask for them, so it asks for each bit that there is a constant for.
#[cfg(MODULE)]
#[inline(always)]
pub(crate) fn bits(flags: Flags) -> bindings::gfp_t {
    use crate::alloc::flags;

    let mut bits = 0;
    for (flag, value) in [
        (flags::__GFP_ZERO, bindings::__GFP_ZERO),
        (flags::__GFP_HIGHMEM, bindings::__GFP_HIGHMEM),
        (flags::__GFP_NOWARN, bindings::__GFP_NOWARN),
        (flags::GFP_ATOMIC, bindings::GFP_ATOMIC),
        (flags::GFP_KERNEL, bindings::GFP_KERNEL),
        (flags::GFP_KERNEL_ACCOUNT, bindings::GFP_KERNEL_ACCOUNT),
        (flags::GFP_NOWAIT, bindings::GFP_NOWAIT),
    ] {
        if flags.contains(flag) {
            bits |= value;
        }
    }
    bits
}

/// Returns the bits of `flags`, for an allocation from a slab cache that initialises its objects.
///
/// Such a cache has neither high memory, nor objects of zeros.
#[inline(always)]
pub(crate) fn slab_bits(flags: Flags) -> bindings::gfp_t {
    bits(flags) & !(bindings::__GFP_ZERO | bindings::__GFP_HIGHMEM)
}

#[cfg(all(CONFIG_RUST_KUNIT_TESTS, not(MODULE)))]
#[macros::kunit_tests(rust_gfp)]
mod tests {
    use super::*;
    use crate::alloc::flags::*;

    #[test]
    fn only_known_flags_have_bits() {
        for flag in [GFP_ATOMIC, GFP_KERNEL, GFP_KERNEL_ACCOUNT, GFP_NOWAIT] {
            assert_eq!(bits(flag), flag.as_raw());
            assert_eq!(bits(!flag) & flag.as_raw(), 0);
            assert_eq!(slab_bits(flag | __GFP_ZERO | __GFP_HIGHMEM), flag.as_raw());
        }
        assert_eq!(
            bits(__GFP_ZERO | __GFP_NOWARN),
            (__GFP_ZERO | __GFP_NOWARN).as_raw()
        );
        assert_eq!(bits(!GFP_KERNEL) & !KNOWN, 0);
    }
}
