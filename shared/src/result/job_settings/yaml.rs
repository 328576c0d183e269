//! Reads plain values in the block style of PyYAML.
//!
//! A setting is on a line, below the keys of its sections, which are indented by two spaces. A list of plain values follows its key at
//! the same depth. A value with spaces that is longer than a line goes on in deeper lines:
//!
//! ```text
//! model:
//!   _target_: megatron.bridge.models.llama.llama_provider.Llama31ModelProvider
//!   recompute_modules:
//!   - core_attn
//!   virtual_pipeline_model_parallel_size: null
//! job_config:
//!   env_overrides:
//!     CONFIG_OVERRIDES: model.recompute_granularity=selective train.manual_gc=true
//!       train.manual_gc_interval=100
//! ```

use super::SettingValues;

/// A value that deeper lines may continue.
struct Value {
    depth: usize,
    /// The keys of its sections and its own, such as `model.seq_length`.
    path: String,
    text: String,
    is_item: bool,
}

/// Reads a text, and keeps the values that `is_kept`, by their paths.
pub(super) fn read(text: &str, is_kept: impl Fn(&str, &str) -> bool) -> SettingValues {
    let mut settings = SettingValues::default();
    let mut take = |last: Option<Value>| {
        let Some(Value { path, text, is_item, .. }) = last else { return };
        let value = scalar(&text);
        match is_item {
            _ if !is_kept(&path, value) => {}
            true => settings.push(&path, value),
            false => settings.keep(&path, value),
        }
    };
    // The keys whose values are on lines of their own, with their depths.
    let mut sections: Vec<(usize, String)> = Vec::new();
    let mut last: Option<Value> = None;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let rest = line.trim_start_matches(' ');
        let depth = line.len() - rest.len();
        if let Some(value) = last.as_mut().filter(|value| depth > value.depth) {
            value.text.push(' ');
            value.text += rest.trim_end();
            continue;
        }
        take(last.take());
        let item = rest.strip_prefix("- ");
        while sections.last().is_some_and(|(above, _)| *above > depth || *above == depth && item.is_none()) {
            sections.pop();
        }
        let above = sections.last().map_or("", |(_, path)| path.as_str());
        if let Some(item) = item {
            last = Some(Value { depth, path: above.to_owned(), text: item.to_owned(), is_item: true });
        } else if let Some((key, value)) = rest.split_once(':') {
            let path = if above.is_empty() { key.to_owned() } else { format!("{above}.{key}") };
            match value.trim() {
                "" => sections.push((depth, path)),
                value => last = Some(Value { depth, path, text: value.to_owned(), is_item: false }),
            }
        }
    }
    take(last);
    settings
}

/// Returns a plain value without white space and quotes around it.
fn scalar(value: &str) -> &str {
    let value = value.trim();
    let quoted = ['\'', '"'].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    quoted.unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_paths() {
        let text = "a: 1\nb:\n  c: 'x'\n  list:\n  - one\n  - \"two\"\n  - - three\n    - four\n  - five: 5\n    six: 6\n  \
                    deep:\n    key: long value that\n      goes on: here\n\n    next: null\n    - at: odds\n  d:\n  e: ''\nf: z\n";
        let settings = read(text, |_, _| true);
        let all: Vec<(&str, &str)> = settings.iter().collect();
        assert_eq!(
            all,
            [
                ("a", "1"),
                ("b.c", "x"),
                ("b.deep.key", "long value that goes on: here"),
                ("b.deep.next", "null"),
                ("b.list", "one, two"),
                ("f", "z"),
            ]
        );
        assert_eq!(read(text, |path, value| path == "f" && value == "z").iter().count(), 1);
    }
}
