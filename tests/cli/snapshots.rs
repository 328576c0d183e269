//! Golden files: what the program prints is compared with the files in tests/cli/snapshots.
//!
//! A difference fails. Accept an intended one by `INSTA_UPDATE=always cargo test -p trainplan-tests --test
//! cli golden_`, and review the changed files like code.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Golden files of one test, in a folder of their own.
pub(crate) struct GoldenFiles {
    folder: &'static str,
    names: BTreeSet<String>,
    differences: Vec<String>,
}

impl GoldenFiles {
    pub(crate) fn new(folder: &'static str) -> GoldenFiles {
        GoldenFiles { folder, names: BTreeSet::new(), differences: Vec::new() }
    }

    /// Compares a text with the golden file of that name.
    pub(crate) fn check(&mut self, name: &str, text: &str) {
        assert!(self.names.insert(name.to_string()), "two golden files are called {name}");
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(format!("snapshots/{}", self.folder));
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        let text = without_tokens(&without_times(text));
        let same = catch_unwind(AssertUnwindSafe(|| {
            settings.bind(|| insta::assert_snapshot!(name.to_string(), text));
        }));
        if same.is_err() {
            self.differences.push(name.to_string());
        }
    }

    /// Fails if a text differed, or if a golden file belongs to nothing that was checked.
    pub(crate) fn finish(self) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cli/snapshots").join(self.folder);
        let file_name =
            |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let files: BTreeSet<String> = std::fs::read_dir(&folder).unwrap().map(file_name).collect();
        let golden = files.iter().filter_map(|file| file.strip_suffix(".snap"));
        let unreferenced: Vec<&str> = golden.filter(|name| !self.names.contains(*name)).collect();
        assert!(unreferenced.is_empty(), "remove from {}: {unreferenced:?}", folder.display());
        assert!(
            self.differences.is_empty(),
            "these differ from {}: {:?}",
            folder.display(),
            self.differences
        );
    }
}

/// Returns the text with secret tokens replaced.
fn without_tokens(text: &str) -> String {
    let word = |word: &str| if word.starts_with("tp_") { "[TOKEN]".to_string() } else { word.to_string() };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ");
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Returns the text with times and dates (`2026-01-31T09:30:00Z`, `2026-01-31 09:30`) replaced.
fn without_times(text: &str) -> String {
    const DATE: &str = "0000-00-00?00:00";
    let is_time = |rest: &[char]| {
        let matches = |(pattern, c): (char, &char)| match pattern {
            '0' => c.is_ascii_digit(),
            '?' => matches!(c, ' ' | 'T'),
            other => other == *c,
        };
        rest.len() >= DATE.len() && DATE.chars().zip(rest).all(matches)
    };
    let chars: Vec<char> = text.chars().collect();
    let (mut replaced, mut at) = (String::new(), 0);
    while at < chars.len() {
        if is_time(&chars[at..]) {
            replaced.push_str("[TIME]");
            at += DATE.len();
            at += chars[at..].iter().take_while(|c| matches!(c, '0'..='9' | ':' | '.' | 'Z')).count();
        } else {
            replaced.push(chars[at]);
            at += 1;
        }
    }
    replaced
}
