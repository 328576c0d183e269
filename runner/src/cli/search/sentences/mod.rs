//! What a search says in words.

mod layouts;
mod measured;
mod question;
mod script;
mod unmet;
mod verdict;

pub(super) use layouts::{
    considered, counted, counted_split, faster_layout, order, regret, slower_with_more,
};
pub(super) use measured::{beside_measured, beside_measured_software, beside_published, in_time_as_measured};
pub(super) use question::{assumptions, restated};
pub(super) use script::{as_fast_with_megatron_lm, by_script};
pub(super) use unmet::{change_text, unmet_sentence};
pub(super) use verdict::verdict;

use trainplan_shared::question::Question;

pub(super) fn currency(question: &Question) -> &str {
    question.settings.currency.label()
}
