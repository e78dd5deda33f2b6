// SPDX-License-Identifier: GPL-2.0

//! What an unsafe block does.

use crate::text;
use proc_macro2::TokenStream;
use quote::ToTokens;
use std::{
    collections::{BTreeSet, HashSet},
    fmt,
};
use syn::{
    punctuated::Punctuated,
    visit::{self, Visit},
    visit_mut::{self, VisitMut},
    Block, Expr, ExprCall, ExprMethodCall, ExprPath, ExprRawAddr, ExprUnary, Macro, Path,
    PathArguments, Token, UnOp,
};

/// The kinds in the order of the totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A function of C.
    C,
    /// A function with safety requirements of this repository.
    Ours,
    /// A pointer becomes a reference, a box, or something else with a promise.
    Conversion,
    /// A pointer is followed.
    Dereference,
    /// Memory behind a pointer is read or written.
    Access,
    /// A pointer is moved within its allocation.
    Pointer,
    Impl,
    Attribute,
    /// What this list has no name for.
    Other,
}

impl Kind {
    pub const ALL: [Self; 9] = [
        Self::C,
        Self::Ours,
        Self::Conversion,
        Self::Dereference,
        Self::Access,
        Self::Pointer,
        Self::Impl,
        Self::Attribute,
        Self::Other,
    ];

    /// What the totals call it.
    pub fn plural(self) -> &'static str {
        match self {
            Self::C => "calls of C",
            Self::Ours => "calls of unsafe functions of this repository",
            Self::Conversion => "conversions",
            Self::Dereference => "dereferences",
            Self::Access => "reads or writes through a pointer",
            Self::Pointer => "steps of a pointer",
            Self::Impl => "impls",
            Self::Attribute => "attributes",
            Self::Other => "others",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::C => "C",
            Self::Ours => "call",
            Self::Conversion => "conversion",
            Self::Dereference => "dereference",
            Self::Access => "access",
            Self::Pointer => "pointer",
            Self::Impl => "impl",
            Self::Attribute => "attribute",
            Self::Other => "other",
        })
    }
}

/// Functions of the language and the kernel crate that are unsafe.
const CONVERSIONS: &str =
    "as_mut as_ref assume_init assume_init_mut assume_init_ref from_bytes_with_nul_unchecked \
    from_char_ptr from_char_ptr_mut from_foreign from_ptr from_raw from_raw_parts \
    from_raw_parts_mut from_utf8_unchecked get_unchecked_mut into_inner_unchecked \
    map_unchecked map_unchecked_mut new_unchecked transmute transmute_copy \
    unreachable_unchecked unwrap_unchecked zeroed cast_unchecked";
const ACCESSES: &str = "copy copy_from copy_from_nonoverlapping copy_nonoverlapping copy_to \
    copy_to_nonoverlapping drop_in_place get_unchecked raw_init read read_unaligned \
    read_volatile replace write write_bytes write_unaligned write_volatile";
const STEPS: &str = "add byte_add byte_offset byte_sub offset offset_from sub";
const MACROS: &str = "container_of";
/// Modules whose functions are meant; elsewhere the names above are also those of safe functions.
const MODULES: &str = "mem pin_init ptr slice";

fn has(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|known| known == name)
}

/// The functions of this repository.
#[derive(Default)]
pub struct Functions {
    /// Unsafe ones of types, with the type.
    pub methods: HashSet<(String, String)>,
    /// Unsafe ones of no type.
    pub free: HashSet<String>,
    /// The names of safe ones of types.
    pub safe: HashSet<String>,
}

impl Functions {
    fn has_method(&self, name: &str) -> bool {
        self.methods.iter().any(|(_, method)| method == name)
    }
}

/// What the meaning of a name depends on: what `Self` is there, which functions are unsafe.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub functions: &'a Functions,
    pub self_type: Option<&'a str>,
}

fn known(name: &str) -> Option<Kind> {
    if has(CONVERSIONS, name) {
        Some(Kind::Conversion)
    } else if has(ACCESSES, name) {
        Some(Kind::Access)
    } else if has(STEPS, name) {
        Some(Kind::Pointer)
    } else {
        None
    }
}

fn of_path(path: &Path, view: View<'_>) -> Option<Kind> {
    let names: Vec<String> = path
        .segments
        .iter()
        .map(|segment| segment.ident.to_string())
        .collect();
    let (name, before) = names.split_last()?;
    let is_function = !name.starts_with(|c: char| c.is_uppercase());
    match before.last().map(String::as_str) {
        Some("bindings") => is_function.then_some(Kind::C),
        None if view.functions.free.contains(name) => Some(Kind::Ours),
        None => None,
        Some(owner) => {
            let owner = view.self_type.filter(|_| owner == "Self").unwrap_or(owner);
            let is_type = owner.starts_with(|c: char| c.is_uppercase());
            if view
                .functions
                .methods
                .contains(&(owner.to_string(), name.clone()))
                || !is_type && view.functions.free.contains(name)
            {
                Some(Kind::Ours)
            } else {
                known(name).filter(|kind| *kind == Kind::Conversion || has(MODULES, owner))
            }
        }
    }
}

