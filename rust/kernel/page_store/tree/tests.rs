// SPDX-License-Identifier: GPL-2.0

//! Tests of trees.

#[macros::kunit_tests(rust_page_store_tree)]
mod suite {
    use super::super::{
        super::{
            range::Chunk,
            sectors::Sectors, //
        },
        *, //
    };
    use crate::{
        page::PAGE_SIZE,
        static_lock_class, //
    };

    #[test]
    fn what_was_found_stays_until_the_walk_ends() -> Result {
        let tree = KBox::pin_init(Tree::new(static_lock_class!(), true), GFP_KERNEL)?;
        let part = Chunk::new(0, PAGE_SIZE as u64).part().ok_or(EINVAL)?;
        let new = NewPage::zeroed(true)?;
        tree.add_leaf(0, true)?;
        let mut held = tree.hold(0).ok_or(EINVAL)?;
        held.insert(part, new);
        if let Some(page) = held.page(part) {
            page.change(|_| Sectors::ALL, |_| ());
        }
        drop(held);

        let walk = tree.walk(0);
        let page = walk.page(part).ok_or(EINVAL)?;
        let mut held = tree.hold(0).ok_or(EINVAL)?;
        held.erase(part);
        held.prune();
        assert_eq!(tree.count(), 0);
        assert!(tree.hold(0).is_none());
        // A page that is freed forgets its sectors; that a leaf is freed is seen by KASAN.
        assert_eq!(page.sectors(), Sectors::ALL);
        assert!(!walk.has(0));
        Ok(())
    }

    #[test]
    fn pages_are_counted_while_their_leaf_is_locked() -> Result {
        let tree = KBox::pin_init(Tree::new(static_lock_class!(), false), GFP_KERNEL)?;
        let part = Chunk::new(0, PAGE_SIZE as u64).part().ok_or(EINVAL)?;
        let new = NewPage::zeroed(true)?;
        tree.add_leaf(0, true)?;
        let mut held = tree.hold(0).ok_or(EINVAL)?;
        held.insert(part, new);
        // As an interrupt handler would, in the midst of a change.
        let with_page = tree.count();
        held.erase(part);
        let without = tree.count();
        held.prune();
        assert_eq!((with_page, without), (1, 0));
        Ok(())
    }
}
