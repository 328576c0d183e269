//! The address of the page holds its state: reading it says what was typed, typing changes it.

use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_location, use_navigate};
use trainplan_shared::link::{self, Link};
use trainplan_shared::problem::Field;
use trainplan_shared::spec::Spec;

/// The state of the page that is open.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    link: Memo<Link>,
    go: StoredValue<Go>,
}

/// Goes to the same page with another query.
type Go = Box<dyn Fn(&str, bool) + Send + Sync>;

impl Address {
    /// Reads the address of the page at `path`. Call it where the page begins; its parts then find it in the context.
    pub(crate) fn provide(path: &'static str) -> Address {
        let query = use_location().search;
        let navigate = use_navigate();
        let go = move |query: &str, replace: bool| {
            let to = if query.is_empty() { path.to_string() } else { format!("{path}?{query}") };
            navigate(&to, NavigateOptions { replace, scroll: false, ..Default::default() });
        };
        let address = Address {
            link: Memo::new(move |_| link::read(&query.get())),
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

    fn go(self, change: impl FnOnce(&mut Spec), replace: bool) {
        let mut spec = self.link.with_untracked(|link| link.spec.clone());
        change(&mut spec);
        self.go.with_value(|go| go(&link::write(&spec), replace));
    }
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
