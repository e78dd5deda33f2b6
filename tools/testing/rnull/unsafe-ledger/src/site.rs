// SPDX-License-Identifier: GPL-2.0

//! Where a file says `unsafe`.

mod reader;
mod tokens;

use crate::comment::Safety;
use proc_macro2::TokenStream;
use syn::Block;

pub use reader::read;

/// A block of ours, which may be part of a macro.
#[derive(Clone)]
pub enum Code {
    Block(Block),
    /// What no parser understands, because it is part of a macro.
    Tokens(TokenStream),
    /// The head of an `unsafe impl`.
    Impl(String),
    Attribute(String),
}

/// An enclosing function.
#[derive(Clone)]
pub struct Function {
    pub name: String,
    pub is_unsafe: bool,
    pub docs: String,
}

/// An enclosing `impl` or `trait`.
#[derive(Clone)]
pub struct Implementation {
    pub self_type: String,
    /// The trait that is implemented.
    pub of: Option<String>,
    /// The same with its parameters.
    pub of_what: String,
}

/// What is around some code.
#[derive(Clone, Default)]
pub struct Place {
    /// Modules; a macro counts as one.
    pub modules: Vec<String>,
    pub implementation: Option<Implementation>,
    pub functions: Vec<Function>,
    /// A constant or static.
    pub other: Vec<String>,
    /// The line at which the item of the file begins.
    pub start: usize,
}

impl Place {
    /// The name of the item.
    pub fn name(&self) -> String {
        let mut names = self.modules.clone();
        names.extend(self.implementation.as_ref().map(|found| match &found.of {
            Some(_) => format!("<{} as {}>", found.self_type, found.of_what),
            None => found.self_type.clone(),
        }));
        names.extend(self.other.iter().cloned());
        names.extend(self.functions.iter().map(|function| function.name.clone()));
        names.join("::")
    }

    /// Goes into an `impl`, for which functions around it are no more than a part of its name.
    fn enter(&mut self, implementation: Implementation) {
        let functions = self.functions.drain(..).map(|function| function.name);
        self.modules.extend(functions);
        self.implementation = Some(implementation);
    }

    pub fn self_type(&self) -> Option<&str> {
        self.implementation
            .as_ref()
            .map(|found| found.self_type.as_str())
    }
}

/// An operation in its place.
#[derive(Clone)]
pub struct Site {
    pub line: usize,
    pub code: Code,
    pub place: Place,
    pub safety: Option<Safety>,
}

/// What a type or function says about itself.
pub struct Definition {
    /// Functions of a type or trait have its name before theirs.
    pub name: String,
    pub docs: String,
    pub kind: Defined,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Defined {
    Type,
    Trait {
        is_unsafe: bool,
    },
    /// In the implementation of a trait, what it relies on may be documented there.
    Function {
        is_unsafe: bool,
        is_of_trait: bool,
    },
}

impl Defined {
    /// Whether safety requirements belong to it.
    pub fn is_unsafe(self) -> bool {
        match self {
            Self::Type => false,
            Self::Trait { is_unsafe } | Self::Function { is_unsafe, .. } => is_unsafe,
        }
    }

    pub fn is_of_trait(self) -> bool {
        matches!(
            self,
            Self::Function {
                is_of_trait: true,
                ..
            }
        )
    }
}

/// What is found in a file.
pub struct Found {
    pub sites: Vec<Site>,
    pub definitions: Vec<Definition>,
    /// Where `unsafe` stands and was not understood.
    pub strange: Vec<usize>,
    /// Every name in the code.
    pub names: Vec<String>,
}

#[cfg(test)]
mod tests;
