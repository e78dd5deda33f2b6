// SPDX-License-Identifier: GPL-2.0

//! Tests of how operations are shown.

use super::*;

fn shown(block: &str) -> String {
    let mut functions = Functions::default();
    functions.methods.insert(("Timer".into(), "start".into()));
    functions.methods.insert(("List".into(), "push".into()));
    functions.free.insert("give".into());
    functions.safe.insert("add".into());
    let view = View {
        functions: &functions,
        self_type: Some("Timer"),
    };
    Operation::of_block(&syn::parse_str(block).unwrap(), view).to_string()
}

#[test]
fn operations_have_a_kind() {
    for (block, expected) in [
        ("{ bindings::f(self.a.get(), 3) }", "C: bindings::f(..)"),
        ("{ crate::bindings::f(); }", "C: crate::bindings::f()"),
        ("{ Self::start(x) }", "call: Self::start(..)"),
        ("{ Timer::<T>::start(x) }", "call: Timer::start(..)"),
        ("{ imp::give(x) }", "call: imp::give(..)"),
        (
            "{ self.list.lock().push(x) }",
            "call: self.list.lock().push(..)",
        ),
        (
            "{ NonNull::new_unchecked(x) }",
            "conversion: NonNull::new_unchecked(..)",
        ),
        ("{ self.rq.as_ref() }", "conversion: self.rq.as_ref()"),
        ("{ (*p).field }", "dereference: (*p).field"),
        ("{ &raw mut (*p).a.b }", "pointer: &raw mut (*p).a.b"),
        (
            "{ ptr::copy_nonoverlapping(a, b, c) }",
            "access: ptr::copy_nonoverlapping(..)",
        ),
        ("{ mem::swap(a, b) }", "other: mem::swap(..)"),
        (
            "{ container_of!(a, Self, b) }",
            "pointer: container_of!(a, Self, b)",
        ),
        ("{ p.read(); }", "access: p.read()"),
        (
            "{ bindings::f(p.add(1)) }",
            "C + pointer: bindings::f(p.add(..))",
        ),
        (
            "{ part.page().push(part.offset()) }",
            "call: part.page().push(..)",
        ),
        (
            "{ &*(*p).data.cast::<T>() }",
            "dereference: &*(*p).data.cast::<T>()",
        ),
    ] {
        assert_eq!(shown(block), expected);
    }
}

#[test]
fn what_may_be_unsafe_in_arguments_is_shown() {
    assert_eq!(
        shown("{ bindings::f(a.b(), (*p).c) }"),
        "C + dereference: bindings::f(_, (*p).c)"
    );
    assert_eq!(
        shown("{ Some(bindings::f(x)) }"),
        "C: Some(bindings::f(..))"
    );
    assert_eq!(
        shown("{ p.read(); bindings::f(1) }"),
        "C + access: p.read(); bindings::f(..)"
    );
}
