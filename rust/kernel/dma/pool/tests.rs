// SPDX-License-Identifier: GPL-2.0

//! Tests of pools of blocks for a device.

#[cfg(CONFIG_PCI)]
#[macros::kunit_tests(rust_dma_pool)]
mod suite {
    use super::super::*;
    use crate::pci::test_device::{
        each_device,
        skip_unless,
        until_unbind, //
    };

    /// Sixteen blocks fill a page.
    type Blocks = DmaPool<u64, { PAGE_SIZE / 16 / 8 }>;

    /// Calls `f` with a pool of two pages for each device.
    fn each_pool(mut f: impl FnMut(Blocks) -> Result) -> Result {
        let (mut tested, mut result) = (0, Ok(()));
        each_device(|dev| {
            tested += 1;
            let test = || f(Blocks::new(dev.as_ref(), 20)?);
            result = result.and(until_unbind(dev, test));
        });
        skip_unless(tested);
        result
    }

    #[test]
    fn a_block_is_taken_once() -> Result {
        each_pool(|pool| {
            let mut taken = KVec::new();
            while let Some(block) = pool.take() {
                assert_eq!(block.address() as usize % (PAGE_SIZE / 16), 0);
                taken.push(block, GFP_KERNEL)?;
            }
            assert_eq!(taken.len(), 32);
            for (index, block) in taken.iter_mut().enumerate() {
                block.write(0, index as u64)?;
            }
            for (index, block) in taken.iter().enumerate() {
                assert_eq!(block.read(0), Ok(index as u64));
                let same = |other: &&DmaBlock<_>| other.address() == block.address();
                assert_eq!(taken.iter().filter(same).count(), 1);
            }
            let address = taken.pop().map(|block| block.address());
            assert_eq!(pool.take().map(|block| block.address()), address);
            assert!(pool.take().is_some());
            Ok(())
        })
    }

    #[test]
    fn blocks_are_freed_with_the_memory_that_they_were_appended_to() -> Result {
        each_pool(|pool| {
            let take = || Ok::<_, Error>(pool.take().ok_or(ENOMEM)?.into_memory());
            let (mut first, mut second) = (take()?, take()?);
            second.append(take()?);
            first.append(second);
            first.append(take()?);
            // None of the four is free, and nothing of what has been appended is lost.
            let mut rest = KVec::new();
            while let Some(block) = pool.take() {
                rest.push(block, GFP_KERNEL)?;
            }
            assert_eq!(rest.len(), 28);
            drop(first);
            while let Some(block) = pool.take() {
                rest.push(block, GFP_KERNEL)?;
            }
            assert_eq!(rest.len(), 32);
            // A block that is taken again has no others.
            drop(rest.pop().map(DmaBlock::into_memory));
            let alone = pool.take();
            assert!(alone.is_some() && pool.take().is_none());
            Ok(())
        })
    }

    #[test]
    fn a_block_has_an_end() -> Result {
        each_pool(|pool| {
            let mut block = pool.take().ok_or(ENOMEM)?;
            let last = PAGE_SIZE / 16 / 8 - 1;
            assert_eq!(block.write(last, 7), Ok(()));
            assert_eq!(block.read(last), Ok(7));
            for index in [last + 1, usize::MAX] {
                assert_eq!(block.write(index, 7), Err(EINVAL));
                assert_eq!(block.read(index), Err(EINVAL));
            }
            Ok(())
        })
    }

    #[test]
    fn a_writer_writes_in_order_up_to_the_end() -> Result {
        const COUNT: u64 = (PAGE_SIZE / 16 / 8) as u64;
        each_pool(|pool| {
            let mut writer = pool.take().ok_or(ENOMEM)?.into_writer();
            assert_eq!(writer.replace_last(7), None);
            for value in 0..COUNT {
                assert!(writer.push(value));
            }
            assert!(!writer.push(7));
            assert_eq!(writer.replace_last(COUNT), Some(COUNT - 1));
            drop(writer.into_memory());
            // The block that was freed last.
            let block = pool.take().ok_or(ENOMEM)?;
            for index in 0..COUNT - 1 {
                assert_eq!(block.read(index as usize), Ok(index));
            }
            assert_eq!(block.read(COUNT as usize - 1), Ok(COUNT));
            let mut writer = block.into_writer();
            assert!(writer.push(7));
            writer.close();
            assert!(!writer.push(8));
            assert_eq!(writer.replace_last(9), Some(7));
            assert!(writer.into_memory().is_some());
            Ok(())
        })
    }

    #[test]
    fn a_writer_without_a_block_has_no_room() {
        let mut writer = DmaWriter::<u64>::default();
        assert!(!writer.push(7));
        assert_eq!(writer.replace_last(7), None);
        writer.close();
        assert!(writer.into_memory().is_none());
    }

    #[test]
    fn a_pool_is_not_too_large() {
        each_device(|dev| {
            for blocks in [MAX_BLOCKS + 1, usize::MAX / 2, usize::MAX] {
                let pool = Blocks::new(dev.as_ref(), blocks);
                assert_eq!(pool.err(), Some(EINVAL));
            }
        });
    }

    #[test]
    fn a_pool_is_empty_after_the_unbinding() {
        let mut tested = 0;
        each_device(|dev| {
            let make = || Blocks::new(dev.as_ref(), 1);
            if let Ok(pool) = until_unbind(dev, make) {
                tested += 1;
                assert!(pool.take().is_none());
            }
        });
        skip_unless(tested);
    }
}
