//! What the plan of a card rests on.

use super::other_counts::count_button;
use crate::message::search::FoundPlan;
use crate::pages::plan::Planner;
use crate::pages::plan::amounts::{cost_text, time_text};
use crate::pages::plan::findings::OfferFindings;
use crate::pages::plan::trust::trust_text;
use crate::pages::plan::verdict::at_measured_speed;
use leptos::prelude::*;
use trainplan_shared::catalog::Catalog;
use trainplan_shared::question::{as_measured, enough_as_predicted, in_time_at_that_speed};

/// What the plan of a card rests on, and what it takes if that turns out to be wrong.
#[component]
pub(super) fn Evidence(offer: OfferFindings, found: FoundPlan) -> impl IntoView {
    let plan = Planner::of_page();
    let FoundPlan { trust, measured_software, .. } = found;
    let is_planned = Catalog::embedded().gpu(&offer.gpu.id).is_ok_and(|gpu| gpu.generation.is_planned());
    let why = match is_planned {
        true => format!("The {} is not available yet, so nobody has measured it.", offer.gpu.name),
        false => trust_text(trust).why.to_string(),
    };
    let beyond = plan.search.findings.with_untracked(|findings| findings.best_as_measured_days(&offer));
    let beyond = beyond.map(|days| format!(" {}", at_measured_speed(&offer.gpu.name, days)));
    let safe = plan.search.findings.with_untracked(|findings| findings.in_time_as_measured(&offer));
    let safe = safe.map(|(safe, slowed)| {
        let costs = plan.search.findings.with_untracked(|findings| {
            let currency = &findings.asked.as_ref()?.currency;
            Some([safe.cost?, slowed.cost?].map(|cost| cost_text(cost.mid, currency)))
        });
        view! { " " {count_button(plan, &safe)} " " {in_time_at_that_speed(costs)} }
    });
    let answer = offer.answer.filter(|_| measured_software.is_none()).unwrap_or_default();
    let as_software = answer.with_measured_software;
    let enough = as_software.as_ref().zip(answer.enough_as_predicted);
    let enough = enough.map(|((software, _), gpus)| format!(" {}", enough_as_predicted(gpus, software)));
    // One warning is enough: the speed of a measured run counts its software.
    let software = as_software.filter(|_| beyond.is_none());
    let software = software.map(|(software, days)| {
        format!(" The plan takes {} {}.", time_text(days), as_measured(Some(&software)))
    });
    let is_doubtful = is_planned || beyond.is_some() || software.is_some();
    view! {
        <p class="card-evidence" class:doubtful=is_doubtful>
            {why} {beyond} {safe} {software} {enough}
        </p>
    }
}
