//! Saved plans as tables: for programs and for people.

use super::SavedPlan;
use super::facts::PlanFact;
use crate::pages::plan::trust::trust_text;
use trainplan_shared::tables::TextTable;

/// Returns the plans as data: numbers without formatting, one column for each value and each end of a range.
pub(super) fn data(plans: &[SavedPlan]) -> TextTable {
    type Value = fn(&SavedPlan) -> Option<String>;
    let columns: [(&str, Value); 33] = [
        ("model", |saved| Some(saved.model.clone())),
        ("tokens", |saved| Some(saved.tokens.to_string())),
        ("gpu", |saved| Some(saved.gpu.clone())),
        ("gpus", |saved| Some(saved.plan.gpus.to_string())),
        ("dtype", |saved| Some(saved.plan.precision.clone())),
        ("layout", |saved| Some(saved.plan.layout.clone())),
        ("software", |saved| Some(saved.software.clone())),
        ("days", |saved| Some(saved.plan.days.mid.to_string())),
        ("days_low", |saved| Some(saved.plan.days.low.to_string())),
        ("days_high", |saved| Some(saved.plan.days.high.to_string())),
        ("limit_days", |saved| Some(saved.limit_days?.to_string())),
        ("in_time_of_ten", |saved| Some(saved.in_time_of_ten()?.to_string())),
        ("days_as_measured", |saved| Some(saved.as_measured_days?.to_string())),
        ("days_by_script", |saved| {
            saved.script.filter(|script| !script.is_unavailable)?;
            Some(saved.days_by_script().mid.to_string())
        }),
        ("price", |saved| saved.price.clone()),
        ("cost", |saved| Some(saved.plan.cost?.mid.to_string())),
        ("cost_low", |saved| Some(saved.plan.cost?.low.to_string())),
        ("cost_high", |saved| Some(saved.plan.cost?.high.to_string())),
        ("cost_on_demand", |saved| Some(saved.on_demand_cost()?.mid.to_string())),
        ("whole_term_cost_low", |saved| {
            Some((saved.whole_term?.0 * f64::from(saved.plan.paid_gpus)).to_string())
        }),
        ("whole_term_cost_high", |saved| {
            Some((saved.whole_term?.1 * f64::from(saved.plan.paid_gpus)).to_string())
        }),
        ("currency", |saved| saved.plan.cost.map(|_| saved.currency.clone())),
        ("mwh", |saved| Some(saved.plan.mwh.mid.to_string())),
        ("mwh_low", |saved| Some(saved.plan.mwh.low.to_string())),
        ("mwh_high", |saved| Some(saved.plan.mwh.high.to_string())),
        ("tokens_per_step", |saved| Some(saved.plan.batch_tokens.to_string())),
        ("step_time_s", |saved| Some(saved.plan.step_s.mid.to_string())),
        ("step_time_s_low", |saved| Some(saved.plan.step_s.low.to_string())),
        ("step_time_s_high", |saved| Some(saved.plan.step_s.high.to_string())),
        ("tokens_per_s_per_gpu", |saved| Some(saved.plan.tokens_per_s_per_gpu.to_string())),
        ("mfu", |saved| Some(saved.plan.mfu.to_string())),
        ("spare_gib", |saved| Some(saved.plan.spare_gib.to_string())),
        ("confidence", |saved| Some(trust_text(saved.plan.trust).word.to_ascii_lowercase())),
    ];
    TextTable {
        titles: columns.map(|(title, _)| title).to_vec(),
        numbers: vec![false; columns.len()],
        rows: plans.iter().map(|saved| columns.map(|(_, value)| value(saved)).to_vec()).collect(),
    }
}

/// Returns the plans as a table for people, with a row for each.
pub(super) fn table(plans: &[SavedPlan]) -> TextTable {
    let facts = PlanFact::ALL;
    let is_number = |fact: PlanFact| plans.iter().any(|saved| fact.value(saved).is_some());
    TextTable {
        titles: facts.map(PlanFact::title).to_vec(),
        numbers: facts.map(is_number).to_vec(),
        rows: plans.iter().map(|saved| facts.map(|fact| Some(fact.text(saved))).to_vec()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::two;
    use super::*;

    #[test]
    fn a_table_has_a_row_for_each_plan_and_a_column_for_each_fact() {
        let table = table(&two());
        assert_eq!(table.rows.len(), 2);
        assert!(table.rows.iter().all(|row| row.len() == PlanFact::ALL.len()));
    }

    #[test]
    fn a_csv_file_has_plain_numbers() {
        let csv = data(&two()).to_csv().expect("writing to memory");
        let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        let column = |name: &str| rows[0].iter().position(|title| *title == name).expect("a column");
        let cost: f64 = rows[1][column("cost")].parse().expect("a number");
        assert_eq!((rows.len(), cost, rows[2][column("gpus")]), (3, 4e6, "500"));
    }
}
