// SPDX-License-Identifier: GPL-2.0

//! Bytes of a request are used only while they are mapped.

use kernel::{
    block::bio::{FromDisk, MappedBytes, Segments},
    folio::Folio,
};

pub fn returned(memory: &mut Segments<'_, FromDisk>) -> Option<usize> {
    #[cfg(bad)]
    let bytes = memory.with_mapped(9, |bytes| bytes.split_off(3))??; //~ ERROR lifetime may not live long enough
    #[cfg(not(bad))]
    let bytes = memory.with_mapped(9, |bytes| bytes.split_off(3).map(|part| part.len()))??;
    #[cfg(bad)]
    let bytes = bytes.len();
    Some(bytes)
}

pub fn kept(memory: &mut Segments<'_, FromDisk>) {
    let mut kept: Option<MappedBytes<'_, FromDisk>> = None;
    memory.with_mapped(9, |bytes| {
        #[cfg(bad)]
        {
            kept = bytes.split_off(3); //~ ERROR borrowed data escapes outside of closure
        }
        bytes.zero();
    });
    kept.take();
}

pub fn swapped(one: &mut Segments<'_, FromDisk>, two: &mut Segments<'_, FromDisk>, folio: &Folio) {
    one.with_mapped(9, |outer| {
        two.with_mapped(9, |inner| {
            #[cfg(bad)]
            core::mem::swap(outer, inner); //~ ERROR borrowed data escapes outside of closure //~ ERROR borrowed data escapes outside of closure
            let _ = inner.copy_from_folio(folio, 0);
        });
        let _ = outer.copy_from_folio(folio, 0);
    });
}

pub fn read_only(memory: &mut Segments<'_, kernel::block::bio::ToDisk>, folio: &Folio) {
    memory.with_mapped(9, |bytes| {
        #[cfg(bad)]
        bytes.zero(); //~ ERROR E0599: no method named `zero` found
        let _ = bytes.copy_to_folio(folio, 0);
    });
}
