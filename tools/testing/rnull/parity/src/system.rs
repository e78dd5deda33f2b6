// SPDX-License-Identifier: GPL-2.0

//! Access to files of sysfs or configfs with one system call.

use nix::errno::Errno;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
};

/// `ok`, or the name of the error.
pub fn verdict<T>(result: Result<T, impl Into<io::Error>>) -> String {
    match result {
        Ok(_) => "ok".into(),
        Err(error) => error_name(&error.into()),
    }
}

/// The symbol of an error number.
pub fn error_name(error: &io::Error) -> String {
    format!("{:?}", Errno::from_raw(error.raw_os_error().unwrap_or(0)))
}

/// Writes a text in one call.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    match file.write(text.as_bytes())? {
        written if written == text.len() => Ok(()),
        _ => Err(Errno::ENODATA.into()),
    }
}

/// Reads a text in one call; its lines are joined by blanks.
pub fn read(path: &Path) -> String {
    let mut bytes = [0; 8192];
    match File::open(path).and_then(|mut file| file.read(&mut bytes)) {
        Ok(0) => String::new(),
        Ok(len) => {
            let text = String::from_utf8_lossy(&bytes[..len]);
            match text.strip_suffix('\n') {
                Some(lines) => lines.replace('\n', " "),
                None => format!("{text}(no newline)"),
            }
        }
        Err(error) => error_name(&error),
    }
}

/// The permissions of a file in octal.
pub fn mode(path: &Path) -> String {
    match fs::metadata(path) {
        Ok(data) => format!("{:o}", data.permissions().mode() & 0o7777),
        Err(error) => error_name(&error),
    }
}

/// The names in a directory in order, by number where they are numbers; none if it cannot be read.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_by_cached_key(|name| (name.parse::<u32>().ok(), name.clone()));
    names
}
