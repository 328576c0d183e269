//! The state of a page, kept in the query of its address: the typed fields and the keys of the page itself.

use leptos::prelude::*;
use leptos::wasm_bindgen::JsValue;
use leptos::web_sys::Event;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_location, use_navigate};
use trainplan_shared::field::Field;
use trainplan_shared::link::{self, Link};
use trainplan_shared::spec::Spec;

/// The state of the open page.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    link: Memo<Link>,
    /// The page's own keys with their texts.
    own: Memo<Vec<(&'static str, String)>>,
    navigate: StoredValue<Navigate>,
    complete: StoredValue<Option<Complete>>,
    /// The field that the browser's current history entry was made for, while nothing else has changed since.
    edited: StoredValue<Option<Field>>,
    /// Whether a changed field makes a history entry.
    keeps_edits: bool,
}

/// What a change does to the browser's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HistoryEntry {
    /// It makes an entry.
    New,
    /// It makes an entry, unless the current one was made for the same field.
    OfEdit(Field),
    /// It replaces the current entry.
    Replaced,
}

/// Completes a change: from the fields before it and after it.
type Complete = Box<dyn Fn(&Spec, Spec) -> Spec + Send + Sync>;

/// Opens the same page with another query; if `true`, the browser's current history entry is replaced.
type Navigate = Box<dyn Fn(&str, bool) + Send + Sync>;

