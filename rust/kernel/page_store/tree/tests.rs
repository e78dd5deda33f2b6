// SPDX-License-Identifier: GPL-2.0

//! Tests of trees.

#[macros::kunit_tests(rust_page_store_tree)]
mod suite {
    use super::super::{
        super::{
            range::Chunk,
            sectors::Sectors,
            witness::Witness, //
        },
        *, //
    };
    use crate::{
        page::PAGE_SIZE,
        static_lock_class, //
    };

    #[test]
    fn what_was_found_stays_until_the_walk_ends() -> Result {
        let tree = Tree::new(static_lock_class!(), true)?;
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

    /// Adds a page that holds something.
    fn add(tree: &Tree, part: Part) -> Result<Witness> {
        let new = NewPage::zeroed(true)?;
        tree.add_leaf(part.page(), true)?;
        let mut held = tree.hold(part.page()).ok_or(EINVAL)?;
        held.insert(part, new);
        if let Some(page) = held.page(part) {
            page.change(|_| Sectors::ALL, |_| ());
        }
        drop(held);
        Witness::new(tree, part)
    }

    fn remove(tree: &Tree, part: Part) -> Result {
        let mut held = tree.hold(part.page()).ok_or(EINVAL)?;
        held.erase(part);
        held.prune();
        Ok(())
    }

    #[test]
    fn one_barrier_waits_for_all_that_was_removed() -> Result {
        let tree = Tree::new(static_lock_class!(), true)?;
        let part = |page: usize| {
            let at = (page * PAGE_SIZE) as u64;
            Chunk::new(at, at + PAGE_SIZE as u64).part().ok_or(EINVAL)
        };
        let parts = [part(0)?, part(1)?, part(2)?];
        let pages = [
            add(&tree, parts[0])?,
            add(&tree, parts[1])?,
            add(&tree, parts[2])?,
        ];
        // No grace period ends before this does, so all of them wait together.
        let walk = tree.walk(0);
        for part in parts {
            remove(&tree, part)?;
        }
        drop(walk);
        // As in `Tree::drop`, after which the code of callbacks may go.
        rcu::rcu_barrier();
        let freed = pages.each_ref().map(Witness::is_freed);
        drop(tree);
        assert_eq!(freed, [true; 3]);
        Ok(())
    }

    #[test]
    fn pages_are_counted_while_their_leaf_is_locked() -> Result {
        let tree = Tree::new(static_lock_class!(), false)?;
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
