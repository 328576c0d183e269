//! Reading a question from fields.

use super::ask::USUAL_DAYS;
use super::batches::GlobalBatches;
use super::{Chance, Goal, GpuOffer, Objective, Question};
use crate::assumption::Assumption;
use crate::catalog::{Catalog, Gpu, Model};
use crate::cost::{Price, PurchaseForm};
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::field::Field;
use crate::goodput::{Disruptions, compute_optimal_tokens};
use crate::gpu_counts::GpuCounts;
use crate::layout::{cp_problem, ep_problem, tp_problem};
use crate::message;
use crate::options::TrainingOptions;
use crate::planning::RunSettings;
use crate::precision::Dtype;
use crate::problem::{Problem, one_of};
use crate::search::{Locks, PUBLISHED_SPLIT, PublishedSplit, StackRules};
use crate::spec::Spec;
use crate::stack::Software;
use crate::units::{group_digits, limit, nearest_divisors, nearest_multiples, parse_count, parse_days};
use crate::words::words;
use std::borrow::Cow;
use std::str::FromStr;
use std::sync::LazyLock;

/// GPU types that are compared if none is named.
pub const USUAL_GPU_TYPES: &str = "h100,b200";

/// Bytes in a GiB.
const GIB: f64 = 1_073_741_824.0;

impl Spec {
    /// Returns the question that the fields ask. Only the model is required, or a recipe of it.
    ///
    /// # Errors
    /// Every field that is invalid or contradicts others.
    pub fn question(&self) -> Result<Question, Vec<Problem>> {
        let mut reader = Reading { spec: self, problems: Vec::new() };
        let read = reader.question();
        match (read, reader.problems) {
            (Some(question), problems) if problems.is_empty() => Ok(question),
            (_, problems) => Err(problems),
        }
    }
}

/// Returns the problem of a lock on published splits if no recipe of the model has one.
fn unpublished_split(model: &Model) -> Option<Problem> {
    let has_one = !PublishedSplit::of_model(&model.id, model.architecture.layers).is_empty();
    let message = "No recipe of the model lists the layers of its pipeline stages.";
    let problem = Problem::new(Field::PipelineSplit, PUBLISHED_SPLIT, message);
    (!has_one).then(|| problem.suggest(["even", "counted"]))
}

struct Reading<'a> {
    spec: &'a Spec,
    problems: Vec<Problem>,
}

