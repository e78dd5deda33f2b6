// SPDX-License-Identifier: GPL-2.0

//! Tests of what is found in a file.

use super::*;

/// The item with the line of each site.
fn sites(source: &str) -> Vec<(String, usize)> {
    let found = read(source).unwrap();
    assert_eq!(found.strange, [0; 0], "{source}");
    found
        .sites
        .iter()
        .map(|site| (site.place.name(), site.line))
        .collect()
}

fn one(source: &str, name: &str) {
    let found = sites(source);
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, [name], "{source}");
}

#[test]
fn items_have_names() {
    one("fn f() { unsafe { g() } }", "f");
    one("impl A<'_> { fn f() { if x { unsafe { g() } } } }", "A::f");
    one(
        "impl<T> Drop for a::A<T> { fn drop() { unsafe { g() } } }",
        "<A as Drop>::drop",
    );
    one("mod m { fn f() { fn h() { unsafe { g() } } } }", "m::f::h");
    one("trait A { fn f() { unsafe { g() } } }", "A::f");
    one("impl A { const C: u8 = unsafe { g() }; }", "A::C");
    one("unsafe impl<T> Send for A<T> {}", "<A as Send>");
    one("fn f() { impl A { fn g() { unsafe { h() } } } }", "f::A::g");
    one(
        "impl From<u8> for A { fn from() { unsafe { g() } } }",
        "<A as From<u8>>::from",
    );
    one("static S: A = A(unsafe { g() });", "S");
}

#[test]
fn macros_hide_nothing() {
    one(
        "fn f() { pin_init!(Self { a <- B::new(), c <- d(|x| unsafe { g(x) }) }) }",
        "f",
    );
    one(
        "fn f() { try_pin_init!(A { a <- b(|x| { unsafe { g(x) } }), c }? Error) }",
        "f",
    );
    one("fn f() { assert!(unsafe { g() } == 1, \"\"); }", "f");
    one(
        "macro_rules! m { ($t:ty, $f:ident) => { impl A<$t> { fn f() { unsafe { $f() } } } }; }",
        "m!::A::f",
    );
    one(
        "macro_rules! m { ($($t:ty),*) => { $(unsafe impl Send for A<$t> {})* }; }",
        "m!::<A as Send>",
    );
    one(
        "macro_rules! m { ($e:expr) => { $crate::f(|$e| unsafe { $e }) }; }",
        "m!",
    );
    one(
        "macro_rules! m { ($e:expr) => { a <- b(unsafe { $crate::g($e) }) }; }",
        "m!",
    );
    one("m! { a => unsafe { b => c } }", "");
}

#[test]
fn obligations_are_no_operations() {
    assert!(sites(
        "unsafe fn f() {} unsafe trait A { unsafe fn g(); } type F = unsafe extern \"C\" fn();"
    )
    .is_empty());
}

#[test]
fn attributes_are_operations() {
    one("#[unsafe(no_mangle)] fn f() {}", "f");
    one("#[no_mangle] static S: u8 = 0;", "S");
}

#[test]
fn what_is_not_understood_is_told() {
    assert_eq!(read("fn f() { m!(a <- unsafe b) }").unwrap().strange, [1]);
    assert_eq!(
        read("\nunsafe extern \"C\" { fn f(); }").unwrap().strange,
        [2]
    );
}

#[test]
fn each_line_has_its_comment() {
    let found =
        read("fn f() {\n    // SAFETY: A.\n    unsafe { g() };\n    unsafe { h() };\n}").unwrap();
    let said: Vec<_> = found
        .sites
        .iter()
        .map(|site| site.safety.as_ref().map(|found| &*found.text))
        .collect();
    assert_eq!(said, [Some("A."), None]);
}
