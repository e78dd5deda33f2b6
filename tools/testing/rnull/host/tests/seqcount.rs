// SPDX-License-Identifier: GPL-2.0

//! Checks in all interleavings with up to three preemptions that a reader without a lock sees a block
//! of two pages as a whole, while it is written, discarded, inserted again.

#[path = "model/atomic.rs"]
mod atomic;
#[path = "../../../../../rust/kernel/sync/seqcount.rs"]
mod seqcount;

use atomic::barrier;
use loom::sync::{
    atomic::{AtomicUsize, Ordering::*},
    Arc, Mutex, MutexGuard,
};
use seqcount::SeqCount;

/// Without a bound, it takes minutes.
const PREEMPTIONS: Option<usize> = Some(3);

struct Page {
    count: SeqCount<1>,
    /// All bytes of the page. They may change while they are copied.
    bytes: AtomicUsize,
}

/// A block of two pages in an array, as the driver stores it.
struct Block {
    /// Pages are numbered from 1 on. The last two are inserted after the first two.
    pages: [Page; 4],
    /// The numbers of the pages that readers find, or 0.
    slots: [AtomicUsize; 2],
    lock: Mutex<()>,
}

impl Block {
    /// Creates a block with a number in both pages, or without pages.
    fn new(bytes: Option<usize>) -> Arc<Self> {
        let page = |i: usize| Page {
            count: SeqCount::new(1),
            bytes: AtomicUsize::new(if i < 2 { bytes.unwrap_or(0) } else { 0 }),
        };
        let block = Arc::new(Self {
            pages: [page(0), page(1), page(2), page(3)],
            slots: [1, 2].map(|number| AtomicUsize::new(bytes.map_or(0, |_| number))),
            lock: Mutex::new(()),
        });
        // The counters stay where they are now.
        for page in &block.pages {
            assert_eq!(page.count.data(), 1);
        }
        block
    }

    fn page(&self, slot: usize) -> Option<&Page> {
        let number = self.slots[slot].load(Acquire);
        (number > 0).then(|| &self.pages[number - 1])
    }

    fn bytes(&self) -> [usize; 2] {
        [0, 1].map(|slot| self.page(slot).map_or(0, |page| page.bytes.load(Relaxed)))
    }

    /// Reads both pages. A reader that looks for the first one `twice` may find it once.
    fn read(&self, twice: bool) -> [usize; 2] {
        let done = match self.page(0) {
            Some(first) if twice => first.count.read(|_| self.bytes()),
            Some(first) => first.count.read(|_| {
                let second = self.page(1).map_or(0, |page| page.bytes.load(Relaxed));
                [first.bytes.load(Relaxed), second]
            }),
            None => self.page(1).is_none().then_some([0, 0]),
        };
        done.unwrap_or_else(|| {
            let _guard = self.lock.lock().unwrap();
            self.bytes()
        })
    }

    fn change(&self, _guard: &MutexGuard<'_, ()>, bytes: usize) {
        for page in [0, 1].into_iter().filter_map(|slot| self.page(slot)) {
            page.bytes.store(bytes, Relaxed);
        }
    }

    fn write(&self, bytes: usize) {
        let guard = self.lock.lock().unwrap();
        let first = self.page(0).unwrap();
        first.count.write(&guard, |data| {
            self.change(&guard, bytes);
            data
        });
    }

    fn discard(&self, invalidate: bool) {
        let guard = self.lock.lock().unwrap();
        for slot in [0, 1] {
            let page = self.page(slot);
            self.slots[slot].store(0, Release);
            if let (Some(page), true) = (page, invalidate) {
                page.count.invalidate(&guard);
            }
        }
    }

    /// Inserts new pages, which are zeros.
    fn insert(&self) {
        for slot in [0, 1] {
            let _guard = self.lock.lock().unwrap();
            self.slots[slot].store(slot + 3, Release);
        }
    }
}

/// Checks that a reader sees one of the numbers in both pages while `change` runs.
fn check(before: Option<usize>, numbers: &'static [usize], change: fn(&Block)) {
    check_reader(false, before, numbers, change);
}

fn check_reader(twice: bool, before: Option<usize>, numbers: &'static [usize], change: fn(&Block)) {
    atomic::model(PREEMPTIONS, move || {
        let block = Block::new(before);
        let reader = block.clone();
        let reader = loom::thread::spawn(move || reader.read(twice));
        change(&block);
        let found = reader.join().unwrap();
        assert!(
            numbers.iter().any(|number| found == [*number; 2]),
            "{found:?}"
        );
    });
}

#[test]
fn a_write_is_seen_whole() {
    check(Some(1), &[1, 2], |block| block.write(2));
}

#[test]
fn two_writes_are_seen_whole() {
    check(Some(1), &[1, 2, 3], |block| {
        block.write(2);
        block.write(3);
    });
}

#[test]
fn a_discard_is_seen_whole() {
    check(Some(1), &[0, 1], |block| block.discard(true));
}

#[test]
fn an_insertion_is_seen_whole() {
    check(None, &[0, 1], |block| {
        block.insert();
        block.write(1);
    });
}

#[test]
fn a_write_after_a_discard_is_seen_whole() {
    check(Some(1), &[0, 1, 2], |block| {
        block.discard(true);
        block.insert();
        block.write(2);
    });
}

#[test]
fn a_reader_takes_the_number_with_the_bits() {
    atomic::model(PREEMPTIONS, || {
        let count = Arc::new(SeqCount::<2>::new(0));
        let bytes = Arc::new(AtomicUsize::new(0));
        assert_eq!(count.data(), 0);
        let (their_count, their_bytes) = (count.clone(), bytes.clone());
        let reader =
            loom::thread::spawn(move || their_count.read(|data| (data, their_bytes.load(Relaxed))));
        for i in 1..3 {
            count.write(&(), |_| {
                bytes.store(i, Relaxed);
                i
            });
        }
        if let Some((data, bytes)) = reader.join().unwrap() {
            assert_eq!(data, bytes);
        }
    });
}

// What the checks above would not see if they saw nothing.

#[test]
#[should_panic]
fn without_the_counter_a_write_is_torn() {
    check(Some(1), &[1, 2], |block| {
        let guard = block.lock.lock().unwrap();
        block.change(&guard, 2);
    });
}

#[test]
#[should_panic]
fn a_reader_that_looks_for_the_first_page_twice_sees_half_of_a_discard() {
    check_reader(true, Some(1), &[0, 1], |block| block.discard(true));
}

#[test]
#[should_panic]
fn without_the_mark_a_discard_is_torn() {
    check(Some(1), &[0, 1], |block| block.discard(false));
}
