// SPDX-License-Identifier: GPL-2.0

//! The comment above a piece of code.

/// The lines of a file.
pub struct Lines(Vec<String>);

/// What a comment says after `SAFETY:`.
#[derive(Clone, Debug, PartialEq)]
pub struct Safety {
    pub text: String,
    /// Whether the same comment argues about an invariant before.
    pub follows_invariant: bool,
}

/// The text of a comment that is no documentation.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim().strip_prefix("//")?;
    (!text.starts_with(['/', '!'])).then(|| text.strip_prefix(' ').unwrap_or(text))
}

/// Whether the statement of the next line begins before this one ends.
fn is_open(line: &str) -> bool {
    let line = line.trim();
    let words = |c: char| !c.is_alphanumeric() && c != '_';
    !line.is_empty()
        && !line.ends_with([';', '{', '}'])
        && !line.split(words).any(|word| word == "unsafe")
}

fn safety(comment: &[&str]) -> Option<Safety> {
    let is_marker = |line: &&str| {
        let (word, rest) = line.split_once(':').unwrap_or((*line, ""));
        !rest.is_empty() && !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase())
    };
    let start = comment
        .iter()
        .position(|line| line.starts_with("SAFETY:"))?;
    let end = comment[start + 1..]
        .iter()
        .position(|line| is_marker(line))
        .map_or(comment.len(), |n| start + 1 + n);
    let text = comment[start..end].join(" ");
    let words: Vec<&str> = text["SAFETY:".len()..].split_whitespace().collect();
    Some(Safety {
        text: words.join(" "),
        follows_invariant: comment[..start]
            .iter()
            .any(|line| line.starts_with("INVARIANT:")),
    })
}

impl Lines {
    pub fn new(text: &str) -> Self {
        Self(text.lines().map(str::to_string).collect())
    }

    /// The SAFETY comment of what stands in line `number`, which is above the statement.
    pub fn safety(&self, number: usize) -> Option<Safety> {
        let mut at = number - 1;
        while at > 0 {
            let mut above = Vec::new();
            while at > 0 {
                let Some(text) = comment(&self.0[at - 1]) else {
                    break;
                };
                above.insert(0, text);
                at -= 1;
            }
            if let Some(found) = safety(&above) {
                return Some(found);
            }
            if at == 0 {
                break;
            }
            let line = self.0[at - 1].trim();
            if !is_open(line) && !line.starts_with("#[") {
                break;
            }
            at -= 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Option<String> {
        let number = text.lines().position(|line| line.contains("here")).unwrap() + 1;
        Lines::new(text).safety(number).map(|safety| safety.text)
    }

    #[test]
    fn a_comment_is_above_the_statement() {
        let a = Some("A b.".to_string());
        assert_eq!(said("// SAFETY: A\n// b.\nhere"), a);
        assert_eq!(said("// SAFETY: A b.\nlet x =\n    here"), a);
        assert_eq!(said("// SAFETY: A b.\nf(\n    x,\n    here"), a);
        assert_eq!(
            said("// More.\n//\n// SAFETY: A b.\n// INVARIANT: C.\n#[cold]\nhere"),
            a
        );
    }

    #[test]
    fn the_comment_of_another_statement_is_not_its() {
        assert_eq!(said("// SAFETY: A b.\nf();\nhere"), None);
        assert_eq!(said("// SAFETY: A b.\nif f() {\n    here"), None);
        assert_eq!(said("// SAFETY: A b.\nx: unsafe { f() },\ny: here"), None);
        assert_eq!(said("/// SAFETY: A b.\nhere"), None);
        assert_eq!(said("// A SAFETY: b.\nhere"), None);
        assert_eq!(said("// SAFETY: A b.\n\nhere"), None);
    }
}
