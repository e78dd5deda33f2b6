// SPDX-License-Identifier: GPL-2.0

//! Code as a line of text, laid out the same way whatever the layout of the source.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// Words after which an operator has no left operand.
const KEYWORDS: [&str; 13] = [
    "as", "const", "else", "for", "if", "impl", "in", "let", "match", "move", "mut", "raw",
    "return",
];

/// The operators of more than one character, but those that may as well close two generics.
const LONG: [&str; 20] = [
    "..=", "...", "::", "->", "=>", "==", "!=", "<=", ">=", "&&", "||", "..", "+=", "-=", "*=",
    "/=", "%=", "^=", "|=", "&=",
];

/// How the name of a variable of a macro begins where a parser wants a name without a dollar.
pub const VARIABLE: &str = "macro_variable_";

#[derive(Default)]
struct Line {
    text: String,
    /// Whether what was written last can be the left operand of an operator.
    operand: bool,
    /// Whether the next word needs a space before it.
    space: bool,
    /// Whether the parameters of a closure were begun.
    closure: bool,
}

impl Line {
    fn put(&mut self, text: &str, before: bool) {
        if (before || self.space) && !self.text.is_empty() && !self.text.ends_with([' ', '(', '['])
        {
            self.text.push(' ');
        }
        self.text.push_str(text);
        self.space = false;
    }

    fn word(&mut self, word: &str) {
        let after_word = self
            .text
            .ends_with(|c: char| c.is_alphanumeric() || "_\")]}>".contains(c));
        let is_lifetime = self.text.ends_with('\'');
        self.put(word, after_word);
        self.operand = !is_lifetime && !KEYWORDS.contains(&word);
        self.space = !self.operand;
    }

    fn group(&mut self, delimiter: Delimiter, inside: &str) {
        match delimiter {
            Delimiter::Parenthesis => self.put(&format!("({inside})"), false),
            Delimiter::Bracket => self.put(&format!("[{inside}]"), false),
            Delimiter::Brace if inside.is_empty() => self.put("{}", true),
            Delimiter::Brace => self.put(&format!("{{ {inside} }}"), true),
            Delimiter::None => self.put(inside, false),
        }
        self.operand = true;
    }

    /// What stands without a space between: one operator, or several.
    fn marks(&mut self, mut marks: &str) {
        while !marks.is_empty() {
            let length = LONG
                .iter()
                .find(|long| marks.starts_with(**long))
                .map_or(1, |long| long.len());
            let (mark, rest) = marks.split_at(length);
            self.mark(mark);
            marks = rest;
        }
    }

    fn mark(&mut self, mark: &str) {
        let operand = std::mem::replace(&mut self.operand, false);
        match mark {
            // The tail of a call that was left out is a whole operand.
            ".." => {
                self.put(mark, false);
                self.operand = true;
            }
            "?" => {
                self.put(mark, false);
                self.operand = true;
            }
            "::" | "." => {
                self.space = self.space && mark == "::";
                self.put(mark, false);
            }
            "<" | ">" => {
                self.space = false;
                self.put(mark, false);
                self.operand = mark == ">";
            }
            "," | ";" | ":" => {
                self.space = false;
                self.put(mark, false);
                self.space = true;
            }
            "|" if self.closure || !operand => {
                self.put(mark, false);
                self.closure = !self.closure;
                self.space = !self.closure;
            }
            "||" if !operand => {
                self.put(mark, false);
                self.space = true;
            }
            "!" | "'" | "#" | "$" => self.put(mark, false),
            "&" | "*" | "-" | "&&" if !operand => self.put(mark, false),
            _ => {
                self.put(mark, true);
                self.space = true;
            }
        }
    }
}

/// The tokens with single spaces where there are any.
pub fn line(tokens: TokenStream) -> String {
    let mut line = Line::default();
    let mut mark = String::new();
    for token in tokens {
        match token {
            TokenTree::Punct(punct) => {
                mark.push(punct.as_char());
                if punct.spacing() == Spacing::Alone || punct.as_char() == '\'' {
                    line.marks(&std::mem::take(&mut mark));
                }
            }
            TokenTree::Group(group) => line.group(group.delimiter(), &self::line(group.stream())),
            word => line.word(&word.to_string().replace(VARIABLE, "$")),
        }
    }
    line.text.trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_keeps_the_layout_that_it_has_in_rust() {
        for code in [
            "bindings::f(..)",
            "&*(*(*self.as_raw()).q).queuedata.cast()",
            "&raw mut (*rq).link",
            "*link = *next",
            "a - b * -c",
            "f(|x, y| x + y, || z)?",
            "impl<'a> From<&'a [u8]> for &'a mut T",
            "impl<T: Operations<Timer = Timer>> Send for DelayLine<T>",
            "impl<'a, D: Send + Sync> Sync for Node<'a, D>",
            "container_of!(head, Self, head)",
            "x as *const u8",
            "let a = b; a[0]",
            "(a, b) = c",
        ] {
            assert_eq!(line(code.parse().unwrap()), code);
        }
        assert_eq!(
            line("f ( a ,b ) . g ::<T> ( )".parse().unwrap()),
            "f(a, b).g::<T>()"
        );
    }
}