impl Reading<'_> {
    fn question(&mut self) -> Option<Question> {
        let settings = self.spec.run_settings().unwrap_or_else(|problems| {
            self.problems.extend(problems);
            RunSettings::default()
        });
        let locks = match self.spec.get(Field::Lock) {
            Some(text) => self.keep(Locks::parse(text, Field::Lock).map(Some)),
            None => None,
        };
        let headroom_gib =
            self.keep(self.spec.count(Field::Headroom)).unwrap_or(Assumption::Headroom.value());
        let counts = self.keep(self.spec.parse(Field::GpuRange)).unwrap_or_default();
        let (goal, max_cost) = self.goal();
        let chance = self.keep(self.spec.parse(Field::Chance)).unwrap_or(Chance::USUAL);
        let objective = self.keep(self.spec.parse(Field::Objective));
        let offers = self.offers(&settings);
        if self.problems.is_empty() {
            self.check_nodes(&counts, &offers);
            self.check_failures(&counts, &offers, &settings.disruptions);
        }
        let model = self.model();
        let tokens = self.keep(self.spec.typed_tokens());
        let seq_len = self.keep(self.spec.whole(Field::SeqLen));
        let model = model?;
        if let Some(locks) = &locks {
            self.check_locks(locks, &model);
        }
        let seq_len = seq_len.unwrap_or(model.seq_len);
        let gbs = self.global_batches(&model, seq_len)?;
        let goal_is_assumed =
            goal == Goal::Open && objective.is_none() && self.spec.get(Field::GpuRange).is_none();
        let goal = if goal_is_assumed { Goal::Deadline(USUAL_DAYS) } else { goal };
        let usual = match goal {
            // On a given number of GPUs, none is fewer.
            Goal::Deadline(_) if matches!(&counts, GpuCounts::Only(only) if only.len() == 1) => {
                Objective::Fastest
            }
            Goal::Deadline(_) => Objective::FewestGpus,
            // The last days cost the most, so the whole budget need not be spent.
            Goal::Budget(_) => Objective::Worthwhile,
            Goal::Open => Objective::Fastest,
        };
        Some(Question {
            spec: self.spec.clone(),
            tokens: tokens.unwrap_or_else(|| compute_optimal_tokens(model.architecture.active_parameters())),
            tokens_are_assumed: tokens.is_none(),
            seq_len,
            gbs,
            offers,
            counts,
            goal,
            chance,
            max_cost,
            goal_is_assumed,
            objective: objective.unwrap_or(usual),
            locks: locks.unwrap_or_default(),
            headroom_bytes: headroom_gib * GIB,
            settings,
            model,
        })
    }

    fn keep<T>(&mut self, read: Result<Option<T>, Problem>) -> Option<T> {
        read.unwrap_or_else(|problem| {
            self.problems.push(problem);
            None
        })
    }

    /// Refuses a named number of GPUs that fills whole nodes of no GPU type, unless it is a part of one node.
    fn check_nodes(&mut self, counts: &GpuCounts, offers: &[GpuOffer]) {
        let GpuCounts::Only(named) = counts else { return };
        let Some(node) = offers.iter().map(|offer| offer.gpu.gpus_per_node).min() else { return };
        let fills_no_node = |gpus: &&u32| {
            let works = |offer: &GpuOffer| {
                **gpus < offer.gpu.gpus_per_node || gpus.is_multiple_of(offer.gpu.gpus_per_node)
            };
            !offers.iter().any(works)
        };
        if let Some(gpus) = named.iter().find(fills_no_node) {
            let message = words!("{} GPUs don't fill whole nodes of {node}.", group_digits(f64::from(*gpus)));
            let problem = Problem::new(Field::GpuRange, gpus, message);
            // A suggestion takes the place of the whole text.
            let instead = if named.len() == 1 { nearest_multiples(*gpus, node) } else { Vec::new() };
            self.problems.push(problem.suggest(instead));
        }
    }

    /// Refuses failures that come so fast that no run ends, even on the fewest GPUs.
    fn check_failures(&mut self, counts: &GpuCounts, offers: &[GpuOffer], disruptions: &Disruptions) {
        let counts =
            offers.iter().filter_map(|offer| counts.of_nodes(offer.gpu.gpus_per_node).first().copied());
        let Some(message) = counts.min().and_then(|fewest| disruptions.never_ends(fewest)) else { return };
        let is_typed = |field: &Field| self.spec.get(*field).is_some();
        let field = Some(Field::FailureRate).filter(is_typed).unwrap_or(Field::RestartTime);
        self.problems.push(Problem::new(field, self.spec.get(field).unwrap_or_default(), message));
    }

    /// Refuses a lock if the model allows none of its values.
    fn check_locks(&mut self, locks: &Locks, model: &Model) {
        let architecture = &model.architecture;
        for lock in locks.0.iter().filter(|lock| !lock.excludes) {
            let problem_of = |value: &String| {
                if value == PUBLISHED_SPLIT {
                    return unpublished_split(model);
                }
                let degree = value.parse().ok()?;
                match (lock.field, &architecture.moe) {
                    (Field::Tp, _) => tp_problem(degree, architecture),
                    (Field::Cp, _) => cp_problem(degree, architecture),
                    (Field::Ep, Some(moe)) => {
                        Some(ep_problem(degree, moe)?.suggest(nearest_divisors(degree, moe.experts)))
                    }
                    _ => None,
                }
            };
            let problems: Option<Vec<Problem>> = lock.values.iter().map(problem_of).collect();
            let Some(problem) = problems.and_then(|problems| problems.into_iter().next()) else { continue };
            let lock = Locks(vec![lock.clone()]);
            let kept = message![format!("The lock {lock} can't be kept. ")];
            // In words, because a suggestion takes the place of all locks.
            let instead = words!(" Use {}.", one_of(&problem.suggestions));
            let message = kept.and(problem.message).and(instead);
            self.problems.push(Problem::new(Field::Lock, lock, message));
        }
    }

    fn model(&mut self) -> Option<Cow<'static, Model>> {
        let catalog = Catalog::embedded();
        let found = match (self.spec.get(Field::Model), self.spec.get(Field::Recipe)) {
            (Some(text), _) => catalog.model_or_own(text).map(Some),
            (None, Some(id)) => catalog.model_of_recipe(id).map(|model| Some(Cow::Borrowed(model))),
            (None, None) => Err(Problem::missing(Field::Model, message!["required for a search"])),
        };
        self.keep(found)
    }

    /// Returns the goal, and the most that the run may cost beside a deadline.
    fn goal(&mut self) -> (Goal, Option<f64>) {
        let deadline = self.keep(self.spec.number(Field::Deadline, parse_days));
        let budget = self.keep(self.spec.budget());
        match (deadline, budget) {
            (Some(days), max_cost) => (Goal::Deadline(days), max_cost),
            (None, Some(budget)) => (Goal::Budget(budget), None),
            (None, None) => (Goal::Open, None),
        }
    }

    fn offers(&mut self, settings: &RunSettings) -> Vec<GpuOffer> {
        let named = self.spec.get(Field::GpuTypes).or(self.spec.get(Field::Gpu));
        let texts = split_gpu_types(named.unwrap_or(USUAL_GPU_TYPES));
        let software: Option<Software> = self.keep(self.spec.parse(Field::Stack));
        let precisions = self.precisions();
        let options = self.options(software.unwrap_or_default());
        let mut offers: Vec<GpuOffer> = Vec::new();
        for text in texts {
            let found = Catalog::embedded().gpu_or_own(&text);
            let found = found.map_err(|problem| Problem { field: Field::GpuTypes, ..problem });
            let Some(gpu) = self.keep(found.map(Some)) else { continue };
            self.problems.extend(options.gemm_problem(&gpu.name, gpu.bf16_tflops));
            let rules = StackRules::of(options.software.base());
            if !rules.runs_on(gpu.generation) {
                let message = message![
                    format!("{} doesn't run on the {}. Leave out ", options.software.title(), gpu.name),
                    Field::Stack,
                    " for the newest software."
                ];
                self.problems.push(Problem::new(Field::Stack, options.software, message));
                continue;
            }
            let mut dtypes = match precisions.named.is_empty() {
                true => usual_precisions(rules, &gpu),
                false => precisions.named.clone(),
            };
            dtypes.retain(|dtype| rules.computes_in(*dtype, &gpu) && !precisions.exclude(*dtype));
            if dtypes.is_empty() {
                let message = message![
                    Field::Precisions,
                    format!(
                        " lists no precision that {} supports on the {}: \"{}\".",
                        options.software.title(),
                        gpu.name,
                        self.spec.raw(Field::Precisions)
                    )
                ];
                let has = Dtype::ALL.into_iter().filter(|dtype| rules.computes_in(*dtype, &gpu));
                let given = self.spec.raw(Field::Precisions);
                self.problems.push(Problem::new(Field::Precisions, given, message).suggest(has));
                continue;
            }
            if offers.iter().all(|offer| offer.gpu.id != gpu.id) {
                let price = settings.usual_price(&gpu.id);
                let on_demand = price.filter(Price::is_reservation);
                let on_demand = on_demand.and_then(|_| Price::assumed(&gpu.id, PurchaseForm::OnDemand));
                offers.push(GpuOffer { gpu, dtypes, options, price, on_demand });
            }
        }
        offers
    }

    fn options(&mut self, software: Software) -> TrainingOptions {
        TrainingOptions {
            overlap: self.keep(self.spec.switch(Field::Overlap)).unwrap_or(true),
            software,
            gemm_tflops: self.keep(self.spec.count(Field::GemmTflops)),
            cluster: self.keep(self.spec.parse(Field::ClusterFactor)).unwrap_or_default(),
            ..TrainingOptions::default()
        }
    }

    fn precisions(&mut self) -> Precisions {
        let mut precisions = Precisions::default();
        let mut are_excluded = false;
        for part in self.spec.raw(Field::Precisions).split(',').map(str::trim).filter(|part| !part.is_empty())
        {
            let excluded = ["no ", "not ", "!"].into_iter().find_map(|sign| part.strip_prefix(sign));
            // "no fp8, nvfp4" excludes both.
            are_excluded |= excluded.is_some();
            let read = Dtype::from_str(excluded.unwrap_or(part));
            let read = read.map_err(|problem| Problem { field: Field::Precisions, ..problem });
            let list = if are_excluded { &mut precisions.excluded } else { &mut precisions.named };
            list.extend(self.keep(read.map(Some)));
        }
        precisions
    }

    /// Returns the global batches to choose from.
    fn global_batches(&mut self, model: &Model, seq_len: u32) -> Option<GlobalBatches> {
        if let Some(gbs) = self.keep(self.spec.whole(Field::Gbs)) {
            return Some(GlobalBatches::fixed(gbs));
        }
        // Short sequences would make more than any batch may have.
        let sizes = Field::Gbs.bounds();
        let Some(text) = self.spec.get(Field::BatchTokens) else {
            let tokens = usual_batch_tokens(model.architecture.parameters());
            let sequences = f64::from(assumed_sequences(tokens, seq_len));
            return Some(GlobalBatches::assumed(sizes.nearest(sequences, parse_count) as u32));
        };
        let ends = match (limit(text), text.split_once("..")) {
            // Smaller batches make the GPUs wait for each other.
            (Some(most), _) => TypedBatch::read(most, seq_len).map(|most| (most.part(LEAST_OF_LIMIT), most)),
            (None, Some((least, most))) => {
                TypedBatch::read(least, seq_len).zip(TypedBatch::read(most, seq_len))
            }
            (None, None) => TypedBatch::read(text, seq_len).map(|one| (one, one)),
        };
        let is_possible = |(least, most): &(TypedBatch, TypedBatch)| {
            least.sequences >= 1.0
                && most.sequences >= least.sequences
                && most.sequences * f64::from(seq_len) <= MOST_TOKENS
                && sizes.contains(most.sequences, parse_count)
        };
        let Some((least, most)) = ends.filter(is_possible) else {
            let message = words!(
                " must be the tokens of a step, such as 16M, a limit, such as <=16M, or a range, such as 4M..16M: at least one \
                 sequence of {seq_len} tokens, and at most 1B in {} sequences. It is \"{text}\".",
                sizes.most
            );
            let problem = Problem::new(Field::BatchTokens, text, message![Field::BatchTokens, message]);
            self.problems.push(problem);
            return None;
        };
        let most = most.rounded_down();
        Some(GlobalBatches::range(least.rounded_up().min(most), most))
    }
}

