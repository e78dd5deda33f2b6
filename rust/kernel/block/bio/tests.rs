// SPDX-License-Identifier: GPL-2.0

//! Tests of the iteration over a request's memory.

#[macros::kunit_tests(rust_bio)]
mod suite {
    use super::super::fake_request::{
        FakeRequest,
        Range, //
    };
    use crate::{
        folio::FolioBox,
        page::PAGE_SIZE,
        prelude::*, //
    };

    /// Three bios and an empty one, with ranges that are empty, odd, or longer than a page.
    const MIXED: [(&[Range], usize); 4] = [
        (
            &[(3000, 3 * PAGE_SIZE + 6), (7, 0), (1, 511)],
            PAGE_SIZE + 903,
        ),
        (&[], 0),
        (&[(PAGE_SIZE - 1, 2)], 0),
        (&[(0, 10), (PAGE_SIZE + 5, PAGE_SIZE)], 10),
    ];

    /// Returns bytes that all differ from their neighbours.
    fn pattern(len: usize) -> Result<KVVec<u8>> {
        let mut bytes = KVVec::with_capacity(len, GFP_KERNEL)?;
        for i in 0..len {
            bytes.push((i % 251) as u8, GFP_KERNEL)?;
        }
        Ok(bytes)
    }

    #[test]
    fn no_data() -> Result {
        assert!(FakeRequest::new(&[])?.to_disk().next().is_none());
        assert!(FakeRequest::new(&[(&[], 0), (&[(9, 0)], 0)])?
            .from_disk()
            .next()
            .is_none());
        Ok(())
    }

    #[test]
    fn segments_end_at_page_boundaries() -> Result {
        let mut fake = FakeRequest::new(&MIXED)?;
        let sizes = [
            PAGE_SIZE - 3903,
            PAGE_SIZE,
            3006,
            511,
            1,
            1,
            PAGE_SIZE - 5,
            5,
        ];
        assert_eq!(fake.to_disk().count(), sizes.len());
        for (segment, size) in fake.to_disk().zip(sizes) {
            assert_eq!(segment.size(), size);
        }
        Ok(())
    }

    #[test]
    fn reads_in_order() -> Result {
        let mut fake = FakeRequest::new(&MIXED)?;
        let bytes = pattern(fake.len())?;
        fake.set(&bytes);
        let mut at = 0;
        for segment in fake.to_disk() {
            let mut copy = KVVec::from_elem(0, segment.size(), GFP_KERNEL)?;
            segment.read(0, &mut copy)?;
            assert_eq!(copy[..], bytes[at..][..copy.len()]);
            at += copy.len();
        }
        assert_eq!(at, bytes.len());
        Ok(())
    }

    #[test]
    fn writes_in_order() -> Result {
        let mut fake = FakeRequest::new(&MIXED)?;
        let bytes = pattern(fake.len())?;
        let mut at = 0;
        for segment in fake.from_disk() {
            segment.write(0, &bytes[at..][..segment.size()])?;
            at += segment.size();
        }
        assert_eq!(fake.bytes()?[..], bytes[..]);
        Ok(())
    }

    #[test]
    fn stays_within_the_segment() -> Result {
        let mut fake = FakeRequest::new(&[(&[(4000, 20)], 0)])?;
        let segment = fake.from_disk().next().ok_or(EIO)?;
        assert_eq!(segment.write(20, &[]), Ok(()));
        assert_eq!(segment.write(20, &[1]), Err(EINVAL));
        assert_eq!(segment.write(0, &[1; 21]), Err(EINVAL));
        assert_eq!(segment.write(usize::MAX, &[1; 2]), Err(EINVAL));
        Ok(())
    }

    #[test]
    fn contiguous_bytes_are_in_one_range() -> Result {
        let mut fake = FakeRequest::new(&MIXED)?;
        let (len, bytes) = (fake.len(), pattern(fake.len())?);
        fake.set(&bytes);
        let folio = FolioBox::new(2, GFP_KERNEL, ())?;
        let first = 2 * PAGE_SIZE - 897;
        let ends = [first, first + 511, first + 513, len];
        // None of these positions is at an end.
        for at in (0..len).step_by(97) {
            let most = ends.into_iter().find(|end| *end > at).ok_or(EIO)? - at;
            let mut rest = fake.to_disk();
            rest.skip_bytes(at as u32);
            assert!(rest.contiguous(0).is_none());
            assert!(rest.contiguous(most + 1).is_none());
            for count in [1, most] {
                let found = rest.contiguous(count).ok_or(EIO)?;
                found.copy_to_folio(&folio, 5)?;
                let mut copy = KVVec::from_elem(0, count, GFP_KERNEL)?;
                folio.copy_to_slice(5, &mut copy)?;
                assert_eq!(copy[..], bytes[at..][..count]);
                let too_late = folio.size() - count + 1;
                assert_eq!(found.copy_to_folio(&folio, too_late), Err(EINVAL));
            }
            // Nothing was skipped.
            assert_eq!(rest.remaining() as usize, len - at);
            rest.truncate(most as u32 - 1);
            assert!(rest.contiguous(most).is_none());
        }
        Ok(())
    }

    #[test]
    fn contiguous_bytes_are_filled() -> Result {
        let mut fake = FakeRequest::new(&MIXED)?;
        let folio = FolioBox::new(2, GFP_KERNEL, ())?;
        folio.copy_from_slice(0, &pattern(folio.size())?)?;
        fake.from_disk().fill(1);
        let count = PAGE_SIZE + 1000;
        let memory = fake.from_disk().contiguous(count).ok_or(EIO)?;
        assert_eq!(memory.copy_from_folio(&folio, 3 * PAGE_SIZE), Err(EINVAL));
        memory.copy_from_folio(&folio, 9)?;
        let (found, expected) = (fake.bytes()?, pattern(folio.size())?);
        assert_eq!(found[..count], expected[9..][..count]);
        assert!(found[count..].iter().all(|byte| *byte == 1));
        Ok(())
    }

    #[test]
    fn splits_anywhere() -> Result {
        let mut fake = FakeRequest::new(&MIXED)?;
        let len = fake.len();
        for at in (0..len + 300).step_by(97) {
            let mut rest = fake.from_disk();
            let mut start = rest.take_bytes(at as u32);
            assert_eq!(start.remaining() as usize, at.min(len));
            assert_eq!(rest.remaining() as usize, len - at.min(len));
            start.fill(1);
            rest.fill(2);
            let bytes = fake.bytes()?;
            assert!(bytes
                .iter()
                .enumerate()
                .all(|(i, byte)| *byte == if i < at { 1 } else { 2 }));
        }
        Ok(())
    }
}
