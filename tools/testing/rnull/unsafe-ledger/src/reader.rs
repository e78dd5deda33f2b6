// SPDX-License-Identifier: GPL-2.0

//! Finds the unsafe code of a Rust file.

use crate::comment::{self, Comment};
use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use std::{collections::HashSet, ops::Range};
use syn::{
    spanned::Spanned,
    visit::{self, Visit},
    Attribute, Block, ImplItem, Item, Signature, Token, TraitItem, Type,
};

/// A type, a trait or a function.
pub struct Definition {
    /// `Type::method`, `Trait::method`, otherwise a single name.
    pub name: String,
    pub docs: String,
    pub is_unsafe: bool,
    /// Whether it is a method in the `impl` of a trait.
    pub of_trait: bool,
}

/// Whether a path is that of a function, not that of a type or trait.
pub fn is_function(path: &str) -> bool {
    let name = path.rsplit("::").next().unwrap_or(path);
    !name.starts_with(char::is_uppercase)
}

/// The items around a piece of code.
#[derive(Clone, Default)]
pub struct Scope {
    /// Their names, the outermost first.
    pub path: Vec<String>,
    /// The type of the `impl`, or the trait that is declared.
    pub self_type: Option<String>,
    /// The trait that the `impl` implements.
    pub of_trait: Option<String>,
    /// The innermost function of the `impl`, as an index of `File::definitions`.
    pub function: Option<usize>,
    /// The line of the outermost item that is not a module.
    pub start: usize,
}

/// An unsafe block, `impl` or attribute.
pub struct Site {
    pub line: usize,
    /// "impl" or "attribute", nothing for a block.
    pub kind: Option<&'static str>,
    pub block: Option<Block>,
    /// The position of the code in the text of the file.
    pub range: Range<usize>,
    pub scope: Scope,
    pub comment: Option<Comment>,
}

#[derive(Default)]
pub struct File {
    pub path: String,
    pub text: String,
    pub sites: Vec<Site>,
    pub definitions: Vec<Definition>,
    /// Every identifier in the code.
    pub names: HashSet<String>,
    /// The lines with an `unsafe` that is not visited.
    pub unknown: Vec<usize>,
}

#[derive(Default)]
struct Reader {
    file: File,
    scope: Scope,
    /// The positions of the `unsafe` keywords that were visited.
    visited: HashSet<usize>,
}

fn visit_words(tokens: TokenStream, visit: &mut impl FnMut(&Ident)) {
    for token in tokens {
        match token {
            TokenTree::Ident(word) => visit(&word),
            TokenTree::Group(group) => visit_words(group.stream(), visit),
            _ => {}
        }
    }
}

impl Reader {
    fn source(&self, code: impl Spanned) -> &str {
        &self.file.text[code.span().byte_range()]
    }

    fn add(&mut self, keyword: Span, kind: Option<&'static str>, range: Range<usize>) -> &mut Site {
        self.visited.insert(keyword.byte_range().start);
        let line = keyword.start().line;
        let comment = comment::above(&self.file.text, line);
        let (scope, block) = (self.scope.clone(), None);
        let site = Site {
            line,
            kind,
            block,
            range,
            scope,
            comment,
        };
        self.file.sites.push(site);
        self.file.sites.last_mut().unwrap()
    }

    fn unsafe_block(&mut self, keyword: Span, block: &Block) {
        let braces = block.brace_token.span;
        let range = braces.open().byte_range().end..braces.close().byte_range().start;
        self.add(keyword, None, range).block = Some(block.clone());
        self.visit_block(block);
    }

    fn define(&mut self, name: &Ident, docs: &[Attribute], keyword: Option<Token![unsafe]>) {
        let position = keyword.map(|keyword| keyword.span.byte_range().start);
        self.visited.extend(position);
        let is_method = is_function(&name.to_string()) && self.scope.function.is_none();
        let owner = self.scope.self_type.as_ref().filter(|_| is_method);
        let docs = docs.iter().map(|attribute| self.source(attribute));
        let docs = docs.filter_map(|line| line.strip_prefix("///"));
        let docs = docs.map(|line| line.strip_prefix(' ').unwrap_or(line));
        self.file.definitions.push(Definition {
            name: owner.map_or(name.to_string(), |owner| format!("{owner}::{name}")),
            docs: docs.collect::<Vec<_>>().join("\n"),
            is_unsafe: keyword.is_some(),
            of_trait: is_method && self.scope.of_trait.is_some(),
        });
    }

    fn enter(&mut self, name: &Ident) {
        self.scope.path.push(name.to_string());
    }

    fn enter_function(&mut self, signature: &Signature, attributes: &[Attribute]) {
        self.define(&signature.ident, attributes, signature.unsafety);
        self.enter(&signature.ident);
        self.scope.function = Some(self.file.definitions.len() - 1);
    }

    fn enter_impl(&mut self, name: String, self_type: String, of_trait: Option<String>) {
        self.scope.path.push(name);
        self.scope.function = None;
        (self.scope.self_type, self.scope.of_trait) = (Some(self_type), of_trait);
    }

