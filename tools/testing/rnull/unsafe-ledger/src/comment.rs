// SPDX-License-Identifier: GPL-2.0

//! Reads comments.

/// What a comment says after `SAFETY:`.
pub struct Comment {
    pub text: String,
    /// Whether an `INVARIANT:` is before it in the same comment.
    pub follows_invariant: bool,
}

/// The path at the start of an expression in backticks.
pub const PATH: &str = r"`&?([\w:]+)[<(`]";

/// A regular expression of several parts, compiled once.
#[macro_export]
macro_rules! regex {
    ($($part:expr),+) => {{
        static REGEX: std::sync::LazyLock<regex_lite::Regex> =
            std::sync::LazyLock::new(|| regex_lite::Regex::new(&[$($part),+].concat()).unwrap());
        &*REGEX
    }};
}

fn safety(lines: &[&str]) -> Option<Comment> {
    let is_safety = |line: &&str| line.starts_with("SAFETY:");
    let is_marker = |line: &&str| regex!("^[A-Z]+:.").is_match(line);
    let (before, text) = lines.split_at(lines.iter().position(is_safety)?);
    let next = text.iter().skip(1).position(is_marker);
    let text = text[..next.map_or(text.len(), |next| next + 1)].join(" ");
    let words: Vec<&str> = text["SAFETY:".len()..].split_whitespace().collect();
    Some(Comment {
        text: words.join(" "),
        follows_invariant: before.iter().any(|line| line.starts_with("INVARIANT:")),
    })
}

/// The `SAFETY` comment on the statement that the line (the first is 1) is part of.
pub fn above(source: &str, line: usize) -> Option<Comment> {
    let is_code = |line: &&str| !line.starts_with("//");
    let lines: Vec<&str> = source.lines().take(line - 1).map(str::trim).collect();
    let mut rest = &lines[..];
    loop {
        let code = rest.iter().rposition(is_code).map_or(0, |last| last + 1);
        let text = rest[code..].iter().map(|line| line[2..].trim_start());
        let found = safety(&text.collect::<Vec<_>>());
        if found.is_some() {
            return found;
        }
        let (line, before) = rest[..code].split_last()?;
        let is_other_statement = regex!(r"[;{}]$|\bunsafe\b|^$").is_match(line);
        if is_other_statement {
            return None;
        }
        rest = before;
    }
}

/// The names in backticks.
pub fn names(text: &str) -> impl Iterator<Item = &str> {
    let words = |code| regex!(r"(?:^|[^'\w])([A-Za-z_]\w*)").captures_iter(code);
    let names = text.split('`').skip(1).step_by(2).flat_map(words);
    names.map(|name| name.get(1).unwrap().as_str())
}

/// The text of a section of the documentation.
pub fn section<'a>(docs: &'a str, title: &str) -> Option<&'a str> {
    let start = format!("\n{docs}").find(&format!("\n# {title}\n"))?;
    let text = &docs[start + "# \n".len() + title.len()..];
    Some(text.split("\n# ").next().unwrap_or(text).trim())
}

/// What a section names that only says where the text is.
pub fn referred(section: &str) -> Option<&str> {
    let found = regex!(r"^(?:See|As for|As in) \S*?", PATH).captures(section)?;
    Some(found.get(1).unwrap().as_str())
}
