// SPDX-License-Identifier: GPL-2.0

//! Tests of the iteration over a request's memory.

#[macros::kunit_tests(rust_bio)]
mod suite {
    use super::super::fake_request::{
        FakeRequest,
        Range, //
    };
    use crate::{
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
        assert!(fake.to_disk().map(|segment| segment.size()).eq(sizes));
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
