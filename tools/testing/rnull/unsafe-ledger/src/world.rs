// SPDX-License-Identifier: GPL-2.0

//! All files together.

mod cited;

use self::cited::section;
use crate::{
    citation,
    operation::{Functions, Kind, Operation, View},
    site::{self, Code, Defined, Found, Site},
    text,
};
use std::collections::HashSet;

/// A file with its path from the top of the tree.
pub struct Source {
    pub path: String,
    found: Found,
}

impl Source {
    pub fn read(path: &str, text: &str) -> Result<Self, String> {
        let found = site::read(text).map_err(|error| {
            format!(
                "{path}:{}: not understood as Rust: {error}",
                error.span().start().line
            )
        })?;
        Ok(Self {
            path: path.to_string(),
            found,
        })
    }
}

/// One operation as the ledger has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry {
    pub path: String,
    pub item: String,
    pub operation: Operation,
    /// What the comment cites, in words.
    pub cites: Vec<String>,
    pub reason: String,
}

pub struct World {
    sources: Vec<Source>,
    functions: Functions,
    /// Every name in the code, as well as in the helpers in C.
    names: HashSet<String>,
}

impl World {
    /// `names` are names that comments may use although no Rust code does.
    pub fn new(sources: Vec<Source>, names: HashSet<String>) -> Self {
        let mut world = Self {
            sources,
            functions: Functions::default(),
            names,
        };
        world.names.insert("Self".to_string());
        for source in &world.sources {
            world.names.extend(source.found.names.iter().cloned());
            for definition in &source.found.definitions {
                let Defined::Function { is_unsafe, .. } = definition.kind else {
                    continue;
                };
                match (definition.name.split_once("::"), is_unsafe) {
                    (Some((owner, name)), true) => {
                        world
                            .functions
                            .methods
                            .insert((owner.to_string(), name.to_string()));
                    }
                    (Some((_, name)), false) => {
                        world.functions.safe.insert(name.to_string());
                    }
                    (None, true) => {
                        world.functions.free.insert(definition.name.clone());
                    }
                    (None, false) => {}
                }
            }
        }
        world
    }

    fn operation(&self, site: &Site) -> Operation {
        match &site.code {
            Code::Block(block) => Operation::of_block(
                block,
                View {
                    functions: &self.functions,
                    self_type: site.place.self_type(),
                },
            ),
            Code::Tokens(tokens) => Operation::new(Kind::Other, text::line(tokens.clone())),
            Code::Impl(head) => Operation::new(Kind::Impl, head.clone()),
            Code::Attribute(text) => Operation::new(Kind::Attribute, text.clone()),
        }
    }

    /// All operations in their order, with what is wrong about them.
    pub fn entries(&self) -> (Vec<(Entry, usize)>, Vec<String>) {
        let (mut entries, mut faults) = (Vec::new(), Vec::new());
        for source in &self.sources {
            let path = &source.path;
            for line in &source.found.strange {
                faults.push(format!("{path}:{line}: an `unsafe` that is not understood"));
            }
            for definition in &source.found.definitions {
                let kind = definition.kind;
                if kind.is_unsafe()
                    && !kind.is_of_trait()
                    && section(&definition.docs, "Safety").is_none()
                {
                    faults.push(format!(
                        "{path}: {}: unsafe, without a section # Safety",
                        definition.name
                    ));
                }
            }
            for site in &source.found.sites {
                let operation = self.operation(site);
                let item = site.place.name();
                let mut fault = |text: &str| {
                    faults.push(format!("{path}:{}: {item}: {operation}: {text}", site.line))
                };
                let Some(safety) = &site.safety else {
                    fault("no SAFETY comment");
                    continue;
                };
                for name in citation::names(&safety.text) {
                    if !self.names.contains(&name) {
                        fault(&format!(
                            "`{name}` is neither in the code nor on the list of contracts: \"{}\"",
                            safety.text
                        ));
                    }
                }
                match self.cites(source, site, 8) {
                    Ok(cites) => {
                        let (path, reason) = (path.clone(), safety.text.clone());
                        entries.push((
                            Entry {
                                path,
                                item,
                                operation,
                                cites,
                                reason,
                            },
                            site.line,
                        ));
                    }
                    Err(why) => fault(&format!("\"{}\", but {why}", safety.text)),
                }
            }
        }
        (entries, faults)
    }

    /// How many functions and traits have safety requirements.
    pub fn obligations(&self) -> usize {
        self.sources
            .iter()
            .flat_map(|source| &source.found.definitions)
            .filter(|found| found.kind.is_unsafe())
            .count()
    }
}

#[cfg(test)]
mod tests;
