//! Why no layout works on a GPU type, and changes that help.

use super::changes::Changes;
use crate::message::search::FoundChange;
use crate::pages::plan::findings::{Findings, OfferFindings};
use crate::pages::plan::locks;
use leptos::prelude::*;
use trainplan_shared::catalog::Catalog;
use trainplan_shared::field::Field;
use trainplan_shared::link;
use trainplan_shared::search::{Lock, USED_OF_NVL72};
use trainplan_shared::units::group_digits;

/// Why no layout works, and changes that help.
#[component]
pub(super) fn NoLayout(
    /// How the locks prevent it, as a sentence.
    by_locks: Option<String>,
    discarded: Vec<(String, u64)>,
    changes: Vec<FoundChange>,
) -> impl IntoView {
    let all: u64 = discarded.iter().map(|(_, count)| count).sum();
    let main = discarded.into_iter().max_by_key(|(_, count)| *count);
    view! {
        <p class="hero"><strong>"No layout"</strong></p>
        {by_locks.map(|text| view! { <p class="missed">{text}</p> })}
        {main.map(|(reason, count)| view! {
            <p>{discarded_text(all, count, &reason)}</p>
        })}
        <Changes changes />
    }
}

/// Returns how many layouts were discarded, and how many of them for the most frequent reason.
fn discarded_text(all: u64, count: u64, reason: &str) -> String {
    let of_them = match count == all {
        true => String::new(),
        false => format!(", {} of them", group_digits(count as f64)),
    };
    format!("{} layouts were discarded{of_them} because {reason}.", group_digits(all as f64))
}

/// Returns why no layout works because of the question's locks, as a sentence; none without locks.
pub(super) fn obstacle(
    findings: &Findings,
    offer: &OfferFindings,
    changes: &[FoundChange],
) -> Option<String> {
    let question = link::read(&findings.query).spec;
    let locks = locks::read(question.raw(Field::Lock)).0;
    let gpu = Catalog::embedded().gpu_or_own(&offer.gpu.id).ok()?;
    let most = gpu.nvlink_domain.min(USED_OF_NVL72);
    let is_too_large = |value: &String| value.parse::<u32>().is_ok_and(|tp| tp > most);
    let leaves =
        |lock: &&Lock| lock.field == Field::Tp && !lock.excludes && lock.values.iter().all(is_too_large);
    if let Some(lock) = locks.iter().find(leaves) {
        let tp = locks::lock_text(lock);
        return Some(format!(
            "TP {tp} is too large: jobs use {most} GPUs of an NVLink domain, so TP is at most {most}."
        ));
    }
    let kept = changes.iter().find(|change| change.key == Field::Lock.key());
    let kept = kept.map_or(Vec::new(), |change| locks::read(&change.value).0);
    let removed = locks.into_iter().filter(|lock| !kept.contains(lock));
    let removed = removed.map(|lock| format!("{} {}", lock.field.label(), locks::lock_text(&lock)));
    let removed: Vec<String> = removed.collect();
    (!removed.is_empty()).then(|| format!("No layout works with {}.", removed.join(", ")))
}
