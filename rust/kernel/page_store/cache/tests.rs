// SPDX-License-Identifier: GPL-2.0

//! Tests of write caches against plain memory.

#[macros::kunit_tests(rust_write_cache)]
mod suite {
    use super::super::{
        super::copy::Unfilled,
        *, //
    };

    /// The part of a store that the tests use: more than a cache has room for.
    const LEN: usize = 80 * PAGE_SIZE;

    fn view(cache: &WriteCache, buffer: &mut [u8]) {
        assert_eq!(
            cache.read_memory(0, buffer.len(), &mut Unfilled(buffer)),
            Ok(())
        );
    }

    #[test]
    fn a_cache_shows_what_was_written_last() -> Result {
        for block_size in [WriteCache::SMALLEST_BLOCK, 4096, 65536] {
            let block = block_size as usize;
            let store = Arc::pin_init(PageStore::new(block_size), GFP_KERNEL)?;
            let cache = KBox::pin_init(WriteCache::new(store.clone(), 0, block_size), GFP_KERNEL)?;
            let mut model = KVVec::from_elem(0, LEN, GFP_KERNEL)?;
            let mut buffer = KVVec::from_elem(0, LEN, GFP_KERNEL)?;
            let mut chance = 1usize;
            let mut below = |end: usize| {
                chance = chance.wrapping_mul(1103515245).wrapping_add(12345);
                (chance >> 16) % 32768 % end
            };
            for round in 0..300usize {
                let at = below(LEN / block) * block;
                let len = (1 + below(((LEN - at) / block).min(65536 / block))) * block;
                let range = at..at + len;
                let at = at as u64;
                match below(8) {
                    0 => {
                        model[range].fill(0);
                        cache.remove_range(true, at, len as u64)?;
                    }
                    1 => {
                        cache.settle_all(true)?;
                        assert_eq!(cache.pages(), 0);
                        store.read_bytes(0, &mut buffer)?;
                        assert!(buffer[..] == model[..]);
                    }
                    through => {
                        model[range.clone()].fill(round as u8);
                        let mut from = &model[range.clone()];
                        cache.write_memory(true, through == 2, at, len, &mut from)?;
                        if through == 2 {
                            store.read_bytes(at, &mut buffer[range.clone()])?;
                            assert!(buffer[range.clone()] == model[range]);
                        }
                    }
                }
                assert!(cache.pages() <= 2 * PIECE_PAGES);
                view(&cache, &mut buffer);
                assert!(buffer[..] == model[..]);
            }
        }
        Ok(())
    }

    #[test]
    fn ranges_are_whole_sectors() -> Result {
        const BLOCK: usize = WriteCache::SMALLEST_BLOCK as usize;

        let store = Arc::pin_init(PageStore::new(BLOCK as u32), GFP_KERNEL)?;
        store.write_bytes(0, &[1; 2 * BLOCK])?;
        let cache = WriteCache::new(store.clone(), 1 << 20, BLOCK as u32);
        let cache = KBox::pin_init(cache, GFP_KERNEL)?;
        for (at, len) in [(0, 1), (1, BLOCK), (BLOCK - 1, 2), (BLOCK, BLOCK - 1)] {
            for through in [false, true] {
                let mut from = &[2u8; BLOCK][..];
                let done = cache.write_memory(true, through, at as u64, len, &mut from);
                assert_eq!(done, Err(EINVAL));
                assert_eq!(from.len(), BLOCK);
            }
            let done = cache.remove_range(true, at as u64, len as u64);
            assert_eq!(done, Err(EINVAL));
        }
        cache.settle_all(true)?;
        let mut buffer = [0; 2 * BLOCK];
        view(&cache, &mut buffer);
        assert!(buffer == [1; 2 * BLOCK]);
        Ok(())
    }

    #[test]
    fn what_is_not_settled_goes_with_the_cache() -> Result {
        const BLOCK: usize = WriteCache::SMALLEST_BLOCK as usize;

        let store = Arc::pin_init(PageStore::new(BLOCK as u32), GFP_KERNEL)?;
        let cache = WriteCache::new(store.clone(), 1 << 20, BLOCK as u32);
        let cache = KBox::pin_init(cache, GFP_KERNEL)?;
        cache.write_memory(true, false, 0, 2 * BLOCK, &mut &[1u8; 2 * BLOCK][..])?;
        cache.write_memory(true, true, BLOCK as u64, BLOCK, &mut &[2u8; BLOCK][..])?;
        assert_eq!(cache.pages(), 1);
        drop(cache);
        let mut buffer = [0xff; 2 * BLOCK];
        store.read_bytes(0, &mut buffer)?;
        assert!(buffer[..BLOCK] == [0; BLOCK] && buffer[BLOCK..] == [2; BLOCK]);
        Ok(())
    }
}
