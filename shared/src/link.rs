//! Links: a spec as the query of a URL.
//!
//! A link has `v=1` and the short key of every field that is not empty. A published key keeps its meaning; a change of
//! meaning needs a new version.

use crate::field::Field;
use crate::problem::most_alike;
use crate::spec::Spec;
use crate::words::HAS_WORDS;

/// The version of links.
pub const VERSION: &str = "1";

/// A link that was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Link {
    /// The fields.
    pub spec: Spec,
    /// Sentences about the parts that were ignored; none in a program without [words](HAS_WORDS).
    pub problems: Vec<String>,
}

/// Returns the link of a URL's query, which is given without its question mark.
pub fn read(query: &str) -> Link {
    let mut link = Link::default();
    // The first problem: a newer version explains all others.
    let mut version = None;
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        if key == "v" {
            version = (value != VERSION).then_some(value);
            continue;
        }
        // People who write a link themselves know the names of the flags.
        let Some(field) = Field::from_key(&key).or_else(|| Field::from_flag(&key)) else {
            if HAS_WORDS {
                let keys = Field::ALL.iter().map(|field| field.key());
                let hint = most_alike(&key, keys)
                    .map_or(String::new(), |closest| format!(" Did you mean \"{closest}\"?"));
                link.problems
                    .push(format!("The link's unknown key \"{key}\" (\"{key}={value}\") is ignored.{hint}"));
            }
            continue;
        };
        let earlier = link.spec.get(field).filter(|earlier| HAS_WORDS && *earlier != value.trim());
        if let Some(earlier) = earlier {
            link.problems.push(format!(
                "The link sets {} twice. \"{value}\" is used, \"{earlier}\" is ignored.",
                field.label()
            ));
        }
        link.spec.set(field, value);
    }
    if let Some(version) = version.filter(|_| HAS_WORDS) {
        link.problems.insert(0, version_problem(&version));
    }
    link
}

/// Returns what is wrong with another version than [`VERSION`], as a sentence.
fn version_problem(version: &str) -> String {
    // Not parsed: it may have any number of digits.
    let is_number = version.bytes().all(|byte| byte.is_ascii_digit());
    match is_number && version.bytes().any(|byte| byte > b'0') {
        true => format!(
            "A newer version of Trainplan made this link: it has version \"{version}\", and this page reads version {VERSION}. \
             Unknown parts are ignored, and others may mean something else there."
        ),
        false => format!(
            "The link's version \"{version}\" is not a whole number of at least 1. The link is read as version {VERSION}."
        ),
    }
}

/// Returns the query of a URL without a question mark; empty for an empty spec.
pub fn write(spec: &Spec) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (index, (field, text)) in spec.iter().enumerate() {
        if index == 0 {
            query.append_pair("v", VERSION);
        }
        query.append_pair(field.key(), text);
    }
    // Both are allowed in a query and keep the link readable: `llama3.1-8b/h100/fp8/8@25.04`.
    query.finish().replace("%2F", "/").replace("%40", "@")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_link_is_readable() {
        let spec = Spec::default()
            .with(Field::Recipe, "llama3.1-405b/h100/fp8/512@25.04")
            .with(Field::Tokens, "15T");
        assert_eq!(write(&spec), "v=1&r=llama3.1-405b/h100/fp8/512@25.04&t=15T");
        assert_eq!(write(&Spec::default()), "");
    }

    #[test]
    fn published_links_keep_working() {
        let link = read(
            "v=1&r=llama3.1-405b/h100/fp8/512@25.04&n=1024&d=bf16&tp=8&pp=8&cp=2&vp=8&mbs=1&gbs=512&s=8192&l=126&c=full&t=15T&st=12.5&acc=a&part=p&gpn=8",
        );
        assert!(link.problems.is_empty());
        let get = |field| link.spec.get(field).unwrap();
        assert_eq!(get(Field::Gpus), "1024");
        assert_eq!(get(Field::SeqLen), "8192");
        assert_eq!(get(Field::Convention), "full");
        assert_eq!(get(Field::StepTime), "12.5");
        assert_eq!((get(Field::Account), get(Field::Partition), get(Field::GpusPerNode)), ("a", "p", "8"));
    }

    #[test]
    fn unknown_parts_are_reported_and_the_rest_is_read() {
        let link = read("v=7&r=x&gpux=3&n=1&n=2");
        assert_eq!(link.spec, Spec::default().with(Field::Recipe, "x").with(Field::Gpus, "2"));
        assert_eq!(link.problems.len(), 3);
        assert_eq!(
            link.problems[0],
            "A newer version of Trainplan made this link: it has version \"7\", and this page reads version 1. Unknown parts \
             are ignored, and others may mean something else there."
        );
        assert!(link.problems[1].contains("Did you mean \"gpu\"?"), "{:?}", link.problems);
    }

    #[test]
    fn a_link_of_a_newer_version_is_reported_even_if_all_of_it_is_known() {
        let link = read("n=8&v=9");
        assert_eq!(link.spec, Spec::default().with(Field::Gpus, "8"));
        let [problem] = &link.problems[..] else { panic!("{:?}", link.problems) };
        assert!(problem.contains("has version \"9\""), "{problem}");
        assert!(read(&format!("n=8&v={}", "9".repeat(30))).problems[0].contains("A newer version"));
    }

    #[test]
    fn a_version_that_does_not_exist_is_not_newer() {
        for version in ["0", "abc", "-1", "1.5", ""] {
            let link = read(&format!("n=8&v={version}"));
            assert_eq!(link.spec, Spec::default().with(Field::Gpus, "8"));
            assert_eq!(
                link.problems,
                [format!(
                    "The link's version \"{version}\" is not a whole number of at least 1. The link is read as version 1."
                )]
            );
        }
    }

    #[test]
    fn the_names_of_flags_are_keys_too() {
        let link = read("model=llama3.1-70b&gpu-types=h100,b200&tokens=10T&deadline=60d");
        assert_eq!(link.problems, Vec::<String>::new());
        assert_eq!(write(&link.spec), write(&read(&write(&link.spec)).spec));
        assert_eq!(link.spec.get(Field::GpuTypes), Some("h100,b200"));
        assert_eq!(link.spec.get(Field::Deadline), Some("60d"));
    }

    #[test]
    fn no_key_is_the_flag_of_another_field() {
        for field in Field::ALL {
            let by_flag = Field::from_key(field.flag());
            assert!(by_flag.is_none_or(|other| other == *field), "{field:?}: {by_flag:?}");
        }
    }

    fn any_spec() -> impl Strategy<Value = Spec> {
        let field = proptest::sample::select(Field::ALL);
        proptest::collection::vec((field, "\\PC{0,20}"), 0..12).prop_map(|texts| {
            texts.into_iter().fold(Spec::default(), |spec, (field, text)| spec.with(field, text))
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(spec in any_spec()) {
            let link = read(&write(&spec));
            prop_assert_eq!(link.problems, Vec::<String>::new());
            prop_assert_eq!(link.spec, spec);
        }

        #[test]
        fn no_query_panics(query in "\\PC*") {
            let link = read(&query);
            prop_assert_eq!(read(&write(&link.spec)).spec, link.spec);
        }
    }
}
