//! What the search of a GPU type found, as rows of tables.

use trainplan_shared::field::{Field, FieldGroup};
use trainplan_shared::question::{AnswerScript, GpuAnswer, GpuOffer, PlannedRun, Question};
use trainplan_shared::spec::Spec;
use trainplan_shared::tables::PlanRow;

/// What the search of a GPU type found.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchedGpu<'a> {
    pub(super) question: &'a Question,
    /// What was typed, with the path of a model file.
    pub(super) typed: &'a Spec,
    pub(super) offer: &'a GpuOffer,
    pub(super) answer: &'a GpuAnswer,
    /// The best plan if only BF16 may be used, if the best plan does not.
    pub(super) in_bf16: Option<&'a PlannedRun>,
    /// The launch script of the best plan.
    pub(super) script: Option<&'a AnswerScript>,
    /// How many layouts are listed.
    pub(super) top: usize,
    /// The layouts that a campaign measures, with their ranks. Those that rank lower are listed too.
    pub(super) measured: &'a [(u32, &'a PlannedRun)],
}

impl<'a> SearchedGpu<'a> {
    fn row(&self, run: &'a PlannedRun) -> PlanRow<'a> {
        let published = self.answer.published.as_ref();
        let published = published.filter(|(_, other)| other.layout.candidate == run.layout.candidate);
        PlanRow {
            question: self.question,
            offer: self.offer,
            run,
            rank: None,
            is_best: false,
            recipe: published.map(|(recipe, _)| &recipe.id),
        }
    }

    /// Returns the best plan.
    pub(super) fn best(&self) -> Option<PlanRow<'a>> {
        Some(PlanRow { rank: Some(1), is_best: true, ..self.row(self.answer.best()?) })
    }

    /// Returns the listed layouts, best first: the best ones, and all that a campaign measures.
    pub(super) fn layouts(&self) -> Vec<PlanRow<'a>> {
        let has_best = self.answer.best().is_some();
        let ranked = (1..).zip(&self.answer.layouts).take(self.top);
        let measured = self.measured.iter().copied().filter(|(rank, _)| *rank as usize > self.top);
        ranked
            .chain(measured)
            .map(|(rank, run)| PlanRow { rank: Some(rank), is_best: has_best && rank == 1, ..self.row(run) })
            .collect()
    }

    /// Returns the listed layouts and the published one, which may be slower than all of them.
    pub(super) fn rows(&self) -> Vec<PlanRow<'a>> {
        let mut rows = self.layouts();
        if let Some((_, run)) = &self.answer.published
            && rows.iter().all(|row| row.run.layout.candidate != run.layout.candidate)
        {
            rows.push(self.row(run));
        }
        rows
    }

    /// Returns the command that estimates a plan, ready to paste.
    pub(super) fn command(&self, run: &PlannedRun) -> String {
        let of_run = run.spec(self.question, self.offer);
        let of_run = match of_run.get(Field::Tokens) {
            Some(_) => of_run,
            None => of_run.with(Field::Tokens, self.question.tokens.to_string()),
        };
        // Given GPU counts have no spare nodes, but a scenario has.
        let has_spares = self.question.settings.disruptions.spare_share > 0.0;
        let of_run = if has_spares { of_run } else { of_run.with(Field::SpareNodes, "0") };
        let whole_run = Field::of_group(FieldGroup::Goal).filter(|field| field.is_of_whole_run());
        // The path of a model file is shorter than its description.
        let kept = std::iter::once(Field::Model).chain(whole_run);
        let spec = kept.filter_map(|field| Some((field, self.typed.get(field)?)));
        let spec = spec.fold(of_run, |spec, (field, text)| spec.with(field, text));
        command_of_flags("estimate", spec.iter().map(|(field, text)| (field.flag(), text)))
    }
}

/// Returns a command with flags and their values, ready to paste into a shell.
pub(super) fn command_of_flags<'a>(
    command: &str,
    flags: impl Iterator<Item = (&'static str, &'a str)>,
) -> String {
    let flags = flags.map(|(flag, value)| format!(" --{flag} {}", quoted(value)));
    format!("trainplan {command}{}", flags.collect::<String>())
}

/// Returns a word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/:=,@%+-".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
