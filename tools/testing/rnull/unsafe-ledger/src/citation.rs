// SPDX-License-Identifier: GPL-2.0

//! What the words of a comment refer to.

/// A reference to what is written elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub enum Citation {
    /// The invariants of a type, else of the one that is implemented.
    Invariants(Option<String>),
    /// The safety requirements of a function or trait, else of the one that is written.
    Requirements(Option<String>),
    /// The comment before.
    Above,
    /// The comments in a function.
    As(String),
    /// The words announce a name that is not there.
    Nameless(String),
}

/// A word without the marks around it.
fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric())
        .to_lowercase()
}

/// The path that a word between backticks is, with generics, brackets and parentheses left out.
pub fn quoted(word: &str) -> Option<String> {
    let start = word.find('`')?;
    let inner = &word[start + 1..];
    let inner = &inner[..inner.find('`')?];
    let path = inner.split(['<', '(']).next()?.trim_start_matches('&');
    let is_path = path
        .chars()
        .all(|c| c.is_alphanumeric() || c == '_' || c == ':');
    (is_path && !path.is_empty()).then(|| path.to_string())
}

/// The name after "of": in backticks, after at most two other words.
fn after_of(words: &[&str]) -> Option<Option<String>> {
    if words.first().map(|word| bare(word)).as_deref() != Some("of") {
        return None;
    }
    Some(words[1..].iter().take(3).find_map(|word| quoted(word)))
}

fn ends_sentence(word: &str) -> bool {
    word.ends_with(['.', ';', ',', ':', ')'])
}

/// The citations of a comment, in their order.
pub fn all(text: &str) -> Vec<Citation> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut found = Vec::new();
    let mut last_name = None;
    for (i, word) in words.iter().enumerate() {
        let before = i.checked_sub(1).map_or(String::new(), |i| bare(words[i]));
        let next = words.get(i + 1).map_or(String::new(), |word| bare(word));
        let name = || match after_of(&words[i + 1..]) {
            _ if ends_sentence(word) => Ok(None),
            None => Ok(None),
            // "The invariants of that" are those of what was named before.
            Some(name) => name.or_else(|| last_name.clone()).map(Some).ok_or_else(|| {
                Citation::Nameless(
                    words[i..]
                        .iter()
                        .take(4)
                        .copied()
                        .collect::<Vec<_>>()
                        .join(" "),
                )
            }),
        };
        match bare(word).as_str() {
            "invariants" => {
                found.push(name().map_or_else(|nameless| nameless, Citation::Invariants))
            }
            // The word is an adjective as well.
            "invariant" if ["by", "its", "the", "type"].contains(&before.as_str()) => {
                found.push(name().map_or_else(|nameless| nameless, Citation::Invariants));
            }
            "requirements" | "requirement" if before == "safety" => {
                found.push(name().map_or_else(|nameless| nameless, Citation::Requirements));
            }
            "as" if next == "above" => found.push(Citation::Above),
            "as" if next == "in" || next == "for" => {
                found.extend(
                    words
                        .get(i + 2)
                        .and_then(|word| quoted(word))
                        .map(Citation::As),
                );
            }
            _ => {}
        }
        if let Some(name) = quoted(word) {
            last_name = Some(name);
        }
    }
    found.dedup();
    found
}

/// The names that a comment has between backticks.
pub fn names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for code in text.split('`').skip(1).step_by(2) {
        let mut start = None;
        for (i, c) in code.char_indices().chain([(code.len(), ' ')]) {
            if c.is_alphanumeric() || c == '_' {
                start.get_or_insert(i);
            } else if let Some(start) = start.take() {
                let is_name = code[start..].starts_with(|c: char| !c.is_ascii_digit())
                    && !code[..start].ends_with('\'');
                names.extend(is_name.then(|| code[start..i].to_string()));
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::{Citation::*, *};

    #[test]
    fn words_refer_to_what_is_elsewhere() {
        for (text, expected) in [
            ("By the type invariant.", vec![Invariants(None)]),
            (
                "By the type invariants, and the safety requirement.",
                vec![Invariants(None), Requirements(None)],
            ),
            (
                "By the type invariant of `Timer`.",
                vec![Invariants(Some("Timer".into()))],
            ),
            (
                "By the type invariant of the [`a::Timer<T>`], it is.",
                vec![Invariants(Some("a::Timer".into()))],
            ),
            (
                "What begins a `Timer`, by the invariants of that.",
                vec![Invariants(Some("Timer".into()))],
            ),
            (
                "By the invariants of that.",
                vec![Nameless("invariants of that.".into())],
            ),
            (
                "By the safety requirement of `Self::f`.",
                vec![Requirements(Some("Self::f".into()))],
            ),
            ("As above; and more.", vec![Above]),
            (
                "It is in a section as in `queue_rq`.",
                vec![As("queue_rq".into())],
            ),
            (
                "As in [`Self::leaf`]; it is so.",
                vec![As("Self::leaf".into())],
            ),
            (
                "By the type invariant. Of `A` it is true.",
                vec![Invariants(None)],
            ),
            ("A table belongs to no thread.", vec![]),
            ("By the invariant.", vec![Invariants(None)]),
            (
                "It is its owner, by its invariants.",
                vec![Invariants(None)],
            ),
            ("The lifetime is invariant.", vec![]),
        ] {
            assert_eq!(all(text), expected, "{text}");
        }
    }

    #[test]
    fn names_are_what_stands_in_backticks() {
        assert_eq!(
            names("`Leaf::free` of `&'a D` has `len` bytes, `3`."),
            ["Leaf", "free", "D", "len"]
        );
    }
}
