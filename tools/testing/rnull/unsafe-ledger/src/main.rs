// SPDX-License-Identifier: GPL-2.0

//! Prints the ledger of unsafe operations.
//!
//! usage: rnull-unsafe-ledger FILE...
//!
//! The ledger is that of the files in Rust.  Comments may also use any word in the files in C,
//! and in the headings of a list of contracts.

mod citations;
mod comment;
mod operation;
mod reader;
#[cfg(test)]
mod tests;

use citations::Context;
use operation::{describe, KINDS};
use reader::File;
use std::{
    collections::HashSet,
    env, fs,
    path::PathBuf,
    process::{self, ExitCode},
};

// In two parts, for it is not the licence of this file.
const LICENCE: &str = concat!("# SP", "DX-License-", "Identifier: GPL-2.0\n#\n");
const HEAD: &str = "\
# Each unsafe operation below rust/ with its SAFETY comment and what the comment cites. The file is
# written by scripts/unsafe-ledger --record and read in review: a new entry is new unsafe code.
#
#   == file
#   item
#     kind: operation, without arguments that do nothing unsafe
#       by what the comment cites
#       \"text of the comment\"
";

#[derive(Default)]
struct Ledger {
    text: String,
    mistakes: Vec<String>,
    /// The kinds of all operations.
    kinds: Vec<&'static str>,
    entries: usize,
    /// The number of entries with a citation.
    citing: usize,
}

impl Ledger {
    fn add(&mut self, context: Context<'_>) {
        let Context { files, file, .. } = context;
        let path = &file.path;
        for line in &file.unknown {
            let text = format!("{path}:{line}: unknown use of `unsafe`");
            self.mistakes.push(text);
        }
        for found in &file.definitions {
            let has_section = comment::section(&found.docs, "Safety").is_some();
            if found.is_unsafe && !found.of_trait && !has_section {
                let text = format!(
                    "{path}: {}: unsafe, without a `# Safety` section",
                    found.name
                );
                self.mistakes.push(text);
            }
        }
        let mut last_item = None;
        for site in &file.sites {
            let item = site.scope.path.join("::");
            let (kinds, operation) = describe(files, file, site);
            let cited = match context.cited(site) {
                Ok(cited) => cited,
                Err(why) => {
                    let text = format!("{path}:{}: {item}: {operation}: {why}", site.line);
                    self.mistakes.push(text);
                    continue;
                }
            };
            if last_item.is_none() {
                self.text += &format!("\n== {path}\n");
            }
            if last_item.as_ref() != Some(&item) {
                self.text += &format!("\n{item}\n");
                last_item = Some(item);
            }
            self.text += &format!("  {operation}\n");
            for what in &cited {
                self.text += &format!("    by {what}\n");
            }
            let comment = site.comment.as_ref().map_or("", |comment| &comment.text);
            let options = textwrap::Options::new(100)
                .initial_indent("    ")
                .subsequent_indent("    ")
                .break_words(false)
                .word_splitter(textwrap::WordSplitter::NoHyphenation);
            self.text += &textwrap::fill(&format!("\"{comment}\""), options);
            self.text.push('\n');
            self.kinds.extend(kinds);
            self.entries += 1;
            self.citing += usize::from(!cited.is_empty());
        }
    }

    /// `names` are names in other languages, which comments may use.
    fn new(files: &[File], names: &HashSet<String>) -> Self {
        let mut ledger = Self::default();
        ledger.text = format!("{LICENCE}{HEAD}");
        for file in files {
            ledger.add(Context { files, names, file });
        }
        ledger.text += &format!("\n== totals\n\n{} entries with\n", ledger.entries);
        for (kind, plural) in KINDS {
            let count = ledger.kinds.iter().filter(|other| **other == kind).count();
            if count > 0 {
                ledger.text += &format!("{count:5} {plural}\n");
            }
        }
        let definitions = files.iter().flat_map(|file| &file.definitions);
        ledger.text += &format!(
            "{} cite documentation or another comment, {} give the reason themselves.\n\
            {} unsafe functions and traits have a `# Safety` section.\n",
            ledger.citing,
            ledger.entries - ledger.citing,
            definitions.filter(|found| found.is_unsafe).count()
        );
        ledger
    }
}

fn read(mut paths: Vec<PathBuf>) -> Result<Ledger, String> {
    let (mut files, mut names) = (Vec::new(), HashSet::new());
    paths.sort();
    for path in &paths {
        let name = path.display();
        let text = fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
        let extension = path.extension().unwrap_or_default();
        if extension == "rs" {
            let file = reader::read(&name.to_string(), text);
            let line = |error: &syn::Error| error.span().start().line;
            files.push(file.map_err(|error| format!("{name}:{}: {error}", line(&error)))?);
            continue;
        }
        let is_list = |line: &&str| extension == "c" || line.starts_with('[');
        let word = regex!(r"\w+");
        for line in text.lines().filter(is_list) {
            names.extend(word.find_iter(line).map(|word| word.as_str().to_string()));
        }
    }
    Ok(Ledger::new(&files, &names))
}

fn main() -> ExitCode {
    let paths = env::args_os().skip(1).map(PathBuf::from).collect();
    let ledger = read(paths).unwrap_or_else(|error| {
        eprintln!("{error}");
        process::exit(1)
    });
    print!("{}", ledger.text);
    for mistake in &ledger.mistakes {
        eprintln!("{mistake}");
    }
    ExitCode::from(u8::from(!ledger.mistakes.is_empty()))
}