impl Address {
    /// Provides the address of the page at `path` to all parts of the page, with the page's own `keys` beside the fields.
    /// The program has several pages.
    pub(crate) fn provide_routed(path: &'static str, keys: &'static [&'static str]) -> Address {
        let navigate = use_navigate();
        let go = move |to: &str, replace: bool| {
            navigate(to, NavigateOptions { replace, scroll: false, ..Default::default() });
        };
        Address::provide(path, keys, use_location().search.into(), false, go)
    }

    /// Like [`Address::provide_routed`], for the only page of a program. Several programs may draw parts of the page, and
    /// all of them are notified of a change. Here, Back undoes a change of a field.
    pub(crate) fn provide_single(path: &'static str, keys: &'static [&'static str]) -> Address {
        let query = RwSignal::new(browser_query());
        let go = |to: &str, replace: bool| {
            let Ok(history) = window().history() else { return };
            let depth = depth();
            let changed = match replace {
                true => history.replace_state_with_url(&JsValue::from(depth), "", Some(to)),
                false => history.push_state_with_url(&JsValue::from(depth + 1.0), "", Some(to)),
            };
            // The browser refuses very long addresses; then the page doesn't change.
            if changed.is_ok()
                && let Ok(event) = Event::new("popstate")
            {
                let _ = window().dispatch_event(&event);
            }
        };
        let address = Address::provide(path, keys, query.into(), true, go);
        let listener = window_event_listener_untyped("popstate", move |_| {
            address.edited.set_value(None);
            query.set(browser_query());
        });
        on_cleanup(move || listener.remove());
        address
    }

    fn provide(
        path: &'static str,
        keys: &'static [&'static str],
        query: Signal<String>,
        keeps_edits: bool,
        go: impl Fn(&str, bool) + Send + Sync + 'static,
    ) -> Address {
        let navigate = move |query: &str, replace: bool| match query.is_empty() {
            true => go(path, replace),
            false => go(&format!("{path}?{query}"), replace),
        };
        let parts = Memo::new(move |_| split(&query.get(), keys));
        let address = Address {
            link: Memo::new(move |_| parts.with(|(fields, _)| link::read(fields))),
            own: Memo::new(move |_| parts.with(|(_, own)| own.clone())),
            navigate: StoredValue::new(Box::new(navigate)),
            complete: StoredValue::new(None),
            edited: StoredValue::new(None),
            keeps_edits,
        };
        provide_context(address);
        address
    }

    /// Returns the address that the page provides.
    pub(crate) fn of_page() -> Address {
        #[expect(clippy::expect_used, reason = "every page provides it before its parts are made")]
        use_context().expect("a page provides its address")
    }

    /// Applies `complete` to every change by [`Address::set`] and [`Address::update`] from now on.
    pub(crate) fn complete_with(self, complete: impl Fn(&Spec, Spec) -> Spec + Send + Sync + 'static) {
        self.complete.set_value(Some(Box::new(complete)));
    }

    /// Returns the typed fields.
    pub(crate) fn spec(self) -> Spec {
        self.link.with(|link| link.spec.clone())
    }

    /// Returns what `read` says about the typed fields.
    pub(crate) fn with_spec<T>(self, read: impl FnOnce(&Spec) -> T) -> T {
        self.link.with(|link| read(&link.spec))
    }

    /// Like [`Address::with_spec`], without following later changes.
    pub(crate) fn with_spec_untracked<T>(self, read: impl FnOnce(&Spec) -> T) -> T {
        self.link.with_untracked(|link| read(&link.spec))
    }

    /// Returns a sentence for each part of the query that is not understood.
    pub(crate) fn problems(self) -> Vec<String> {
        self.link.with(|link| link.problems.clone())
    }

    /// Returns the text of a field; empty if nothing is typed.
    pub(crate) fn text(self, field: Field) -> String {
        self.link.with(|link| link.spec.raw(field).to_string())
    }

    /// Sets the text of a field. On the only page of a program, the first of several changes of the same field in a row
    /// makes an entry in the browser's history.
    pub(crate) fn set(self, field: Field, text: impl Into<String>) {
        let entry = if self.keeps_edits { HistoryEntry::OfEdit(field) } else { HistoryEntry::Replaced };
        self.go(|spec| spec.set(field, text), entry, true);
    }

    /// Like [`Address::set`], but for a complete text, which gets its own history entry.
    pub(crate) fn commit(self, field: Field, text: impl Into<String>) {
        let entry = if self.keeps_edits { HistoryEntry::New } else { HistoryEntry::Replaced };
        self.go(|spec| spec.set(field, text), entry, true);
    }

    /// Like [`Address::commit`], for several fields.
    pub(crate) fn commit_all(self, values: Vec<(Field, String)>) {
        let entry = if self.keeps_edits { HistoryEntry::New } else { HistoryEntry::Replaced };
        self.go(|spec| values.into_iter().for_each(|(field, text)| spec.set(field, text)), entry, true);
    }

    /// Changes several fields, without a new entry in the browser's history.
    pub(crate) fn update(self, change: impl FnOnce(&mut Spec)) {
        self.go(change, HistoryEntry::Replaced, true);
    }

    /// Changes several fields with a new entry in the browser's history. The change is a whole plan or a whole question:
    /// it is not completed.
    pub(crate) fn turn_to(self, change: impl FnOnce(&mut Spec)) {
        self.go(change, HistoryEntry::New, false);
    }

    /// Like [`Address::turn_to`]. Several changes of the same field in a row make one entry.
    pub(crate) fn turn_to_edit(self, field: Field, change: impl FnOnce(&mut Spec)) {
        self.go(change, HistoryEntry::OfEdit(field), false);
    }

    /// Returns the text of one of the page's own keys; empty if it is not set.
    pub(crate) fn own(self, key: &str) -> String {
        self.own.with(|own| of_key(own, key))
    }

    /// Returns the link to the page with other fields, and with its own keys.
    pub(crate) fn link_to(self, spec: &Spec) -> String {
        let origin = window().location().origin().unwrap_or_default();
        format!("{origin}{}?{}", browser_path(), self.own.with(|own| query(spec, own)))
    }

    /// Sets one of the page's own keys.
    pub(crate) fn set_own(self, key: &'static str, text: impl Into<String>) {
        self.set_owns(&[(key, text.into())]);
    }

    /// Sets several of the page's own keys.
    pub(crate) fn set_owns(self, changes: &[(&'static str, String)]) {
        self.go_own(changes, true);
    }

    /// Sets several of the page's own keys with a new entry in the browser's history.
    pub(crate) fn turn_to_own(self, changes: &[(&'static str, String)]) {
        self.go_own(changes, false);
    }

    fn go(self, change: impl FnOnce(&mut Spec), entry: HistoryEntry, completes: bool) {
        let before = self.link.with_untracked(|link| link.spec.clone());
        let mut spec = before.clone();
        change(&mut spec);
        let spec = self.complete.with_value(|complete| match complete {
            Some(complete) if completes => complete(&before, spec),
            _ => spec,
        });
        if spec == before && entry != HistoryEntry::Replaced {
            return;
        }
        let replaces = match entry {
            HistoryEntry::New => false,
            HistoryEntry::OfEdit(field) => self.edited.get_value() == Some(field),
            HistoryEntry::Replaced => true,
        };
        let query = self.own.with_untracked(|own| query(&spec, own));
        self.navigate.with_value(|navigate| navigate(&query, replaces));
        // After the navigation, whose event ends the edit before.
        if let HistoryEntry::OfEdit(field) = entry {
            self.edited.set_value(Some(field));
        }
    }

    fn go_own(self, changes: &[(&'static str, String)], replace: bool) {
        let mut own = self.own.get_untracked();
        own.retain(|(key, _)| changes.iter().all(|(changed, _)| key != changed));
        own.extend(changes.iter().cloned());
        let query = self.link.with_untracked(|link| query(&link.spec, &own));
        self.navigate.with_value(|navigate| navigate(&query, replace));
    }
}

/// Returns how many entries of the browser's history this page has made before the current one.
fn depth() -> f64 {
    window()
        .history()
        .and_then(|history| history.state())
        .ok()
        .and_then(|state| state.as_f64())
        .unwrap_or(0.0)
}

/// Whether the only page of a program was changed since it was opened. It does not follow the address by itself.
pub(crate) fn can_undo() -> bool {
    depth() > 0.0
}

/// Undoes the last change of the only page of a program. Where nothing was changed, it doesn't leave the page.
pub(crate) fn undo() {
    if can_undo() {
        let _ = window().history().and_then(|history| history.back());
    }
}

/// Repeats the change that was undone last.
pub(crate) fn redo() {
    let _ = window().history().and_then(|history| history.forward());
}

/// Replaces the path of the browser's address, without loading the page.
pub(crate) fn move_to(path: &str) {
    let query = window().location().search().unwrap_or_default();
    if let Ok(history) = window().history() {
        // If the browser refuses, the page stays where it is.
        let _ = history.replace_state_with_url(&JsValue::NULL, "", Some(&format!("{path}{query}")));
    }
}

/// Returns the path of the browser's address.
pub(crate) fn browser_path() -> String {
    window().location().pathname().unwrap_or_default()
}

/// Returns the query of the browser's address.
fn browser_query() -> String {
    window().location().search().unwrap_or_default().trim_start_matches('?').to_string()
}

/// Splits a query into the query of the fields and the texts of the page's own keys.
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

/// Returns the query of fields and a page's own keys, without empty ones.
pub(crate) fn query(spec: &Spec, own: &[(&'static str, String)]) -> String {
    let mut more = form_urlencoded::Serializer::new(String::new());
    for (key, value) in own.iter().filter(|(_, value)| !value.is_empty()) {
        more.append_pair(key, value);
    }
    // Readable in links, as in [`link::write`].
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

/// Sets the title of the page in tabs, bookmarks and the history.
pub(crate) fn name_page(title: impl Fn() -> String + 'static) {
    Effect::new(move |_| document().set_title(&format!("{} · Trainplan", title())));
}

/// Returns the address of the page at `path` with these fields.
pub(crate) fn href(path: &str, spec: &Spec) -> String {
    match link::write(spec) {
        query if query.is_empty() => path.to_string(),
        query => format!("{path}?{query}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &[&str] = &["ids", "y"];

    #[test]
    fn a_query_is_split_into_fields_and_own_keys_and_put_together_again() {
        for text in ["v=1&n=1024", "v=1&n=1024&ids=a,b&y=log", "v=1&ids=a,b", ""] {
            let (fields, own) = split(text, KEYS);
            assert_eq!(query(&link::read(&fields).spec, &own), text);
        }
        let (fields, own) = split("n=1024&y=log&ids=a%2Cb", KEYS);
        assert_eq!(fields, "n=1024");
        assert_eq!((of_key(&own, "ids"), of_key(&own, "y")), ("a,b".into(), "log".into()));
    }

    #[test]
    fn empty_own_keys_are_left_out() {
        assert_eq!(query(&Spec::default(), &[("ids", String::new()), ("y", "log".into())]), "v=1&y=log");
        assert_eq!(of_key(&[], "ids"), "");
    }

    #[test]
    fn an_address_without_fields_has_no_query() {
        assert_eq!(href("/benchmarks", &Spec::default()), "/benchmarks");
        assert_eq!(href("/", &Spec::default().with(Field::Gpus, "64")), "/?v=1&n=64");
    }
}
