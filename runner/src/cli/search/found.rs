//! What the search of a GPU type found, as rows of tables.

use trainplan_shared::field::{Field, FieldGroup};
use trainplan_shared::question::{GpuAnswer, GpuOffer, Objective, PlanScript, PlannedRun, Question};
use trainplan_shared::spec::Spec;
use trainplan_shared::stack::Software;
use trainplan_shared::tables::PlanRow;
use trainplan_shared::units::rounded_count;

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
    /// The launch script of the plan to show.
    pub(super) script: Option<&'a PlanScript>,
    /// The layouts with the measured software that decides that they miss the goal, each with its title.
    pub(super) missing_with: &'a [(&'static str, PlannedRun)],
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
            software: None,
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

    /// Returns the listed layouts and the published one, which may be slower than all of them, with the figures that decide whether
    /// they miss the goal.
    pub(super) fn rows(&self) -> Vec<PlanRow<'a>> {
        let mut rows = self.layouts();
        if let Some((_, run)) = &self.answer.published
            && rows.iter().all(|row| row.run.layout.candidate != run.layout.candidate)
        {
            rows.push(self.row(run));
        }
        rows.into_iter().map(|row| self.judged(row)).collect()
    }

    /// Returns the row of a layout with the figures that decide whether it misses the goal.
    fn judged(&self, row: PlanRow<'a>) -> PlanRow<'a> {
        let is_its = |(_, run): &&(&str, PlannedRun)| run.layout.candidate == row.run.layout.candidate;
        match self.missing_with.iter().find(is_its) {
            Some((software, run)) => PlanRow { software: Some(*software), run, ..row },
            None => row,
        }
    }

    /// Returns the plan to show, with the figures that decide whether it misses the goal: the best plan, or the one nearest to the
    /// goal.
    pub(super) fn shown(&self) -> Option<PlanRow<'a>> {
        let nearest = || Some(self.judged(self.row(self.answer.shown()?)));
        self.best().or_else(nearest)
    }

    /// Returns the most tokens that the limits train, if no tokens were given: those of the question are what was found.
    pub(super) fn sought_tokens(&self) -> Option<String> {
        let are_sought =
            self.question.objective == Objective::MostTokens && self.typed.get(Field::Tokens).is_none();
        are_sought.then(|| rounded_count(self.question.tokens))
    }

    /// Returns the software that the launch script of a plan runs, if it is the plan to show and the script runs other software.
    fn stack(&self, run: &PlannedRun) -> Option<Software> {
        match self.script? {
            PlanScript::Other(plan) if plan.run == *run => Some(plan.script.stack),
            _ => None,
        }
    }

    /// Returns the fields of a plan's scenario, with the path of a model file, which is shorter than its description.
    fn spec(&self, run: &PlannedRun) -> Spec {
        let spec = run.spec(self.question, self.offer);
        match self.typed.get(Field::Model) {
            Some(model) => spec.with(Field::Model, model),
            None => spec,
        }
    }

    /// Returns the command that launches a plan, ready to paste; none if no script can be written.
    pub(super) fn launch_command(&self, run: &PlannedRun) -> Option<String> {
        let release = run.launching_release(self.question, self.offer).ok()?;
        // A release itself turns off what it can't run.
        let stack = self.stack(run).filter(|_| release.is_none());
        let spec = self.spec(run);
        let spec = match stack {
            Some(stack) => spec.with(Field::Stack, stack.to_string()),
            None => spec,
        };
        let of_scenario = spec.iter().filter(|(field, _)| field.is_of_scenario());
        Some(command_of_flags("launch", of_scenario.map(|(field, text)| (field.flag(), text))))
    }

    /// Returns the command that estimates a plan, with the software of its launch script, ready to paste.
    pub(super) fn command(&self, run: &PlannedRun) -> String {
        let of_run = self.spec(run);
        let of_run = match self.stack(run) {
            Some(stack) => of_run.with(Field::Stack, stack.to_string()),
            None => of_run,
        };
        let of_run = match of_run.get(Field::Tokens) {
            Some(_) => of_run,
            None => of_run.with(Field::Tokens, self.question.tokens.to_string()),
        };
        let whole_run = Field::of_group(FieldGroup::Goal).filter(|field| field.is_of_whole_run());
        let spec = whole_run.filter_map(|field| Some((field, self.typed.get(field)?)));
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
