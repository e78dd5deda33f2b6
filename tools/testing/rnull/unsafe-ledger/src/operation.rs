// SPDX-License-Identifier: GPL-2.0

//! Describes the operations in an unsafe block, as far as they can be recognised without types.

use crate::reader::{is_function, File, Site};
use regex_lite::Regex;
use std::{collections::BTreeSet, ops::Range, sync::LazyLock};
use syn::{
    punctuated::Punctuated,
    spanned::Spanned,
    visit::{self, Visit},
    Expr, ExprUnary, Path, Token, UnOp,
};

/// The kinds of operations with what the totals call them.
pub const KINDS: [(&str, &str); 9] = [
    ("C", "calls of C functions"),
    ("call", "calls of unsafe functions of this repository"),
    ("conversion", "conversions of pointers and values"),
    ("dereference", "dereferences"),
    ("access", "accesses through pointers"),
    ("pointer", "pointer offsets and field projections"),
    ("impl", "unsafe impls"),
    ("attribute", "unsafe attributes"),
    ("other", "other operations"),
];

// Unsafe functions of the language and the kernel crate.
const CONVERSIONS: &str = "as_mut as_ref assume_init assume_init_mut assume_init_ref \
    cast_unchecked from_bytes_with_nul_unchecked from_char_ptr from_char_ptr_mut from_foreign \
    from_ptr from_raw from_raw_parts from_raw_parts_mut from_utf8_unchecked get_unchecked_mut \
    into_inner_unchecked map_unchecked map_unchecked_mut new_unchecked transmute transmute_copy \
    unreachable_unchecked unwrap_unchecked zeroed";
const ACCESSES: &str = "copy copy_from copy_from_nonoverlapping copy_nonoverlapping copy_to \
    copy_to_nonoverlapping drop_in_place get_unchecked raw_init read read_unaligned \
    read_volatile replace write write_bytes write_unaligned write_volatile";
const POINTER_STEPS: &str = "add byte_add byte_offset byte_sub offset offset_from sub";
/// The modules with these functions; other modules have safe functions of the same names.
const MODULES: &str = "mem pin_init ptr slice";

/// How the layout of code is made independent of line breaks.
static LAYOUT: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let replacements = [
        (r"//[^\n]*", ""),
        (r"\s+", " "),
        (r"([(\[]) ", "$1"),
        (r",?( ?[)\]])", "$1"),
        (r" ([.)\]])", "$1"),
        (r", \}", " }"),
        (r"^ |;? $", ""),
    ];
    replacements
        .map(|(pattern, with)| (Regex::new(pattern).unwrap(), with))
        .into()
});

fn has(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|known| known == name)
}

fn known(name: &str) -> Option<&'static str> {
    let lists = [
        (CONVERSIONS, "conversion"),
        (ACCESSES, "access"),
        (POINTER_STEPS, "pointer"),
    ];
    lists
        .iter()
        .find(|(names, _)| has(names, name))
        .map(|(_, kind)| *kind)
}

/// Collects the operations in a block, with the parts of the block that do nothing unsafe.
struct Finder<'a> {
    files: &'a [File],
    self_type: Option<&'a str>,
    kinds: Vec<&'static str>,
    /// The parts to leave out, in their order, with what to write instead.
    left_out: Vec<(Range<usize>, &'static str)>,
    in_argument: bool,
}

