// SPDX-License-Identifier: GPL-2.0

//! Tests of what comments may cite.

use super::*;

fn world(text: &str) -> World {
    World::new(
        vec![Source::read("rust/a.rs", text).unwrap()],
        HashSet::from(["of_c".to_string()]),
    )
}

/// What the comment on the last operation cites.
fn cited(text: &str) -> Vec<String> {
    let (entries, faults) = world(text).entries();
    assert_eq!(faults, [""; 0], "{text}");
    entries.last().unwrap().0.cites.clone()
}

/// What is wrong.
fn fault(text: &str) -> String {
    let (_, faults) = world(text).entries();
    assert_eq!(faults.len(), 1, "{text}: {faults:?}");
    faults[0].clone()
}

/// A file with a type, and a block in a method of it.
fn method(docs: &str, head: &str, comment: &str) -> String {
    format!("/// A.\n///\n{docs}struct A;\nimpl A {{\n{head} {{\n// SAFETY: {comment}\nunsafe {{ bindings::f() }}\n}}\n}}\n")
}

const INVARIANTS: &str = "/// # Invariants\n///\n/// It is.\n";
const SAFETY: &str = "/// # Safety\n///\n/// It is.\n";

#[test]
fn invariants_are_those_of_the_type() {
    assert_eq!(
        cited(&method(INVARIANTS, "fn f()", "By the type invariant.")),
        ["invariants of A"]
    );
    assert!(fault(&method("", "fn f()", "By the type invariant."))
        .ends_with("`A` has no section # Invariants"));
    assert!(fault(&method(
        "/// # Invariants of more\n",
        "fn f()",
        "By the type invariant."
    ))
    .contains("has no section"));
    assert!(
        fault("fn f() {\n// SAFETY: By the type invariant.\nunsafe { g() } }")
            .contains("it is in no impl")
    );
    let of_other =
        "impl From<A> for Error { fn f() {\n// SAFETY: By the type invariant.\nunsafe { g() } } }";
    assert!(fault(of_other).contains("`Error` is not of this repository"));
}

#[test]
fn another_type_can_be_named() {
    let other = format!("{INVARIANTS}enum B {{}}\n");
    let named = method("", "fn f()", "By the type invariant of `B`.");
    assert_eq!(cited(&format!("{other}{named}")), ["invariants of B"]);
    assert!(fault(&format!("enum B {{}}\n{named}")).ends_with("`B` has no section # Invariants"));
    let referring = method(
        "/// # Invariants\n///\n/// As for [`B`].\n",
        "fn f()",
        "By the type invariant.",
    );
    assert_eq!(cited(&format!("{other}{referring}")), ["invariants of A"]);
    assert!(
        fault(&format!("enum B {{}}\n{referring}")).ends_with("`B` has no section # Invariants")
    );
    let stock = method("", "fn f(_: KBox)", "By the type invariant of `KBox`.");
    assert_eq!(
        cited(&stock),
        ["invariants of KBox, which is not of this repository"]
    );
}

#[test]
fn requirements_are_those_of_the_function() {
    let head = format!("{SAFETY}unsafe fn f()");
    assert_eq!(
        cited(&method("", &head, "By the safety requirement.")),
        ["requirements of A::f"]
    );
    assert!(fault(&method("", "fn f()", "By the safety requirement."))
        .ends_with("the function is not unsafe"));
    let (_, faults) = world(&method("", "unsafe fn f()", "By the safety requirement.")).entries();
    assert_eq!(faults.len(), 2);
    assert!(faults[0].ends_with("A::f: unsafe, without a section # Safety"));
    assert!(faults[1].ends_with("`A::f` has no section # Safety"));
}

#[test]
fn requirements_can_be_written_elsewhere() {
    let see = |what| format!("/// # Safety\n///\n/// {what}\nunsafe extern \"C\" fn f()");
    let by = "By the safety requirements.";
    let at_type = "/// The functions share one safety requirement.\n";
    let elsewhere = ["requirements of A::f, which are those of A"];
    assert_eq!(cited(&method(at_type, &see("See [`A`]."), by)), elsewhere);
    assert!(fault(&method("", &see("See [`A`]."), by))
        .contains("`A`, which has no safety requirements"));
    let at_function = format!("{SAFETY}unsafe fn g() {{}}\n{}", see("As for [`Self::g`]."));
    assert_eq!(
        cited(&method("", &at_function, by)),
        ["requirements of A::f, which are those of Self::g"]
    );
    let at_safe = format!("fn g() {{}}\n{}", see("As for [`Self::g`]."));
    assert!(fault(&method("", &at_safe, by)).contains("`Self::g` has no section # Safety"));
}

