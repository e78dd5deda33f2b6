// SPDX-License-Identifier: GPL-2.0

//! Tests of the allocation of vectors, which are divided into sets.

use super::*;

/// A request for the interrupt line.
pub(crate) fn line() -> VectorRequest<'static> {
    VectorRequest {
        min: 1,
        max: 1,
        kinds: IrqKinds::Line,
        before: 1,
        sets: &[],
    }
}

#[macros::kunit_tests(rust_pci_vectors)]
mod suite {
    use super::*;
    use crate::pci::{
        test_device::{
            each_device,
            skip_unless,
            until_unbind, //
        },
        IrqTypes, //
    };

    fn request(sets: &[u32]) -> VectorRequest<'_> {
        VectorRequest {
            min: 1,
            max: 64,
            kinds: IrqKinds::All,
            before: 1,
            sets,
        }
    }

    #[test]
    fn sets_are_not_larger_than_what_there_is() {
        let sizes = [0, 1, 2, 3, 7, 64, u32::MAX];
        for (a, b, c) in sizes
            .iter()
            .flat_map(|a| sizes.iter().map(move |b| (*a, *b)))
            .flat_map(|(a, b)| sizes.iter().map(move |c| (a, b, *c)))
        {
            for vectors in [0, 1, 2, 3, 4, 5, 9, 65, u32::MAX] {
                for cpus in [1, 2, 5, u32::MAX] {
                    let sets = request(&[a, b, c]).divide(vectors, cpus);
                    let sum: u64 = sets.iter().map(|size| u64::from(*size)).sum();
                    assert!(sum <= u64::from(vectors));
                    // None is larger than C makes masks for.
                    assert!(sets.iter().all(|size| *size <= cpus));
                    // Some are left only if the last set is full.
                    assert!(sum == u64::from(vectors) || sets[2] == cpus);
                    // None is empty before one that is not.
                    let used = sets.iter().filter(|size| **size > 0).count();
                    assert!(sets[..used].iter().all(|size| *size > 0));
                    assert_eq!(used, vectors.min(3) as usize);
                }
            }
        }
    }

    #[test]
    fn sets_get_what_they_ask_for() {
        assert_eq!(request(&[]).divide(5, 8), [5, 0, 0, 0]);
        assert_eq!(request(&[2]).divide(5, 8), [5, 0, 0, 0]);
        assert_eq!(request(&[2, 1]).divide(5, 8), [2, 3, 0, 0]);
        assert_eq!(request(&[9, 1]).divide(5, 8), [4, 1, 0, 0]);
        assert_eq!(request(&[9, 1]).divide(1, 8), [1, 0, 0, 0]);
        assert_eq!(request(&[1, 1, 1, 1]).divide(6, 8), [1, 1, 1, 3]);
        assert_eq!(request(&[5, 1]).divide(9, 2), [2, 2, 0, 0]);
    }

    #[test]
    fn no_more_vectors_are_allocated_than_are_useful() {
        assert_eq!(request(&[]).most(4), 5);
        assert_eq!(request(&[2, 1]).most(4), 7);
        assert_eq!(request(&[9, 9]).most(4), 9);
        assert_eq!(request(&[]).most(1000), 64);
        let wanted = VectorRequest {
            min: 12,
            ..request(&[])
        };
        assert_eq!(wanted.most(4), 12);
    }

    #[test]
    fn requests_that_contradict_themselves_are_refused() {
        let refused = |change: fn(&mut VectorRequest<'_>)| {
            let mut request = request(&[]);
            assert!(request.check().is_ok());
            change(&mut request);
            assert_eq!(request.check(), Err(EINVAL));
        };
        refused(|request| request.min = 0);
        refused(|request| request.max = 0);
        refused(|request| request.max = 1 << 20);
        refused(|request| request.before = 2);
        refused(|request| request.before = u32::MAX);
        refused(|request| request.sets = &[1; MAX_SETS + 1]);
    }

    /// Calls `f` with each device that has a line.
    fn each_line(mut f: impl FnMut(&Device<Core<'_>>, Arc<IrqVectors>) -> Result) -> Result {
        let (mut tested, mut result) = (0, Ok(()));
        each_device(|dev| {
            let test = || match IrqVectors::new(dev, line()) {
                Ok(vectors) => {
                    tested += 1;
                    f(dev, vectors)
                }
                Err(_) => Ok(()),
            };
            result = result.and(until_unbind(dev, test));
        });
        skip_unless(tested);
        result
    }

    #[test]
    fn a_device_has_one_allocation() -> Result {
        each_line(|dev, vectors| {
            let stock = || dev.alloc_irq_vectors(1, 1, IrqTypes::all());
            assert!(vectors.is_line());
            assert_eq!(vectors.len(), 1);
            assert!(vectors.affinity(0).is_none());
            assert!(vectors.number(dev, 0)? > 0);
            assert_eq!(vectors.number(dev, 1), Err(EINVAL));
            assert_eq!(IrqVectors::new(dev, line()).err(), Some(EBUSY));
            assert_eq!(stock().err(), Some(EBUSY));
            IrqVectors::free(vectors, dev)?;
            let theirs = stock()?;
            assert_eq!(IrqVectors::new(dev, line()).err(), Some(EBUSY));
            drop(theirs);
            IrqVectors::free(IrqVectors::new(dev, line())?, dev)
        })
    }

    #[test]
    fn vectors_that_are_dropped_remain_until_the_unbinding() -> Result {
        each_line(|dev, vectors| {
            IrqVectors::free(vectors, dev)?;
            let kept = until_unbind(dev, || -> Result<_> {
                drop(IrqVectors::new(dev, line())?);
                let again = IrqVectors::new(dev, line());
                assert_eq!(again.err(), Some(EBUSY));
                Ok(())
            });
            kept?;
            let stale = until_unbind(dev, || IrqVectors::new(dev, line()))?;
            assert_eq!(stale.number(dev, 0), Err(ENODEV));
            let vectors = IrqVectors::new(dev, line())?;
            // Those of an earlier binding do not free the new ones.
            IrqVectors::free(stale, dev)?;
            assert!(vectors.number(dev, 0)? > 0);
            IrqVectors::free(vectors, dev)
        })
    }

    #[test]
    fn vectors_with_another_reference_are_not_freed() -> Result {
        each_line(|dev, vectors| {
            let other = vectors.clone();
            assert_eq!(IrqVectors::free(vectors, dev), Err(EBUSY));
            assert!(other.number(dev, 0)? > 0);
            IrqVectors::free(other, dev)
        })
    }
}
