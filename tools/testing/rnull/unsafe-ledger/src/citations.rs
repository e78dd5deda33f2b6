// SPDX-License-Identifier: GPL-2.0

//! Checks that what comments cite exists.

use crate::{
    comment::{names, referred, section, PATH},
    reader::{is_function, Definition, File, Site},
    regex,
};
use regex_lite::Captures;
use std::collections::HashSet;

/// What is cited, else what is wrong.
type Cited<T> = Result<T, String>;

/// What the comments of a file may cite.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub files: &'a [File],
    /// The names in C and on the list of contracts.
    pub names: &'a HashSet<String>,
    /// The file of the comments.
    pub file: &'a File,
}

impl<'a> Context<'a> {
    /// What has the name in this file, else in all files.
    fn definitions(self, name: &str) -> Vec<&'a Definition> {
        let of = |file: &'a File| file.definitions.iter().filter(|found| found.name == name);
        let here: Vec<_> = of(self.file).collect();
        match here.is_empty() {
            true => self.files.iter().flat_map(of).collect(),
            false => here,
        }
    }

    /// What a comment at the site means by a path.
    fn named(self, site: &Site, path: &str) -> Vec<&'a Definition> {
        let mut parts = path.rsplit("::");
        let name = parts.next().unwrap_or_default();
        let owner = parts.next().filter(|owner| !is_function(owner));
        let self_type = site.scope.self_type.as_deref().unwrap_or("Self");
        let type_name = owner.filter(|owner| *owner != "Self").unwrap_or(self_type);
        let methods = self.definitions(&format!("{type_name}::{name}"));
        match methods.is_empty() && owner.is_none() {
            true => self.definitions(name),
            false => methods,
        }
    }

    /// Looks for a section in the documentation, which may refer to that of another item.
    fn stated(self, site: &Site, title: &str, name: &str) -> Cited<String> {
        let found = self.named(site, name);
        if found.is_empty() {
            return Err(format!("`{name}` is defined elsewhere"));
        }
        let text = found.iter().find_map(|found| section(&found.docs, title));
        let text = text.ok_or(format!("`{name}` has no `# {title}` section"))?;
        let what = match title {
            "Safety" => "requirements",
            _ => "invariants",
        };
        let Some(other) = referred(text) else {
            return Ok(format!("{what} of {name}"));
        };
        // The documentation of a type may state the requirements of all its functions.
        let states = |found: &&Definition| {
            section(&found.docs, title).is_some_and(|text| referred(text).is_none())
                || !is_function(&found.name) && found.docs.contains("safety requirement")
        };
        match self.named(site, other).iter().any(states) {
            true => Ok(format!("{what} of {name}, which are those of {other}")),
            false => Err(format!("`{name}` refers to `{other}`, which has no {what}")),
        }
    }

    /// The requirements of the function, else those of the trait that is implemented.
    fn own_requirements(self, site: &Site) -> Cited<String> {
        let function = site.scope.function.map(|i| &self.file.definitions[i]);
        let of_trait = site.scope.of_trait.as_deref().unwrap_or_default();
        let Some(found) = function.filter(|found| found.is_unsafe) else {
            let is_unsafe = self
                .definitions(of_trait)
                .iter()
                .any(|found| found.is_unsafe);
            return match is_unsafe {
                true => self.stated(site, "Safety", of_trait),
                false => Err("the function is not unsafe".to_string()),
            };
        };
        if !found.of_trait || section(&found.docs, "Safety").is_some() {
            return self.stated(site, "Safety", &found.name);
        }
        let name = found.name.rsplit("::").next().unwrap_or_default();
        let name = format!("{of_trait}::{name}");
        match self.definitions(of_trait).is_empty() {
            true => Ok(format!(
                "requirements of {name}, which is defined elsewhere"
            )),
            false => self.stated(site, "Safety", &name),
        }
    }

    /// The comment above in the same function or item, or on an `impl` for the same type.
    fn above(self, site: &Site) -> Cited<Vec<String>> {
        let is_impl = |site: &Site| site.kind == Some("impl");
        let after_invariant = site
            .comment
            .as_ref()
            .is_some_and(|text| text.follows_invariant);
        let is_above = |above: &&Site| {
            let (above_scope, scope) = (&above.scope, &site.scope);
            let same_item = above_scope.start == scope.start;
            let same_type = above_scope.self_type == scope.self_type;
            match after_invariant {
                true => same_item && above_scope.path == scope.path,
                false => same_item || same_type && is_impl(site) && is_impl(above),
            }
        };
        let mut sites = self.file.sites.iter();
        let above = sites.rfind(|other| other.line < site.line && other.comment.is_some());
        match above.filter(is_above) {
            Some(above) => self.cited(above).map(|cited| match cited.is_empty() {
                true => vec![format!(
                    "the comment above, in {}",
                    above.scope.path.join("::")
                )],
                false => cited,
            }),
            None if after_invariant => Ok(vec!["the INVARIANT above".to_string()]),
            None => Err("there is no comment above in the same item".to_string()),
        }
    }

    /// The comments in another function.
    fn comments(self, site: &Site, path: &str) -> Cited<String> {
        let found = self.named(site, path);
        let name = &found
            .first()
            .ok_or(format!("there is no function `{path}`"))?
            .name;
        let has_site = |file: &File| {
            let mut functions = file.sites.iter().filter_map(|site| site.scope.function);
            functions.any(|i| file.definitions[i].name == *name)
        };
        match self.files.iter().any(has_site) {
            true => Ok(format!("the comments in {name}")),
            false => Err(format!("`{name}` has no SAFETY comment")),
        }
    }

    fn cite(self, site: &Site, text: &str, found: &Captures<'_>) -> Cited<Vec<String>> {
        let group = |i| found.get(i).map(|part| part.as_str());
        if let Some(path) = group(5) {
            return Ok(vec![self.comments(site, path)?]);
        } else if group(4).is_some() {
            return self.above(site);
        }
        let words = found.get(0).unwrap();
        // "The invariants of that" are those of what was named before.
        let before = || regex!(PATH).captures_iter(&text[..words.start()]).last();
        let name = group(3).map(String::from).or_else(|| {
            group(2)?;
            Some(before()?[1].to_string())
        });
        let self_type = site.scope.self_type.as_ref();
        let cited = match (name, group(1)) {
            (None, _) if group(2).is_some() => Err(format!("\"{}\" names nothing", words.as_str())),
            (Some(name), Some(_)) => self.stated(site, "Invariants", &name),
            (Some(name), None) => self.stated(site, "Safety", &name),
            (None, Some(_)) => self.stated(
                site,
                "Invariants",
                self_type.ok_or("it is not in an `impl`")?,
            ),
            (None, None) => self.own_requirements(site),
        };
        Ok(vec![cited?])
    }

    /// All that the comment on the site cites, else the first that is wrong.
    pub fn cited(self, site: &Site) -> Cited<Vec<String>> {
        let text = &site.comment.as_ref().ok_or("no SAFETY comment")?.text;
        let is_known = |name: &&str| {
            let is_in = |names: &HashSet<String>| names.contains(*name);
            *name == "Self" || is_in(self.names) || self.files.iter().any(|file| is_in(&file.names))
        };
        if let Some(name) = names(text).find(|name| !is_known(name)) {
            return Err(format!(
                "\"{text}\", but `{name}` is neither in the code nor in contracts.toml"
            ));
        }
        let words = regex!(
            r"(?i)(?:\b(invariants|(?:by|its|the|type) invariant)|\bsafety requirements?)\b",
            r"( of\b(?:(?: [^ `]+){0,2} \S*?",
            PATH,
            r")?)?|\bas (?:(above)\b|(?:in|for) \S*?",
            PATH,
            ")"
        );
        let mut cited = Vec::new();
        for found in words.captures_iter(text) {
            let all = self.cite(site, text, &found);
            cited.extend(all.map_err(|why| format!("\"{text}\", but {why}"))?);
        }
        let mut seen = HashSet::new();
        cited.retain(|found| seen.insert(found.clone()));
        Ok(cited)
    }
}