/// The most tokens of a step that may be typed: 2³⁰, so that 1B and 1,000M are both allowed.
const MOST_TOKENS: f64 = 1024.0 * BINARY_MILLION;

/// The share of a limit at which the searched batches begin.
const LEAST_OF_LIMIT: f64 = 0.25;

/// The largest share of a batch to give up for a number with more divisors.
const MOST_ROUNDED: f64 = 1.0 / 32.0;

/// A batch that was typed as tokens.
#[derive(Debug, Clone, Copy)]
struct TypedBatch {
    /// Sequences, not rounded.
    sequences: f64,
}

impl TypedBatch {
    /// Returns the batch of a text. People write 4M for 2²², 12M for 3 · 2²² and 0.5M for 2¹⁹: an M stands for 2²⁰ if that makes
    /// whole sequences.
    fn read(text: &str, seq_len: u32) -> Option<TypedBatch> {
        let tokens = parse_count(text)?;
        let seq_len = f64::from(seq_len);
        let binary = tokens / 1e6 * BINARY_MILLION / seq_len;
        let is_binary = text.trim().ends_with(['M', 'm', 'B', 'b']) && binary.fract() == 0.0 && binary >= 1.0;
        Some(TypedBatch { sequences: if is_binary { binary } else { tokens / seq_len } })
    }

