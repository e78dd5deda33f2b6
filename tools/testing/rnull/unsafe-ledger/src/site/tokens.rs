// SPDX-License-Identifier: GPL-2.0

//! Small questions about syntax.

use crate::text;
use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Expr, Meta};

pub(super) fn docs(attributes: &[Attribute]) -> String {
    let mut lines = Vec::new();
    for attribute in attributes {
        if let Meta::NameValue(meta) = &attribute.meta {
            if let (
                true,
                Expr::Lit(syn::ExprLit {
                    lit: syn::Lit::Str(text),
                    ..
                }),
            ) = (meta.path.is_ident("doc"), &meta.value)
            {
                let text = text.value();
                lines.push(text.strip_prefix(' ').unwrap_or(&text).to_string());
            }
        }
    }
    lines.join("\n")
}

/// The name of a type, without what is around it.
pub(super) fn name_of(kind: &syn::Type) -> String {
    match kind {
        syn::Type::Path(path) => path
            .path
            .segments
            .last()
            .map_or(String::new(), |last| last.ident.to_string()),
        syn::Type::Reference(reference) => name_of(&reference.elem),
        syn::Type::Group(group) => name_of(&group.elem),
        syn::Type::Paren(paren) => name_of(&paren.elem),
        other => text::line(other.to_token_stream()),
    }
}

pub(super) fn position(span: Span) -> (usize, usize) {
    (span.start().line, span.start().column)
}

/// The body of a macro with its variables as names, each repetition once.
pub(super) fn plain(tokens: TokenStream) -> TokenStream {
    let mut plain = TokenStream::new();
    let mut tokens = tokens.into_iter().peekable();
    let is = |token: Option<&TokenTree>, marks: &str| matches!(token, Some(TokenTree::Punct(punct)) if marks.contains(punct.as_char()));
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(dollar) if dollar.as_char() == '$' => match tokens.next() {
                Some(TokenTree::Ident(name)) if name == "crate" => {
                    plain.extend([TokenTree::from(name)])
                }
                Some(TokenTree::Ident(name)) => {
                    let name = Ident::new(&format!("{}{name}", text::VARIABLE), name.span());
                    plain.extend([TokenTree::from(name)]);
                }
                Some(TokenTree::Group(group)) => {
                    plain.extend(self::plain(group.stream()));
                    if !is(tokens.peek(), "*+?") {
                        tokens.next();
                    }
                    tokens.next();
                }
                other => plain.extend(other),
            },
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), self::plain(group.stream()));
                inner.set_span(group.span());
                plain.extend([TokenTree::from(inner)]);
            }
            other => plain.extend([other]),
        }
    }
    plain
}

/// Attributes that are unsafe, although older editions do not ask for the word.
pub(super) fn is_unsafe_attribute(name: &Ident) -> bool {
    ["no_mangle", "export_name", "link_section"]
        .iter()
        .any(|known| name == known)
}

pub(super) fn says_unsafe(tokens: &TokenStream) -> bool {
    let mut positions = Vec::new();
    words(tokens.clone(), &mut |word| {
        if word == "unsafe" {
            positions.push(position(word.span()));
        }
    });
    !positions.is_empty()
}

pub(super) fn words(tokens: TokenStream, see: &mut impl FnMut(&Ident)) {
    for token in tokens {
        match token {
            TokenTree::Ident(word) => see(&word),
            TokenTree::Group(group) => words(group.stream(), see),
            _ => {}
        }
    }
}
