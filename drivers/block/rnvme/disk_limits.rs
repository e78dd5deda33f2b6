// SPDX-License-Identifier: GPL-2.0

//! The limits of the disk of a namespace.

use super::{
    command::MAX_DEALLOCATE_RANGES,
    identify::{
        controller::Controller,
        namespace::{
            self,
            AtomicWrites, //
        },
        nvm_limits::NvmLimits, //
    },
    prp,
    registers::Version,
    sgl, //
};
use kernel::{
    block::{
        limits::QueueLimits,
        Sectors, //
    },
    dma::bound::DmaDevice, //
};

/// What a controller says about itself, which may change when it is reset.
#[derive(Clone, Copy)]
pub(crate) struct Abilities {
    pub(crate) identity: Controller,
    pub(crate) limits: NvmLimits,
    pub(crate) version: Version,
}

/// The longest discard: C counts its bytes in 32 bits.
const MAX_DISCARD: Sectors = Sectors(u32::MAX as u64 >> 9);

/// Returns the limits of the disk of a namespace, which depend on what the controller can do.
pub(crate) fn disk_limits(
    abilities: &Abilities,
    found: &namespace::Namespace,
    dma: &DmaDevice,
) -> QueueLimits {
    let Abilities {
        identity, limits, ..
    } = abilities;
    let block = 1u32 << found.block_shift;
    let mapped = dma.max_mapping_size().min(dma.opt_mapping_size());
    let max_transfer = u64::from(identity.max_transfer.min(prp::MAX_BYTES)).min(mapped as u64);
    let most = max_transfer;
    let max_transfer = Sectors::from_bytes(max_transfer);
    let write_zeroes = limits
        .write_zeroes
        .map(|bytes| Sectors::from_bytes(bytes.into()));
    let discard = limits
        .deallocate
        .map(|blocks| Sectors(u64::from(blocks) << (found.block_shift - 9)));
    // A command has 16 bits for the number of blocks.
    let max_write_zeroes = Sectors(1 << (16 + found.block_shift - 9));
    let optional = identity.optional;
    let only_if = |has: bool, sectors| if has { sectors } else { Sectors::ZERO };
    // What is written at least, without a read.
    let preferred = found
        .preferred_write
        .filter(|bytes| bytes.is_power_of_two() && u64::from(*bytes) <= most)
        .map_or(block, |bytes| bytes.max(block));
    let atomic = found.atomic_writes;
    let atomic_unit = atomic.map_or(0, AtomicWrites::max_power_of_two);
    QueueLimits {
        logical_block_size: block,
        // File systems take the write of a physical block for an atomic one.
        physical_block_size: preferred.min(atomic_unit.max(block)),
        io_min: preferred,
        io_opt: found
            .optimal_write
            .filter(|bytes| u64::from(*bytes) <= most)
            .unwrap_or(0),
        max_hw_sectors: max_transfer,
        // A segment per page, and one more if the first is not at the start of one.
        max_segments: (most / prp::PAGE_SIZE + 1).min(sgl::MAX_RANGES as u64) as u16,
        max_segment_size: u32::MAX,
        virt_boundary_mask: if identity.has_sgl {
            0
        } else {
            prp::PAGE_SIZE as usize - 1
        },
        dma_alignment: 3,
        max_hw_discard_sectors: only_if(
            optional.dataset_management,
            discard.map_or(MAX_DISCARD, |discard| discard.min(MAX_DISCARD)),
        ),
        max_discard_segments: limits
            .deallocate_ranges
            .map_or(MAX_DEALLOCATE_RANGES, u16::from),
        discard_granularity: found.preferred_discard.unwrap_or(block).max(block),
        max_write_zeroes_sectors: only_if(
            // No command is for less than a block.
            optional.write_zeroes && limits.write_zeroes.is_none_or(|bytes| bytes >= block),
            write_zeroes.map_or(max_transfer, |most| most.min(max_write_zeroes)),
        ),
        atomic_write_hw_max: atomic.map_or(0, |atomic| atomic.max),
        atomic_write_hw_unit_min: atomic.map_or(0, |_| block),
        atomic_write_hw_unit_max: atomic_unit,
        atomic_write_hw_boundary: atomic.map_or(0, |atomic| atomic.boundary),
        write_cache: identity.has_write_cache,
        fua: identity.has_write_cache,
        ..QueueLimits::default()
    }
}