    /// Returns a part of the batch.
    fn part(self, part: f64) -> TypedBatch {
        TypedBatch { sequences: libm::fmax(self.sequences * part, 1.0) }
    }

    /// Returns the unit to whose multiples the batch is rounded: 1 if it is a whole number, otherwise a power of two, because numbers
    /// of GPUs divide its multiples.
    fn unit(self) -> f64 {
        if self.sequences.fract() == 0.0 {
            return 1.0;
        }
        let most = (self.sequences * MOST_ROUNDED).max(1.0) as u32;
        f64::from(1_u32 << most.ilog2())
    }

    /// Returns whole sequences, no more than were typed.
    fn rounded_down(self) -> u32 {
        ((self.sequences / self.unit()).floor() * self.unit()).max(1.0) as u32
    }

    /// Returns whole sequences, no fewer than were typed.
    fn rounded_up(self) -> u32 {
        ((self.sequences / self.unit()).ceil() * self.unit()).max(1.0) as u32
    }
}

/// The precisions that a question permits: those named, or the usual ones if none is, without those excluded.
#[derive(Default)]
struct Precisions {
    named: Vec<Dtype>,
    excluded: Vec<Dtype>,
}

impl Precisions {
    /// Whether a precision is excluded. Excluding FP8 excludes every FP8.
    fn exclude(&self, dtype: Dtype) -> bool {
        self.excluded.iter().any(|excluded| excluded.may_be(dtype))
    }
}