    /// The name of a type without path, generics and reference.
    fn type_name(&self, kind: &Type) -> String {
        match kind {
            Type::Path(kind) => kind.path.segments.last().unwrap().ident.to_string(),
            Type::Reference(reference) => self.type_name(&reference.elem),
            other => self.source(other).to_string(),
        }
    }

    /// Visits the tokens of a macro as items, otherwise each unsafe block and each group in them.
    fn visit_tokens(&mut self, tokens: TokenStream) {
        let mut has_unsafe = false;
        visit_words(tokens.clone(), &mut |word| has_unsafe |= word == "unsafe");
        if !has_unsafe {
            return;
        }
        if let Ok(file) = syn::parse2::<syn::File>(tokens.clone()) {
            return self.visit_file(&file);
        }
        let mut keyword = None;
        for token in tokens {
            if let TokenTree::Group(group) = &token {
                let keyword = keyword.filter(|_| group.delimiter() == Delimiter::Brace);
                match (keyword, syn::parse2(token.clone().into())) {
                    (Some(keyword), Ok(block)) => self.unsafe_block(keyword, &block),
                    _ => self.visit_tokens(group.stream()),
                }
            }
            keyword = match token {
                TokenTree::Ident(word) if word == "unsafe" => Some(word.span()),
                _ => None,
            };
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        let outer = self.scope.clone();
        if outer.function.is_none() && outer.self_type.is_none() {
            self.scope.start = item.span().start().line;
        }
        match item {
            Item::Struct(item) => self.define(&item.ident, &item.attrs, None),
            Item::Enum(item) => self.define(&item.ident, &item.attrs, None),
            Item::Union(item) => self.define(&item.ident, &item.attrs, None),
            Item::Fn(item) => self.enter_function(&item.sig, &item.attrs),
            Item::Const(item) => self.enter(&item.ident),
            Item::Static(item) => self.enter(&item.ident),
            Item::Mod(item) => self.enter(&item.ident),
            Item::Trait(item) => {
                self.define(&item.ident, &item.attrs, item.unsafety);
                let name = item.ident.to_string();
                self.enter_impl(name.clone(), name, None);
            }
            Item::Impl(item) => {
                let name = self.type_name(&item.self_ty);
                let of = item.trait_.as_ref().and_then(|of| of.1.segments.last());
                let full = |of| format!("<{name} as {}>", self.source(of));
                let full = of.map_or(name.clone(), full);
                self.enter_impl(full, name, of.map(|of| of.ident.to_string()));
                if let Some(keyword) = item.unsafety {
                    let start = item.impl_token.span.byte_range().start;
                    let end = item.brace_token.span.open().byte_range().start;
                    self.add(keyword.span, Some("impl"), start..end);
                }
            }
            Item::Macro(item) => {
                let name = item.ident.as_ref().map(|name| format!("{name}!"));
                self.scope.path.extend(name);
            }
            _ => {}
        }
        visit::visit_item(self, item);
        self.scope = outer;
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let outer = self.scope.clone();
        match item {
            ImplItem::Fn(item) => self.enter_function(&item.sig, &item.attrs),
            ImplItem::Const(item) => self.enter(&item.ident),
            _ => {}
        }
        visit::visit_impl_item(self, item);
        self.scope = outer;
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        let outer = self.scope.clone();
        if let TraitItem::Fn(item) = item {
            self.enter_function(&item.sig, &item.attrs);
        }
        visit::visit_trait_item(self, item);
        self.scope = outer;
    }

    fn visit_type_bare_fn(&mut self, function: &'ast syn::TypeBareFn) {
        let position = function
            .unsafety
            .map(|keyword| keyword.span.byte_range().start);
        self.visited.extend(position);
        visit::visit_type_bare_fn(self, function);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.visit_tokens(item.tokens.clone());
    }

    fn visit_expr_unsafe(&mut self, expr: &'ast syn::ExprUnsafe) {
        self.unsafe_block(expr.unsafe_token.span, &expr.block);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let path = attribute.path();
        // The last three are unsafe, although the edition of 2021 does not ask for the keyword.
        let names = ["unsafe", "no_mangle", "export_name", "link_section"];
        if names.iter().any(|name| path.is_ident(name)) {
            self.add(
                path.span(),
                Some("attribute"),
                attribute.span().byte_range(),
            );
        }
    }
}

/// Reads a file.
pub fn read(path: &str, text: String) -> syn::Result<File> {
    // With `$`, no part of `macro_rules!` could be parsed.
    let tokens: TokenStream = text.replace('$', "_").parse()?;
    let parsed: syn::File = syn::parse2(tokens.clone())?;
    let mut reader = Reader::default();
    reader.file.path = path.to_string();
    reader.file.text = text;
    reader.visit_file(&parsed);
    let mut file = reader.file;
    visit_words(tokens, &mut |word| {
        let span = word.span();
        if word == "unsafe" && !reader.visited.contains(&span.byte_range().start) {
            file.unknown.push(span.start().line);
        }
        let word = word.to_string();
        file.names.insert(word.trim_start_matches('_').to_string());
        file.names.insert(word);
    });
    file.sites.sort_by_key(|site| site.line);
    Ok(file)
}
