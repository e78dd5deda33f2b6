// SPDX-License-Identifier: GPL-2.0

//! Tests of the ledger of a file.

use super::*;

/// Looks for a text in the mistakes in a file, or if there are none, in its entries as one line.
///
/// In the file, `@x@` is an unsafe block with the comment x, `I!` and `S!` stand for documentation.
fn check(source: &str, expected: &str) {
    let mut code = String::new();
    for (i, part) in source.split('@').enumerate() {
        code += &match i % 2 {
            0 => part.to_string(),
            _ => format!("\n// SAFETY: {part}\nunsafe {{ g() }};\n"),
        };
    }
    let code = code.replace("I!", "\n/// # Invariants\n///\n/// It is.\n");
    let code = code.replace("S!", "\n/// # Safety\n///\n/// It is.\n");
    let names = HashSet::from(["of_c".to_string()]);
    let file = reader::read("a.rs", code.clone()).expect("the code is Rust");
    let ledger = Ledger::new(&[file], &names);
    let entries = ledger.text.split_once("== ").unwrap().1;
    let entries = entries.replace("\n    ", " # ").replace("\n  ", " @ ");
    let found = match ledger.mistakes.is_empty() {
        true => entries.replace("\n\n", "; ").replace('\n', " "),
        false => ledger.mistakes.join("\n"),
    };
    assert!(
        found.contains(expected),
        "{code}\nexpected {expected}\nfound {found}"
    );
}

/// Defines tests, each with files and what is found in them.
macro_rules! tests {
    ($($name:ident { $($source:literal => $expected:literal)* })*) => {
        $(
            #[test]
            fn $name() {
                $(check($source, $expected);)*
            }
        )*
    };
}

