// SPDX-License-Identifier: GPL-2.0

//! The walk through a file, also where it is part of a macro.

use super::{
    tokens::{docs, is_unsafe_attribute, name_of, plain, position, says_unsafe, words},
    Code, Defined, Definition, Found, Function, Implementation, Place, Site,
};
use crate::{comment::Lines, text};
use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    parse::Parser,
    punctuated::Punctuated,
    spanned::Spanned,
    visit::{self, Visit},
    Attribute, Block, Expr, File, Item, Macro, Signature, Token,
};

struct Reader<'a> {
    lines: &'a Lines,
    place: Place,
    found: Found,
    /// Where each `unsafe` that was understood stands.
    understood: Vec<(usize, usize)>,
}

impl Reader<'_> {
    fn understand(&mut self, span: Span) {
        self.understood.push(position(span));
    }

    fn add(&mut self, span: Span, code: Code) {
        self.understand(span);
        let line = span.start().line;
        self.found.sites.push(Site {
            line,
            code,
            place: self.place.clone(),
            safety: self.lines.safety(line),
        });
    }

    fn define(&mut self, name: &Ident, attributes: &[Attribute], kind: Defined) {
        let owner = match (kind, self.place.self_type()) {
            (Defined::Function { .. }, Some(owner)) if self.place.functions.is_empty() => {
                format!("{owner}::")
            }
            _ => String::new(),
        };
        self.found.definitions.push(Definition {
            name: format!("{owner}{name}"),
            docs: docs(attributes),
            kind,
        });
    }

    /// Looks at what is inside of `change`, which is undone afterwards.
    fn inside(&mut self, change: impl FnOnce(&mut Place), look: impl FnOnce(&mut Self)) {
        let before = self.place.clone();
        change(&mut self.place);
        look(self);
        self.place = before;
    }

    fn function(
        &mut self,
        signature: &Signature,
        attributes: &[Attribute],
        look: impl FnOnce(&mut Self),
    ) {
        let is_unsafe = signature.unsafety.is_some();
        if let Some(word) = &signature.unsafety {
            self.understand(word.span());
        }
        let implementation = self.place.implementation.as_ref();
        let is_of_trait = self.place.functions.is_empty()
            && implementation.is_some_and(|found| found.of.is_some());
        let kind = Defined::Function {
            is_unsafe,
            is_of_trait,
        };
        self.define(&signature.ident, attributes, kind);
        let function = Function {
            name: signature.ident.to_string(),
            is_unsafe,
            docs: docs(attributes),
        };
        self.inside(|place| place.functions.push(function), look);
    }

    /// Looks at tokens that a macro gets, as what they look like.
    fn tokens(&mut self, tokens: TokenStream) {
        if !says_unsafe(&tokens) {
            return;
        }
        let list = Punctuated::<Expr, Token![,]>::parse_terminated;
        if let Ok(file) = syn::parse2::<File>(tokens.clone()) {
            self.visit_file(&file);
        } else if let Ok(list) = list.parse2(tokens.clone()) {
            list.iter().for_each(|expr| self.visit_expr(expr));
        } else if let Ok(statements) = Block::parse_within.parse2(tokens.clone()) {
            statements
                .iter()
                .for_each(|statement| self.visit_stmt(statement));
        } else {
            self.scan(tokens);
        }
    }

    /// Looks for blocks in tokens that are no Rust by themselves.
    fn scan(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match (&token, tokens.peek()) {
                (TokenTree::Ident(word), Some(TokenTree::Group(group)))
                    if word == "unsafe" && group.delimiter() == Delimiter::Brace =>
                {
                    let body = TokenTree::from(group.clone());
                    match syn::parse2::<Block>(body.into()) {
                        Ok(block) => {
                            self.add(word.span(), Code::Block(block.clone()));
                            self.visit_block(&block);
                        }
                        Err(_) => {
                            self.add(word.span(), Code::Tokens(group.stream()));
                            self.scan(group.stream());
                        }
                    }
                    tokens.next();
                }
                (TokenTree::Group(group), _) => self.tokens(group.stream()),
                _ => {}
            }
        }
    }

    /// Looks at the bodies of a macro by example.
    fn rules(&mut self, tokens: TokenStream) {
        let mut arrow = false;
        for token in tokens {
            match token {
                TokenTree::Group(group) if arrow => {
                    self.tokens(plain(group.stream()));
                    arrow = false;
                }
                TokenTree::Punct(punct) => arrow = punct.as_char() == '>',
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let start = item.span().start().line;
        let outermost = self.place.functions.is_empty() && self.place.implementation.is_none();
        let change = |place: &mut Place| {
            if outermost {
                place.start = start;
            }
        };
        self.inside(change, |reader| visit::visit_item(reader, item));
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.inside(
            |place| place.modules.push(module.ident.to_string()),
            |reader| visit::visit_item_mod(reader, module),
        );
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let of = item
            .trait_
            .as_ref()
            .and_then(|(_, path, _)| path.segments.last());
        let implementation = Implementation {
            self_type: name_of(&item.self_ty),
            of: of.map(|name| name.ident.to_string()),
            of_what: of.map_or(String::new(), |name| text::line(name.to_token_stream())),
        };
        let look = |reader: &mut Self| {
            if let Some(word) = &item.unsafety {
                let (mut head, generics) = (TokenStream::new(), &item.generics);
                let (_, path, _) = item
                    .trait_
                    .as_ref()
                    .expect("an inherent impl is not unsafe");
                quote::quote!(impl).to_tokens(&mut head);
                generics.to_tokens(&mut head);
                path.to_tokens(&mut head);
                quote::quote!(for).to_tokens(&mut head);
                item.self_ty.to_tokens(&mut head);
                generics.where_clause.to_tokens(&mut head);
                reader.add(word.span(), Code::Impl(text::line(head)));
            }
            visit::visit_item_impl(reader, item);
        };
        self.inside(|place| place.enter(implementation), look);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        if let Some(word) = &item.unsafety {
            self.understand(word.span());
        }
        self.define(
            &item.ident,
            &item.attrs,
            Defined::Trait {
                is_unsafe: item.unsafety.is_some(),
            },
        );
        let implementation = Implementation {
            self_type: item.ident.to_string(),
            of: None,
            of_what: String::new(),
        };
        self.inside(
            |place| place.enter(implementation),
            |reader| visit::visit_item_trait(reader, item),
        );
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.attrs, |reader| {
            visit::visit_item_fn(reader, item)
        });
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.attrs, |reader| {
            visit::visit_impl_item_fn(reader, item)
        });
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.function(&item.sig, &item.attrs, |reader| {
            visit::visit_trait_item_fn(reader, item)
        });
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.define(&item.ident, &item.attrs, Defined::Type);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.define(&item.ident, &item.attrs, Defined::Type);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.define(&item.ident, &item.attrs, Defined::Type);
        visit::visit_item_union(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.inside(
            |place| place.other.push(item.ident.to_string()),
            |reader| visit::visit_item_const(reader, item),
        );
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.inside(
            |place| place.other.push(item.ident.to_string()),
            |reader| visit::visit_item_static(reader, item),
        );
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.inside(
            |place| place.other.push(item.ident.to_string()),
            |reader| visit::visit_impl_item_const(reader, item),
        );
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        match &item.ident {
            Some(name) => self.inside(
                |place| place.modules.push(format!("{name}!")),
                |reader| reader.rules(item.mac.tokens.clone()),
            ),
            None => self.visit_macro(&item.mac),
        }
    }

    fn visit_macro(&mut self, mac: &'ast Macro) {
        self.tokens(mac.tokens.clone());
    }

    fn visit_expr_unsafe(&mut self, block: &'ast syn::ExprUnsafe) {
        self.add(block.unsafe_token.span(), Code::Block(block.block.clone()));
        visit::visit_expr_unsafe(self, block);
    }

    fn visit_type_bare_fn(&mut self, function: &'ast syn::TypeBareFn) {
        if let Some(word) = &function.unsafety {
            self.understand(word.span());
        }
        visit::visit_type_bare_fn(self, function);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if attribute.path().is_ident("unsafe") {
            let text = text::line(attribute.to_token_stream());
            self.add(attribute.path().span(), Code::Attribute(text));
        } else if attribute
            .path()
            .segments
            .last()
            .is_some_and(|name| is_unsafe_attribute(&name.ident))
        {
            let text = text::line(attribute.to_token_stream());
            let line = attribute.span().start().line;
            let (place, safety) = (self.place.clone(), self.lines.safety(line));
            self.found.sites.push(Site {
                line,
                code: Code::Attribute(text),
                place,
                safety,
            });
        }
    }
}

/// Reads a file.
pub fn read(source: &str) -> syn::Result<Found> {
    let file = syn::parse_file(source)?;
    let lines = Lines::new(source);
    let found = Found {
        sites: Vec::new(),
        definitions: Vec::new(),
        strange: Vec::new(),
        names: Vec::new(),
    };
    let mut reader = Reader {
        lines: &lines,
        place: Place::default(),
        found,
        understood: Vec::new(),
    };
    reader.visit_file(&file);
    let Reader {
        mut found,
        understood,
        ..
    } = reader;
    words(source.parse()?, &mut |word| {
        if word == "unsafe" && !understood.contains(&position(word.span())) {
            found.strange.push(word.span().start().line);
        }
        found.names.push(word.to_string());
    });
    found.sites.sort_by_key(|site| site.line);
    Ok(found)
}
