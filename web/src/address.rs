//! The address of the page holds its state: reading it says what was typed, typing changes it.

use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_location, use_navigate};
use trainplan_shared::field::Field;
use trainplan_shared::link::{self, Link};
use trainplan_shared::spec::Spec;

/// The state of the page that is open.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    link: Memo<Link>,
    /// What the page keeps there besides fields, in the order of its keys.
    own: Memo<Vec<(&'static str, String)>>,
    go: StoredValue<Go>,
}

/// Goes to the same page with another query.
type Go = Box<dyn Fn(&str, bool) + Send + Sync>;

impl Address {
    /// Reads the address of the page at `path`. Call it where the page begins; its parts then find it in the context.
    pub(crate) fn provide(path: &'static str) -> Address {
        Address::provide_with(path, &[])
    }

    /// The same of a page that keeps more there than fields, under `keys` of its own.
    pub(crate) fn provide_with(path: &'static str, keys: &'static [&'static str]) -> Address {
        let query = use_location().search;
        let navigate = use_navigate();
        let go = move |query: &str, replace: bool| {
            let to = if query.is_empty() { path.to_string() } else { format!("{path}?{query}") };
            navigate(&to, NavigateOptions { replace, scroll: false, ..Default::default() });
        };
        let parts = Memo::new(move |_| split(&query.get(), keys));
        let address = Address {
            link: Memo::new(move |_| parts.with(|(fields, _)| link::read(fields))),
            own: Memo::new(move |_| parts.with(|(_, own)| own.clone())),
            go: StoredValue::new(Box::new(go)),
        };
        provide_context(address);
        address
    }

    /// The address of the page that this is part of.
    pub(crate) fn of_page() -> Address {
        #[expect(clippy::expect_used, reason = "every page provides it before its parts are made")]
        use_context().expect("a page provides its address")
    }

    /// What was typed.
    pub(crate) fn spec(self) -> Spec {
        self.link.with(|link| link.spec.clone())
    }

    /// What of the address could not be understood.
    pub(crate) fn problems(self) -> Vec<String> {
        self.link.with(|link| link.problems.clone())
    }

    /// What was typed into a field; empty if nothing.
    pub(crate) fn text(self, field: Field) -> String {
        self.link.with(|link| link.spec.raw(field).to_string())
    }

    /// Types into a field.
    pub(crate) fn set(self, field: Field, text: impl Into<String>) {
        self.update(|spec| spec.set(field, text));
    }

    /// Types into several fields at once. Typing is no step to go back over.
    pub(crate) fn update(self, change: impl FnOnce(&mut Spec)) {
        self.go(change, true);
    }

    /// Turns to something else, which the browser's way back undoes.
    pub(crate) fn turn_to(self, change: impl FnOnce(&mut Spec)) {
        self.go(change, false);
    }

    /// What the page keeps under a key of its own; empty if nothing.
    pub(crate) fn own(self, key: &str) -> String {
        self.own.with(|own| of_key(own, key))
    }

    /// Keeps a text under a key of the page's own.
    pub(crate) fn set_own(self, key: &'static str, text: impl Into<String>) {
        self.set_owns(&[(key, text.into())]);
    }

    /// Keeps several texts at once.
    pub(crate) fn set_owns(self, changes: &[(&'static str, String)]) {
        self.go_own(changes, true);
    }

    /// The same as something that the browser's way back undoes.
    pub(crate) fn turn_to_own(self, changes: &[(&'static str, String)]) {
        self.go_own(changes, false);
    }

    fn go(self, change: impl FnOnce(&mut Spec), replace: bool) {
        let mut spec = self.link.with_untracked(|link| link.spec.clone());
        change(&mut spec);
        let query = self.own.with_untracked(|own| query(&spec, own));
        self.go.with_value(|go| go(&query, replace));
    }

    fn go_own(self, changes: &[(&'static str, String)], replace: bool) {
        let mut own = self.own.get_untracked();
        own.retain(|(key, _)| changes.iter().all(|(changed, _)| key != changed));
        own.extend(changes.iter().cloned());
        let query = self.link.with_untracked(|link| query(&link.spec, &own));
        self.go.with_value(|go| go(&query, replace));
    }
}

/// A query without a page's own keys, and what it has under them.
fn split(query: &str, keys: &'static [&'static str]) -> (String, Vec<(&'static str, String)>) {
    let mut fields = form_urlencoded::Serializer::new(String::new());
    let mut own = Vec::new();
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        match keys.iter().find(|own| **own == key) {
            Some(own_key) => own.push((*own_key, value.into_owned())),
            None => {
                fields.append_pair(&key, &value);
            }
        }
    }
    (fields.finish(), own)
}

/// The query of fields and of what a page keeps besides; what is empty is left out.
pub(crate) fn query(spec: &Spec, own: &[(&'static str, String)]) -> String {
    let mut more = form_urlencoded::Serializer::new(String::new());
    for (key, value) in own.iter().filter(|(_, value)| !value.is_empty()) {
        more.append_pair(key, value);
    }
    // As in links of fields: these stay readable.
    let more = more.finish().replace("%2C", ",").replace("%2F", "/").replace("%40", "@");
    match (link::write(spec), more) {
        (fields, more) if more.is_empty() => fields,
        (fields, more) if fields.is_empty() => format!("v={}&{more}", link::VERSION),
        (fields, more) => format!("{fields}&{more}"),
    }
}

fn of_key(own: &[(&'static str, String)], key: &str) -> String {
    own.iter().find(|(own, _)| *own == key).map_or_else(String::new, |(_, value)| value.clone())
}

/// Names the page in tabs, bookmarks and history.
pub(crate) fn name_page(title: impl Fn() -> String + 'static) {
    Effect::new(move |_| document().set_title(&format!("{} · Trainplan", title())));
}

/// The address of a page that shows `spec`.
pub(crate) fn href(path: &str, spec: &Spec) -> String {
    match link::write(spec) {
        query if query.is_empty() => path.to_string(),
        query => format!("{path}?{query}"),
    }
}