fn of_method(name: &str, view: View<'_>) -> Option<Kind> {
    if view.functions.has_method(name) {
        return Some(Kind::Ours);
    }
    known(name)
}

/// Finds what may be unsafe, as far as that can be seen without types.
struct Finder<'a> {
    view: View<'a>,
    kinds: Vec<Kind>,
    /// In the argument of a call, a name that safe functions have as well is theirs.
    argument: bool,
}

impl Finder<'_> {
    fn arguments(&mut self, arguments: &Punctuated<Expr, Token![,]>) {
        let before = std::mem::replace(&mut self.argument, true);
        arguments
            .iter()
            .for_each(|argument| self.visit_expr(argument));
        self.argument = before;
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(path) = &*call.func {
            self.kinds.extend(of_path(&path.path, self.view));
        }
        self.visit_expr(&call.func);
        self.arguments(&call.args);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let name = call.method.to_string();
        let is_step = has(STEPS, &name);
        // A step needs to know how far.
        let is_safe = if is_step {
            call.args.is_empty()
        } else {
            self.view.functions.safe.contains(&name)
        };
        if !(is_safe && self.argument) {
            self.kinds.extend(of_method(&name, self.view));
        }
        self.visit_expr(&call.receiver);
        self.arguments(&call.args);
    }

    fn visit_expr_unary(&mut self, unary: &'ast ExprUnary) {
        if matches!(unary.op, UnOp::Deref(_)) {
            self.kinds.push(Kind::Dereference);
        }
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_raw_addr(&mut self, address: &'ast ExprRawAddr) {
        let mut place = &*address.expr;
        loop {
            match place {
                Expr::Field(field) => place = &field.base,
                Expr::Paren(paren) => place = &paren.expr,
                Expr::Unary(ExprUnary {
                    op: UnOp::Deref(_),
                    expr,
                    ..
                }) => {
                    self.kinds.push(Kind::Pointer);
                    return self.visit_expr(expr);
                }
                other => return self.visit_expr(other),
            }
        }
    }

    fn visit_macro(&mut self, mac: &'ast Macro) {
        if mac
            .path
            .segments
            .last()
            .is_some_and(|name| has(MACROS, &name.ident.to_string()))
        {
            self.kinds.push(Kind::Pointer);
        }
    }

    // What it does is its own entry.
    fn visit_expr_unsafe(&mut self, _: &'ast syn::ExprUnsafe) {}
}

fn kinds_of(view: View<'_>, argument: bool, visit: impl FnOnce(&mut Finder<'_>)) -> Vec<Kind> {
    let mut finder = Finder {
        view,
        kinds: Vec::new(),
        argument,
    };
    visit(&mut finder);
    finder.kinds
}

/// Leaves out arguments of calls, but those that may be unsafe themselves.
struct Shortener<'a>(View<'a>);

impl Shortener<'_> {
    fn shorten(&mut self, arguments: &mut Punctuated<Expr, Token![,]>) {
        let risky =
            |expr: &Expr| !kinds_of(self.0, true, |finder| finder.visit_expr(expr)).is_empty();
        if arguments.iter().any(risky) {
            let kept = |expr: &Expr| {
                if risky(expr) {
                    expr.clone()
                } else {
                    syn::parse_quote!(_)
                }
            };
            *arguments = arguments.iter().map(kept).collect();
        } else if !arguments.is_empty() {
            *arguments = std::iter::once::<Expr>(syn::parse_quote!(..)).collect();
        }
    }
}

impl VisitMut for Shortener<'_> {
    fn visit_expr_call_mut(&mut self, call: &mut ExprCall) {
        self.shorten(&mut call.args);
        visit_mut::visit_expr_call_mut(self, call);
    }

    fn visit_expr_method_call_mut(&mut self, call: &mut ExprMethodCall) {
        self.shorten(&mut call.args);
        visit_mut::visit_expr_method_call_mut(self, call);
    }

    fn visit_expr_path_mut(&mut self, path: &mut ExprPath) {
        for segment in &mut path.path.segments {
            segment.arguments = PathArguments::None;
        }
    }
}

/// An operation, for the eye.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Operation {
    pub kinds: Vec<Kind>,
    pub text: String,
}

impl Operation {
    pub fn new(kind: Kind, text: String) -> Self {
        Self {
            kinds: vec![kind],
            text,
        }
    }

    pub fn of_block(block: &Block, view: View<'_>) -> Self {
        let mut kinds = kinds_of(view, false, |finder| finder.visit_block(block));
        if kinds.is_empty() {
            kinds.push(Kind::Other);
        }
        let mut short = block.clone();
        Shortener(view).visit_block_mut(&mut short);
        let tokens: TokenStream = short.stmts.iter().map(ToTokens::to_token_stream).collect();
        Self {
            kinds,
            text: text::line(tokens).trim_end_matches(';').to_string(),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: BTreeSet<String> = self.kinds.iter().map(Kind::to_string).collect();
        write!(
            f,
            "{}: {}",
            kinds.into_iter().collect::<Vec<_>>().join(" + "),
            self.text
        )
    }
}

#[cfg(test)]
mod tests;