#[test]
fn traits_speak_for_their_functions() {
    let of_trait = "impl B for A {\nunsafe fn f() {\n// SAFETY: By the safety requirement.\nunsafe { bindings::f() }\n}\n}\n";
    let declared = format!("trait B {{\n{SAFETY}unsafe fn f();\n}}\n");
    assert_eq!(
        cited(&format!("{declared}{of_trait}")),
        ["requirements of B::f"]
    );
    assert_eq!(
        cited(of_trait),
        ["requirements of B::f, which is not of this repository"]
    );
    let promise = "// SAFETY: By the safety requirement.\nunsafe impl B for A {}\n";
    assert_eq!(
        cited(&format!("{SAFETY}unsafe trait B {{}}\n{promise}")),
        ["requirements of B"]
    );
}

#[test]
fn nothing_refers_to_itself() {
    let circle = method(
        "/// # Invariants\n///\n/// As for [`A`].\n",
        "fn f()",
        "By the type invariant.",
    );
    assert!(fault(&circle).ends_with("`A` refers to others in a circle"));
    let head = "/// # Safety\n///\n/// As for [`Self::f`].\nunsafe fn f()";
    assert!(fault(&method("", head, "By the safety requirement."))
        .ends_with("`Self::f` refers to others in a circle"));
}

#[test]
fn functions_inside_of_others_have_requirements_of_their_own() {
    let inner = "fn g() {\n// SAFETY: By the safety requirement.\nunsafe { bindings::f() }\n}";
    let outer = |inner: &str| format!("{SAFETY}unsafe fn f() {{\n{inner}\n}}");
    assert!(fault(&outer(inner)).ends_with("the function is not unsafe"));
    assert_eq!(
        cited(&outer(&format!("{SAFETY}unsafe {inner}"))),
        ["requirements of g"]
    );
    assert!(fault("fn f() { unsafe fn g() {} }").ends_with("g: unsafe, without a section # Safety"));
}

#[test]
fn above_is_in_the_same_item() {
    let two = |first: &str, between: &str, second: &str| {
        format!("{INVARIANTS}struct A;\nimpl A {{\nfn f() {{\n{first}\nunsafe {{ g() }};\n{between}\n{second}\nunsafe {{ h() }};\n}}\n}}")
    };
    let by = "// SAFETY: By the type invariant.";
    let above = "// SAFETY: As above; more.";
    assert_eq!(cited(&two(by, "", above)), ["invariants of A"]);
    assert_eq!(
        cited(&two("// SAFETY: It is so.", "", above)),
        ["the reason above, in A::f"]
    );
    assert_eq!(cited(&two(by, "}\nfn i() {", above)), ["invariants of A"]);
    assert!(fault(&two(by, "}\n}\nimpl A {\nfn i() {", above))
        .ends_with("no comment of the same item is above"));
    let invariant = "// INVARIANT: It is.\n// SAFETY: As above.";
    assert_eq!(
        cited(&two(by, "}\nfn i() {", invariant)),
        ["the INVARIANT above"]
    );
    assert_eq!(
        cited("// SAFETY: It is.\nunsafe impl Send for A {}\n// SAFETY: As above.\nunsafe impl Sync for A {}"),
        ["the reason above, in <A as Send>"]
    );
    assert!(fault("// SAFETY: As above.\nunsafe impl Sync for A {}").contains("no comment"));
}

#[test]
fn functions_that_are_named_argue() {
    let two = |other: &str, name: &str| {
        format!("struct A;\nimpl A {{\nfn g() {{ {other} }}\nfn f() {{\n// SAFETY: As in `{name}`.\nunsafe {{ h() }} }} }}")
    };
    let argument = "\n// SAFETY: It is.\nunsafe { h() }";
    assert_eq!(cited(&two(argument, "Self::g")), ["what is said in A::g"]);
    assert_eq!(cited(&two(argument, "g")), ["what is said in A::g"]);
    assert!(fault(&two("", "g")).ends_with("`A::g` has no SAFETY comment"));
    assert!(fault(&two(argument, "Self::h")).ends_with("there is no function `Self::h`"));
}

#[test]
fn names_are_those_of_the_code() {
    assert!(cited("fn f() {\n// SAFETY: `g` of `of_c` is `f`.\nunsafe { g() } }").is_empty());
    assert!(fault("fn f() {\n// SAFETY: `gone` is.\nunsafe { g() } }")
        .contains("`gone` is neither in the code"));
}

#[test]
fn nothing_is_without_a_comment() {
    assert!(fault("fn f() { unsafe { g() } }").ends_with("f: other: g(): no SAFETY comment"));
    assert!(
        fault("unsafe impl Send for A {}").ends_with("impl: impl Send for A: no SAFETY comment")
    );
    assert!(
        fault("/// # Unsafe\nunsafe trait A {}").ends_with("A: unsafe, without a section # Safety")
    );
}