/// Returns the GPU types in a list. A comma also separates the numbers of an own GPU: `h100:hbm_gb=96,hbm_tbps=2.4,b200`.
pub fn split_gpu_types(text: &str) -> Vec<String> {
    let mut types: Vec<String> = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match types.last_mut() {
            Some(own) if own.contains(':') && part.contains('=') && !part.contains(':') => {
                own.push(',');
                own.push_str(part);
            }
            _ => types.push(part.to_string()),
        }
    }
    types
}

/// Returns BF16, and the precision of 8 bits that recipes use on the GPU.
pub fn usual_precisions(rules: &StackRules, gpu: &Gpu) -> Vec<Dtype> {
    let narrow = [Dtype::Mxfp8, Dtype::Fp8Current, Dtype::Fp8];
    let narrow = narrow.into_iter().find(|dtype| rules.computes_in(*dtype, gpu));
    std::iter::once(Dtype::Bf16).chain(narrow).collect()
}

/// Tokens in 1M if people mean a multiple of 2²⁰ by it.
const BINARY_MILLION: f64 = 1_048_576.0;

/// Returns the sequences of an assumed batch of about `tokens` tokens, a multiple of 1M: a power of two, or a number nearby that
/// makes exactly these tokens.
fn assumed_sequences(tokens: f64, seq_len: u32) -> u32 {
    let binary = tokens / 1e6 * BINARY_MILLION / f64::from(seq_len);
    if binary.fract() == 0.0 && binary >= 1.0 {
        return binary as u32;
    }
    let sequences = tokens / f64::from(seq_len);
    let exponent = libm::log2(sequences).round().clamp(0.0, 31.0);
    let power = f64::from(1_u32 << exponent as u32);
    let near = (power / sequences - 1.0).abs() <= 0.1;
    (if near { power } else { sequences.round() }).max(1.0) as u32
}

/// A row of `batch_sizes.csv`.
struct BatchSize {
    up_to_parameters_b: f64,
    tokens: f64,
}

impl FromRow for BatchSize {
    fn from_row(row: &Row<'_>) -> Result<BatchSize, DataError> {
        Ok(BatchSize { up_to_parameters_b: row.number("up_to_parameters_b")?, tokens: row.number("tokens")? })
    }
}

/// Returns the tokens of a step that are assumed for a model of this many parameters.
fn usual_batch_tokens(parameters: f64) -> f64 {
    static SIZES: LazyLock<Vec<BatchSize>> = LazyLock::new(|| embedded!("batch_sizes.csv"));
    let size = SIZES.iter().find(|size| parameters <= size.up_to_parameters_b * 1e9).or(SIZES.last());
    size.map_or(f64::NAN, |size| size.tokens)
}