impl Finder<'_> {
    /// Whether this repository has such a function.
    fn is_defined(&self, is_unsafe: bool, is_it: impl Fn(&str) -> bool) -> bool {
        let mut definitions = self.files.iter().flat_map(|file| &file.definitions);
        definitions.any(|found| {
            is_function(&found.name) && found.is_unsafe == is_unsafe && is_it(&found.name)
        })
    }

    fn called_path(&self, path: &Path) -> Option<&'static str> {
        let names: Vec<String> = path
            .segments
            .iter()
            .map(|part| part.ident.to_string())
            .collect();
        let (name, before) = names.split_last()?;
        let owner = before.last().map_or("", |owner| owner);
        if owner == "bindings" {
            return is_function(name).then_some("C");
        }
        let owner = self.self_type.filter(|_| owner == "Self").unwrap_or(owner);
        let full = match is_function(owner) {
            true => name.clone(),
            false => format!("{owner}::{name}"),
        };
        if self.is_defined(true, |found| found == full) {
            return Some("call");
        }
        let is_known =
            |kind: &&str| has(MODULES, owner) || !owner.is_empty() && *kind == "conversion";
        known(name).filter(is_known)
    }

    fn called_method(&self, call: &syn::ExprMethodCall) -> Option<&'static str> {
        let name = call.method.to_string();
        let is_it = |found: &str| {
            found
                .split_once("::")
                .is_some_and(|(_, found)| found == name)
        };
        // Safe functions have some of the names, too. They are more likely in arguments.
        let is_safe = match has(POINTER_STEPS, &name) {
            true => call.args.is_empty(),
            false => self.is_defined(false, is_it),
        };
        if self.in_argument && is_safe {
            None
        } else if self.is_defined(true, is_it) {
            Some("call")
        } else {
            known(&name)
        }
    }

    fn visit_arguments(&mut self, arguments: &Punctuated<Expr, Token![,]>) {
        let outer = std::mem::replace(&mut self.in_argument, true);
        let (all_kinds, all_left_out) = (self.kinds.len(), self.left_out.len());
        for argument in arguments {
            let (kinds, left_out) = (self.kinds.len(), self.left_out.len());
            self.visit_expr(argument);
            if self.kinds.len() == kinds {
                self.left_out.truncate(left_out);
                self.left_out.push((argument.span().byte_range(), "_"));
            }
        }
        if self.kinds.len() == all_kinds && !arguments.is_empty() {
            self.left_out.truncate(all_left_out);
            self.left_out.push((arguments.span().byte_range(), ".."));
        }
        self.in_argument = outer;
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let Expr::Path(path) = &*call.func {
            self.kinds.extend(self.called_path(&path.path));
        }
        self.visit_expr(&call.func);
        self.visit_arguments(&call.args);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.kinds.extend(self.called_method(call));
        self.visit_expr(&call.receiver);
        self.visit_arguments(&call.args);
    }

    fn visit_path_arguments(&mut self, arguments: &'ast syn::PathArguments) {
        if !arguments.is_empty() {
            self.left_out.push((arguments.span().byte_range(), ""));
        }
    }

    fn visit_expr_unary(&mut self, unary: &'ast ExprUnary) {
        if matches!(unary.op, UnOp::Deref(_)) {
            self.kinds.push("dereference");
        }
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_raw_addr(&mut self, address: &'ast syn::ExprRawAddr) {
        let first = self.kinds.len();
        visit::visit_expr_raw_addr(self, address);
        // The field is not accessed.
        if self.kinds.get(first) == Some(&"dereference") {
            self.kinds[first] = "pointer";
        }
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        let name = item
            .path
            .segments
            .last()
            .filter(|name| name.ident == "container_of");
        self.kinds.extend(name.map(|_| "pointer"));
    }

    // It is a site of its own.
    fn visit_expr_unsafe(&mut self, _: &'ast syn::ExprUnsafe) {}
}

/// The kinds of the operations at a site, then the kinds with the code as one line.
pub fn describe(files: &[File], file: &File, site: &Site) -> (Vec<&'static str>, String) {
    let self_type = site.scope.self_type.as_deref();
    let (kinds, left_out, in_argument) = (Vec::new(), Vec::new(), false);
    let mut finder = Finder {
        files,
        self_type,
        kinds,
        left_out,
        in_argument,
    };
    finder.kinds.extend(site.kind);
    if let Some(block) = &site.block {
        finder.visit_block(block);
    }
    if finder.kinds.is_empty() {
        finder.kinds.push("other");
    }
    let (mut text, mut at) = (String::new(), site.range.start);
    for (range, instead) in finder.left_out {
        text += &file.text[at..range.start];
        text += instead;
        at = range.end;
    }
    text += &file.text[at..site.range.end];
    for (pattern, with) in &*LAYOUT {
        text = pattern.replace_all(&text, *with).into_owned();
    }
    let labels: BTreeSet<&str> = finder.kinds.iter().copied().collect();
    let labels: Vec<&str> = labels.into_iter().collect();
    (finder.kinds, format!("{}: {text}", labels.join(" + ")))
}
