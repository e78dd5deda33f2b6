// SPDX-License-Identifier: GPL-2.0

//! Whether what a comment cites is there.

use super::{Source, World};
use crate::{
    citation::{self, Citation},
    site::{Code, Defined, Definition, Place, Site},
};

/// What is cited, else why it is not there.
type Cited = Result<String, String>;

/// The text of a section of the documentation.
pub(super) fn section<'a>(docs: &'a str, title: &str) -> Option<&'a str> {
    let heading = format!("# {title}\n");
    let start = if docs.starts_with(&heading) {
        0
    } else {
        docs.find(&format!("\n{heading}"))? + 1
    } + heading.len();
    let text = &docs[start..];
    Some(text.find("\n# ").map_or(text, |end| &text[..end]).trim())
}

/// What a section refers to that says nothing itself but "see" or "as for".
fn referred(section: &str) -> Option<String> {
    let rest = ["See ", "As for ", "As in "]
        .iter()
        .find_map(|words| section.strip_prefix(words))?;
    citation::quoted(rest.split_whitespace().next()?)
}

impl World {
    /// What has this name; if there is such a thing in the file, only that.
    fn definitions<'a>(
        &'a self,
        source: &'a Source,
        is_it: impl Fn(&Definition) -> bool,
    ) -> Vec<&'a Definition> {
        let here: Vec<&Definition> = source
            .found
            .definitions
            .iter()
            .filter(|found| is_it(found))
            .collect();
        if !here.is_empty() {
            return here;
        }
        self.sources
            .iter()
            .flat_map(|source| &source.found.definitions)
            .filter(|found| is_it(found))
            .collect()
    }

    fn types<'a>(&'a self, source: &'a Source, name: &str) -> Vec<&'a Definition> {
        let name = name.rsplit("::").next().unwrap_or(name);
        let is_type = |kind| matches!(kind, Defined::Type | Defined::Trait { .. });
        self.definitions(source, |found| found.name == name && is_type(found.kind))
    }

    /// Functions by a path as comments write it, in the place of the comment.
    fn functions<'a>(
        &'a self,
        source: &'a Source,
        place: &Place,
        path: &str,
    ) -> Vec<&'a Definition> {
        let names: Vec<&str> = path.split("::").collect();
        let (name, owner) = (
            names[names.len() - 1],
            names.len().checked_sub(2).map(|i| names[i]),
        );
        let is_function = |kind| matches!(kind, Defined::Function { .. });
        let named = |name: String| {
            self.definitions(source, |found| {
                found.name == name && is_function(found.kind)
            })
        };
        match (owner, place.self_type()) {
            (Some("Self"), Some(owner)) => named(format!("{owner}::{name}")),
            (Some(owner), _) if owner.starts_with(char::is_uppercase) => {
                named(format!("{owner}::{name}"))
            }
            (None, Some(owner)) if !named(format!("{owner}::{name}")).is_empty() => {
                named(format!("{owner}::{name}"))
            }
            _ => named(name.to_string()),
        }
    }

    fn invariants(&self, source: &Source, name: &str, depth: u32) -> Cited {
        let types = self.types(source, name);
        if types.is_empty() {
            let last = name.rsplit("::").next().unwrap_or(name);
            if source.found.names.iter().any(|known| known == last) {
                return Ok(format!(
                    "invariants of {name}, which is not of this repository"
                ));
            }
            return Err(format!("there is no type `{name}`"));
        }
        let Some(text) = types
            .iter()
            .find_map(|found| section(&found.docs, "Invariants"))
        else {
            return Err(format!("`{name}` has no section # Invariants"));
        };
        match referred(text) {
            Some(_) if depth == 0 => return Err(format!("`{name}` refers to others in a circle")),
            Some(other) => drop(self.invariants(source, &other, depth - 1)?),
            None => {}
        }
        Ok(format!("invariants of {name}"))
    }

    /// Whether a section # Safety is there. It may refer to that of another function, or to a type whose documentation
    /// speaks for its functions.
    fn requirements(
        &self,
        source: &Source,
        place: &Place,
        name: &str,
        docs: &str,
        depth: u32,
    ) -> Cited {
        let Some(text) = section(docs, "Safety") else {
            return Err(format!("`{name}` has no section # Safety"));
        };
        let Some(other) = referred(text) else {
            return Ok(format!("requirements of {name}"));
        };
        if depth == 0 {
            return Err(format!("`{name}` refers to others in a circle"));
        }
        let types = self.types(source, &other);
        if types
            .iter()
            .any(|found| found.docs.contains("safety requirement"))
        {
            return Ok(format!(
                "requirements of {name}, which are those of {other}"
            ));
        }
        let functions = self.functions(source, place, &other);
        let Some(function) = functions.first() else {
            return Err(format!(
                "`{name}` refers to `{other}`, which has no safety requirements"
            ));
        };
        self.requirements(source, place, &other, &function.docs, depth - 1)?;
        Ok(format!(
            "requirements of {name}, which are those of {other}"
        ))
    }

    fn own_requirements(&self, source: &Source, site: &Site) -> Cited {
        let place = &site.place;
        if let Some(function) = place.functions.last().filter(|found| found.is_unsafe) {
            let implementation = place.implementation.as_ref();
            let name = implementation.map_or(function.name.clone(), |found| {
                format!("{}::{}", found.self_type, function.name)
            });
            let Some(of) = implementation.and_then(|found| found.of.as_ref()) else {
                return self.requirements(source, place, &name, &function.docs, 3);
            };
            if section(&function.docs, "Safety").is_some() {
                return self.requirements(source, place, &name, &function.docs, 3);
            }
            let name = format!("{of}::{}", function.name);
            return match self.functions(source, place, &name).first() {
                Some(declared) => self.requirements(source, place, &name, &declared.docs, 3),
                None => Ok(format!(
                    "requirements of {name}, which is not of this repository"
                )),
            };
        }
        if let Some(of) = place
            .implementation
            .as_ref()
            .and_then(|found| found.of.as_ref())
        {
            for found in self.types(source, of) {
                if found.kind == (Defined::Trait { is_unsafe: true }) {
                    return self.requirements(source, place, of, &found.docs, 3);
                }
            }
        }
        Err("the function is not unsafe".to_string())
    }

    fn named_requirements(&self, source: &Source, place: &Place, name: &str) -> Cited {
        if let Some(found) = self.functions(source, place, name).first() {
            return self.requirements(source, place, name, &found.docs, 3);
        }
        match self
            .types(source, name)
            .iter()
            .find(|found| section(&found.docs, "Safety").is_some())
        {
            Some(found) => self.requirements(source, place, name, &found.docs, 3),
            None => Err(format!("there is no `{name}` with a section # Safety")),
        }
    }

    /// The site whose comment the words "as above" mean: in the same function, else in the same item.
    fn above<'a>(source: &'a Source, site: &Site) -> Option<&'a Site> {
        let is_impl = |site: &Site| matches!(site.code, Code::Impl(_));
        let before = source
            .found
            .sites
            .iter()
            .rfind(|other| other.line < site.line && other.safety.is_some())?;
        let same_item = before.place.start == site.place.start;
        let same_type =
            is_impl(site) && is_impl(before) && before.place.self_type() == site.place.self_type();
        let after_invariant = site
            .safety
            .as_ref()
            .is_some_and(|safety| safety.follows_invariant);
        let same_function = same_item && before.place.name() == site.place.name();
        (same_function || !after_invariant && (same_item || same_type)).then_some(before)
    }

    fn cite(
        &self,
        source: &Source,
        site: &Site,
        citation: &Citation,
        depth: u32,
    ) -> Result<Vec<String>, String> {
        let place = &site.place;
        let cited = match citation {
            Citation::Invariants(None) => match place.self_type() {
                Some(name) if self.types(source, name).is_empty() => Err(format!(
                    "`{name}` is not of this repository; say of which type"
                )),
                Some(name) => self.invariants(source, name, 3),
                None => Err("it is in no impl; say of which type".to_string()),
            },
            Citation::Invariants(Some(name)) => self.invariants(source, name, 3),
            Citation::Requirements(None) => self.own_requirements(source, site),
            Citation::Requirements(Some(name)) => self.named_requirements(source, place, name),
            Citation::Above => {
                let Some(other) = Self::above(source, site).filter(|_| depth > 0) else {
                    return match &site.safety {
                        Some(safety) if safety.follows_invariant => {
                            Ok(vec!["the INVARIANT above".to_string()])
                        }
                        _ => Err("no comment of the same item is above".to_string()),
                    };
                };
                return self
                    .cites(source, other, depth - 1)
                    .map(|cited| match cited.is_empty() {
                        true => vec![format!("the reason above, in {}", other.place.name())],
                        false => cited,
                    });
            }
            Citation::As(path) => {
                let functions = self.functions(source, place, path);
                let name = functions.first().map(|found| found.name.clone());
                let known = |site: &Site| {
                    let function = site.place.functions.first()?;
                    let owner = site
                        .place
                        .self_type()
                        .map_or(String::new(), |owner| format!("{owner}::"));
                    Some(format!("{owner}{}", function.name)).filter(|_| site.safety.is_some())
                };
                let argues = self
                    .sources
                    .iter()
                    .flat_map(|source| &source.found.sites)
                    .any(|site| known(site) == name);
                match name {
                    Some(name) if argues => Ok(format!("what is said in {name}")),
                    Some(name) => Err(format!("`{name}` has no SAFETY comment")),
                    None => Err(format!("there is no function `{path}`")),
                }
            }
            Citation::Nameless(words) => Err(format!("\"{words}\" names nothing")),
        };
        cited.map(|cited| vec![cited])
    }

    /// All that the comment of a site cites, else what is not there.
    pub(super) fn cites(
        &self,
        source: &Source,
        site: &Site,
        depth: u32,
    ) -> Result<Vec<String>, String> {
        let mut cited = Vec::new();
        for citation in citation::all(&site.safety.as_ref().expect("a comment").text) {
            for found in self.cite(source, site, &citation, depth)? {
                if !cited.contains(&found) {
                    cited.push(found);
                }
            }
        }
        Ok(cited)
    }
}