tests! {
    items_have_names {
        "fn f() { @It is.@ }" => "a.rs; f @ other: g() # \"It is.\";"
        "impl A<'_> { fn f() { if x { @It is.@ } } }" => "; A::f @"
        "impl<T> Drop for a::A<T> { fn drop() { @It is.@ } }" => "; <A as Drop>::drop @"
        "impl From<u8> for &A { fn from() { @It is.@ } }" => "; <A as From<u8>>::from @"
        "mod m { fn f() { fn h() { @It is.@ } } }" => "; m::f::h @"
        "trait A { fn f() { @It is.@ } }" => "; A::f @"
        "impl A { const C: u8 = { @It is.@ 1 }; }" => "; A::C @"
        "fn f() { impl A { fn g() { @It is.@ } } }" => "; f::A::g @"
        "static S: A = A({ @It is.@ });" => "; S @"
    }

    macros_hide_nothing {
        "fn f() { pin_init!(Self { a <- b(|x| { @It is.@ }), c }) }" => "; f @ other: g() #"
        "fn f() { assert!({ @It is.@ } == 1, \"\"); }" => "; f @ other: g() #"
        "m! { a => { @It is.@ } }" => ";  @ other: g() #"
        "macro_rules! m { ($t:ty) => { impl A<$t> { fn f() { @It is.@ } } }; }" => "; m!::A::f @"
        "macro_rules! m { ($($t:ty)*) => { $(impl A<$t> { fn f() { @It is.@ } })* } }"
            => "; m!::A::f @"
        "macro_rules! m { ($e:expr) => { $crate::f(|$e| { @It is.@ }) }; }" => "; m! @"
        "macro_rules! m { ($f:ident) => {\n// SAFETY: It is.\nunsafe { bindings::$f(1) } } }"
            => "; m! @ C: bindings::$f(..) #"
        "macro_rules! m { ($t:ty) => {\n// SAFETY: It is.\nunsafe impl Send for A<$t> {} } }"
            => "; m!::<A as Send> @ impl: impl Send for A<$t> #"
        "fn f() { m!(a <- unsafe b) }" => "a.rs:1: unknown use of `unsafe`"
    }

    not_only_blocks_are_unsafe {
        "\n// SAFETY: It is.\nunsafe impl<T> Send for A<T> where T: Send {}"
            => "; <A as Send> @ impl: impl<T> Send for A<T> where T: Send #"
        "\n// SAFETY: It is.\n#[unsafe(no_mangle)]\nfn f() {}"
            => "; f @ attribute: #[unsafe(no_mangle)] #"
        "\n// SAFETY: It is.\n#[no_mangle]\nstatic S: u8 = 0;" => "; S @ attribute: #[no_mangle] #"
        "\nunsafe extern \"C\" {}" => "a.rs:2: unknown use of `unsafe`"
        "S! unsafe trait A { S! unsafe fn f(); } type F = unsafe fn();" => "totals; 0 entries"
        "I! unsafe trait A {}" => "A: unsafe, without a `# Safety` section"
        "fn f() { unsafe fn g() {} }" => "a.rs: g: unsafe, without a `# Safety` section"
        "impl A { unsafe fn f() {} }" => "A::f: unsafe, without a `# Safety` section"
        "impl A for B { unsafe fn f() {} }" => "totals; 0 entries"
    }

    a_comment_is_above_the_statement {
        "fn f() { unsafe { g() } }" => "a.rs:1: f: other: g(): no SAFETY comment"
        "unsafe impl Send for A {}" => "<A as Send>: impl: impl Send for A: no SAFETY comment"
        "fn f() {\n// SAFETY: A\n// b.\nunsafe { g() } }" => "# \"A b.\""
        "fn f() {\n// SAFETY: A.\nlet x =\nunsafe { g() }; }" => "# \"A.\""
        "fn f() { g(\n// SAFETY: A.\nh(\nx,\nunsafe { g() })) }" => "# \"A.\""
        "// B.\n//\n// SAFETY: A.\n// INVARIANT: C.\n#[cfg(a)]\nunsafe impl B for A {}"
            => "# \"A.\""
        "fn f() {\n// SAFETY: A.\nh();\nunsafe { g() } }" => "no SAFETY comment"
        "fn f() {\n// SAFETY: A.\nif a {\nunsafe { g() } } }" => "no SAFETY comment"
        "fn f() { A {\n// SAFETY: A.\nx: unsafe { g() },\ny: unsafe { h() } } }"
            => "h(): no SAFETY comment"
        "/// SAFETY: A.\nunsafe impl B for A {}" => "no SAFETY comment"
        "// A SAFETY: B.\nunsafe impl B for A {}" => "no SAFETY comment"
        "// SAFETY: A.\n\nunsafe impl B for A {}" => "no SAFETY comment"
    }

    invariants_are_those_of_a_type {
        "I! struct A; impl A { fn f() { @By the type invariant.@ } }" => "# by invariants of A #"
        "I! struct A; impl A { fn f() { @Its invariant. Of `f`.@ } }" => "# by invariants of A #"
        "I! struct A; impl A { fn f() { @By its invariants, the type invariants.@ } }"
            => "g() # by invariants of A # \"By"
        "S! struct A; impl A { fn f() { @By its invariants.@ } }"
            => "\"By its invariants.\", but `A` has no `# Invariants` section"
        "struct A; impl A { fn f() { @The lifetime is invariant.@ } }" => "g() # \"The"
        "mod a {} I! enum B {} fn f() { @By the invariants of a [`a::B<B>`], here.@ }"
            => "# by invariants of a::B #"
        "enum B {} fn f() { @By the invariants of `B`.@ }"
            => "but `B` has no `# Invariants` section"
        "I! union B {}\n/// # Invariants\n///\n/// As for [`B`].\nstruct A;
            impl A { fn f() { @By its invariants.@ } }"
            => "# by invariants of A, which are those of B #"
        "struct B;\n/// # Invariants\n///\n/// As for [`B`].\nstruct A;
            impl A { fn f() { @By its invariants.@ } }"
            => "`A` refers to `B`, which has no invariants"
        "I! struct A; fn f() { @It is of an `A`, by the invariants of that.@ }"
            => "invariants of A #"
        "fn f() { @By the invariants of that.@ }" => "\"invariants of\" names nothing"
        "fn f() { @By the invariants of `of_c`.@ }" => "`of_c` is defined elsewhere"
        "fn f() { @By its invariants.@ }" => "it is not in an `impl`"
        "impl C for B { fn f() { @By its invariants.@ } }" => "`B` is defined elsewhere"
    }

    requirements_are_those_of_a_function {
        "impl A { S! unsafe fn f() { @By the safety requirement.@ } }"
            => "# by requirements of A::f #"
        "fn f() { impl A { S! unsafe fn g() { @By the safety requirement.@ } } }"
            => "# by requirements of A::g #"
        "fn f() { @By the safety requirements.@ }" => "the function is not unsafe"
        "unsafe fn f() { @By the safety requirements.@ }" => "but `f` has no `# Safety` section"
        "S! unsafe fn f() { fn h() { @By the safety requirements.@ } }"
            => "the function is not unsafe"
        "S! unsafe fn h() {} fn f() { @By the safety requirements of `h`.@ }"
            => "# by requirements of h #"
        "fn h() {} fn f() { @By the safety requirements of `h`.@ }"
            => "`h` has no `# Safety` section"
        "/// Its functions share a safety requirement.\nstruct A;
            \n/// # Safety\n///\n/// See [`A`].\nunsafe fn f() { @By the safety requirement.@ }"
            => "# by requirements of f, which are those of A #"
        "struct A;
            \n/// # Safety\n///\n/// See [`A`].\nunsafe fn f() { @By the safety requirement.@ }"
            => "`f` refers to `A`, which has no requirements"
        "S! unsafe fn h() {}
            \n/// # Safety\n///\n/// As for [`h`].\nunsafe fn f() { @By the safety requirement.@ }"
            => "# by requirements of f, which are those of h #"
        "/// # Safety\n///\n/// As for [`f`].\nunsafe fn f() { @By the safety requirement.@ }"
            => "`f` refers to `f`, which has no requirements"
        "trait A { S! unsafe fn f(); }
            impl A for B { unsafe fn f() { @By the safety requirement.@ } }"
            => "# by requirements of A::f #"
        "impl A for B { unsafe fn f() { @By the safety requirement.@ } }"
            => "# by requirements of A::f, which is defined elsewhere #"
        "S! unsafe trait A {}\n// SAFETY: By the safety requirement.\nunsafe impl A for B {}"
            => "# by requirements of A #"
        "trait A {}\n// SAFETY: By the safety requirement.\nunsafe impl A for B {}"
            => "the function is not unsafe"
    }

    other_comments_can_be_cited {
        "I! struct A; impl A { fn f() { @By its invariants.@ @As above; it is.@ } }"
            => "# by invariants of A # \"As above; it is.\""
        "impl A { fn f() { @It is.@ } fn h() { @As above.@ } }" => "by the comment above, in A::f #"
        "impl A { fn f() { @It is.@ } }\nimpl A { fn h() { @As above.@ } }"
            => "there is no comment above in the same item"
        "impl A { fn f() { @It is.@\n// INVARIANT: It is.@As above.@ } }"
            => "by the comment above, in A::f #"
        "impl A { fn f() { @It is.@ } fn h() {\n// INVARIANT: It is.@As above.@ } }"
            => "by the INVARIANT above #"
        "// SAFETY: It is.\nunsafe impl B for A {}\n// SAFETY: As above.\nunsafe impl C for A {}"
            => "by the comment above, in <A as B> #"
        "// SAFETY: It is.\nunsafe impl B for A {}\n// SAFETY: As above.\nunsafe impl B for C {}"
            => "there is no comment above in the same item"
        "impl A { fn f() { @It is.@ } fn h() { @As in [`Self::f`].@ } }"
            => "# by the comments in A::f #"
        "impl A { fn f() { @It is.@ } fn h() { @As for `f`, it is.@ } }"
            => "# by the comments in A::f #"
        "fn f() { } fn h() { @As in `f`.@ }" => "`f` has no SAFETY comment"
        "impl A { fn f() { @As in `A::of_c`.@ } }" => "there is no function `A::of_c`"
    }

    names_are_those_of_the_code {
        "impl A { fn f() { @A `A::f` of `&'b A` and `of_c` in `3`.@ } }" => "g() # \"A"
        "impl A { fn f() { @By `A::gone`.@ } }"
            => "\"By `A::gone`.\", but `gone` is neither in the code nor in contracts.toml"
    }

    totals_count_each_operation {
        "S! unsafe trait A {}\n// SAFETY: It is.\nunsafe impl A for B {}
            // SAFETY: As above.\nunsafe impl A for B {}
            fn f() {\n// SAFETY: It is.\nunsafe { *bindings::f() } }"
            => "3 entries with # 1 calls of C functions # 1 dereferences # 2 unsafe impls \
                1 cite documentation or another comment, 2 give the reason themselves. \
                1 unsafe functions and traits have a `# Safety` section."
    }
}

#[test]
fn operations_have_a_kind() {
    for (block, expected) in [
        ("bindings::f(self.a.get(), 3)", "C: bindings::f(..)"),
        ("crate::bindings::f();", "C: crate::bindings::f()"),
        ("Self::start(x)", "call: Self::start(..)"),
        ("Timer::<T>::start(x)", "call: Timer::start(..)"),
        ("imp::give(x)", "call: imp::give(..)"),
        ("self.a.lock().push(x)", "call: self.a.lock().push(..)"),
        ("part.page().push(part.add())", "call: part.page().push(..)"),
        ("Arc::from_raw(x)", "conversion: Arc::from_raw(..)"),
        ("self.rq.as_ref()", "conversion: self.rq.as_ref()"),
        ("(*p).field", "dereference: (*p).field"),
        ("&*(*p).a.cast::<T>()", "dereference: &*(*p).a.cast::<T>()"),
        ("&raw mut (*p).a.b", "pointer: &raw mut (*p).a.b"),
        ("container_of!(a, A, b)", "pointer: container_of!(a, A, b)"),
        ("ptr::copy(a, b, c)", "access: ptr::copy(..)"),
        ("p.read();", "access: p.read()"),
        ("Part::copy(a)", "other: Part::copy(..)"),
        ("mem::swap(a, b)", "other: mem::swap(..)"),
        // In arguments.
        (
            "bindings::f(p.add(1))",
            "C + pointer: bindings::f(p.add(..))",
        ),
        (
            "bindings::f(a, (*p).c)",
            "C + dereference: bindings::f(_, (*p).c)",
        ),
        ("Some(bindings::f(x))", "C: Some(bindings::f(..))"),
        (
            "p.read(); bindings::f(1)",
            "C + access: p.read(); bindings::f(..)",
        ),
        // In any layout.
        (
            "a\n .b // c\n .f(\n (*p).c,\n )\n",
            "dereference: a.b.f((*p).c)",
        ),
    ] {
        let source = format!(
            "impl Timer {{ S! unsafe fn start() {{}} fn add() {{}} S! unsafe fn push() {{}} \
            fn f() {{\n// SAFETY: It is.\nunsafe {{ {block} }} }} }} S! unsafe fn give() {{}}"
        );
        check(&source, &format!("; Timer::f @ {expected} #"));
    }
}
