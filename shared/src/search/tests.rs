use super::space::Dimensions;
use super::*;
use crate::catalog::Catalog;
use crate::cluster_factors::{ClusterFactors, RunScatter};
use crate::estimate::{Estimate, MemoryMargin};
use crate::layout::PipelineSplit;
use crate::options::{Recompute, TrainingOptions};
use crate::precision::Dtype;
use crate::stack::{Software, Stack};
use itertools::iproduct;
use proptest::prelude::*;

/// The space of a catalog model.
fn space(
    model: &str,
    gpu: &str,
    software: impl Into<Software>,
    dtypes: &[Dtype],
    gbs: &[u32],
) -> SearchSpace<'static> {
    let catalog = Catalog::embedded();
    let model = catalog.model(model).unwrap();
    SearchSpace {
        model: &model.id,
        architecture: &model.architecture,
        gpu: catalog.gpu(gpu).unwrap(),
        dtypes: dtypes.to_vec(),
        gbs: gbs.to_vec(),
        seq_len: model.seq_len,
        options: TrainingOptions { software: software.into(), ..TrainingOptions::default() },
        splits: PublishedSplit::of_model(&model.id, model.architecture.layers),
        locks: Locks::default(),
        headroom_bytes: 0.0,
    }
}

/// Returns every combination of the values.
fn combinations(dimensions: &Dimensions) -> Vec<Candidate> {
    let Dimensions { dtypes, gbs, mbs, tp, cp, experts, pipelines, recompute, fsdp } = dimensions;
    let options: Vec<_> = iproduct!(dtypes, recompute, fsdp, gbs, mbs).collect();
    let degrees: Vec<_> = iproduct!(tp, cp, experts, pipelines).collect();
    let pairs = iproduct!(&options, &degrees);
    pairs
        .map(|((dtype, recompute, fsdp, gbs, mbs), (tp, cp, (ep, expert_tp), pipeline))| Candidate {
            dtype: **dtype,
            gbs: **gbs,
            mbs: **mbs,
            tp: **tp,
            pp: pipeline.pp,
            cp: **cp,
            ep: *ep,
            expert_tp: *expert_tp,
            vp: pipeline.vp,
            split: pipeline.split,
            recompute: **recompute,
            fsdp: **fsdp,
        })
        .collect()
}

/// Checks that a search returns what estimating every layout, one by one, returns.
fn equals_brute_force(space: SearchSpace<'static>, gpus: u32, most: usize) {
    let rules = space.rules();
    let all = combinations(&space.dimensions());
    let mut discarded = [0; Rule::ALL.len()];
    let mut expected = Vec::new();
    for candidate in &all {
        if let Some(rule) = rules.broken(candidate, gpus, space.gpu, space.options.software.properties()) {
            discarded[rule as usize] += 1;
            continue;
        }
        let estimate = space.with_inputs(candidate, gpus, Estimate::from_embedded).unwrap();
        let memory = MemoryMargin {
            free_bytes: estimate.memory.margin_bytes(),
            error_bytes: estimate.memory.error_bytes,
        };
        if memory.free_bytes < space.headroom_bytes {
            discarded[Rule::Memory as usize] += 1;
            continue;
        }
        let (step_time_s, confidence) = (estimate.step_time_s, estimate.evidence.confidence());
        expected.push(RankedLayout { candidate: *candidate, step_time_s, confidence, memory });
    }
    let least_s = expected.iter().map(RankedLayout::counted_s).fold(f64::INFINITY, f64::min);
    let fitting = expected.len() as u64;
    expected.sort_by(|one, other| one.compare(other, least_s));
    expected.truncate(most);

    let Ranking { best, counts, .. } = LayoutSearch::new(space).rank(gpus, most);
    assert_eq!(best, expected);
    assert_eq!(counts.combinations, all.len() as u64);
    for rule in Rule::ALL.into_iter().filter(|rule| *rule != Rule::Memory) {
        assert_eq!(counts.discarded_by(rule), discarded[rule as usize], "{rule}");
    }
    // Of the layouts that the bound discards, some would not have fitted either.
    assert!(counts.discarded_by(Rule::Memory) <= discarded[Rule::Memory as usize]);
    assert!(counts.fitting <= fitting && (counts.fitting > 0 || fitting == 0));
    assert_eq!(counts.valid(), counts.fitting + counts.slower + counts.discarded_by(Rule::Memory));
}

#[test]
fn a_search_of_a_dense_model_equals_brute_force() {
    for gpus in [8, 16, 48] {
        let dtypes = [Dtype::Bf16, Dtype::Fp8];
        equals_brute_force(space("llama3.1-8b", "h100", Stack::Bridge2606, &dtypes, &[128]), gpus, 10);
    }
}

#[test]
fn a_search_of_a_routed_model_equals_brute_force() {
    equals_brute_force(space("qwen3-30b-a3b", "gb200", Stack::Bridge2606, &[Dtype::Mxfp8], &[64]), 16, 10);
}

#[test]
fn a_search_near_a_run_that_surprised_the_model_equals_brute_force() {
    let mut space = space("qwen3-235b-a22b", "h100", Stack::Bridge2606, &[Dtype::Bf16], &[2048]);
    // Around the only measured run of a mixture of experts with FSDP and full recomputation with this software.
    let locks = "tp=1|2|4,pp=1,cp=1,expert-tp=1,mbs=1|2|4";
    space.locks = Locks::parse(locks, crate::field::Field::Tp).unwrap();
    equals_brute_force(space, 256, 10);
}

#[test]
fn intervals_are_wide_where_few_mixtures_of_experts_were_measured() {
    let width = |space: &SearchSpace<'_>, candidate: Candidate, gpus: u32| {
        let layout = space.estimate(&candidate, gpus).unwrap();
        layout.step_time_s.high / layout.step_time_s.mid
    };
    let plain = Candidate {
        dtype: Dtype::Fp8Current,
        gbs: 2048,
        mbs: 1,
        tp: 1,
        pp: 1,
        cp: 1,
        ep: 8,
        expert_tp: 1,
        vp: 1,
        split: &PipelineSplit::Even,
        recompute: Recompute::None,
        fsdp: false,
    };
    let mixtral = space("mixtral-8x7b", "h100", Stack::Bridge2606, &[plain.dtype], &[plain.gbs]);
    let usual = width(&mixtral, plain, 64);
    for rare in [
        Candidate { fsdp: true, ..plain },
        Candidate { recompute: Recompute::Full, ..plain },
        Candidate { cp: 2, ..plain },
    ] {
        assert!(width(&mixtral, rare, 64) > usual + 0.03, "{rare}");
    }
    // Without its own measurement, the nearest run is predicted 44 % too slow.
    let near = Candidate { mbs: 4, recompute: Recompute::Full, fsdp: true, dtype: Dtype::Bf16, ..plain };
    let qwen = space("qwen3-235b-a22b", "h100", Stack::Bridge2606, &[near.dtype], &[near.gbs]);
    assert!(width(&qwen, near, 256) > 1.2, "{}", width(&qwen, near, 256));
}

#[test]
fn a_search_on_a_gpu_that_nobody_measured_equals_brute_force() {
    // 4,096 are also more than twice as many Hopper GPUs as in any run of a mixture of experts.
    for gpus in [16, 4096] {
        let space = space("mixtral-8x7b", "gh200-96gb", Stack::Bridge2606, &[Dtype::Bf16], &[gpus]);
        equals_brute_force(space, gpus, 10);
    }
}

#[test]
fn a_search_with_own_software_equals_brute_force() {
    let own: Software =
        "megatron-bridge-26.06:attention=unfused,overlaps_tp=no,whole_rounds=yes".parse().unwrap();
    equals_brute_force(space("llama3.1-8b", "h100", own, &[Dtype::Bf16], &[48]), 16, 10);
}

#[test]
fn a_search_with_own_runs_equals_brute_force() {
    let own: Software = "nanotron:overlaps_tp=yes".parse().unwrap();
    let mut space = space("llama3.1-8b", "h100", own, &[Dtype::Bf16], &[48]);
    let scope = RunScatter::scope_of(&space.gpu.id, &own, false);
    for scatter in [0.02, 0.4] {
        let own_runs = RunScatter { runs: 6, scatter, scope };
        space.options.cluster = ClusterFactors::default().with_own_runs(Some(own_runs));
        equals_brute_force(space.clone(), 16, 10);
    }
}

#[test]
fn a_search_equals_brute_force_where_pipelines_cost_the_host_time() {
    for gpus in [16, 64] {
        equals_brute_force(space("llama3.2-1b", "a100", Stack::Nanotron2024, &[Dtype::Bf16], &[8]), gpus, 10);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_search_equals_brute_force(
        model in prop::sample::select(vec!["llama3.2-1b", "llama3.1-8b", "mixtral-8x7b", "nemotron-h-8b", "gpt3-175b"]),
        gpu in prop::sample::select(vec!["a100", "h100", "gh200", "gb200"]),
        stack in prop::sample::select(Stack::ALL.to_vec()),
        dtype in prop::sample::select(Dtype::ALL.to_vec()),
        gpus in prop::sample::select(vec![4, 8, 12, 16, 40, 64, 256]),
        gbs in prop::sample::select(vec![vec![8], vec![48], vec![32, 64], vec![256]]),
        lock in prop::sample::select(vec!["", "recompute=full", "tp!=1", "fsdp=off,pp=1|2", "pp!=1", "tp=8,pp!=1|2", "ep=1,cp=1"]),
        headroom_gib in 0.0..20.0,
        most in 1..12_usize,
    ) {
        let mut space = space(model, gpu, stack, &[dtype], &gbs);
        space.locks = Locks::parse(lock, crate::field::Field::Tp).unwrap();
        space.headroom_bytes = headroom_gib * f64::from(1 << 30);
        equals_brute_force(space, gpus, most);
    }
}

#[test]
fn every_published_layout_is_in_the_space() {
    for recipe in Catalog::embedded().recipes() {
        let software = recipe.id.release.software();
        let dtype = recipe.id.dtype;
        let mut space = space(&recipe.id.model, &recipe.id.gpu, software.stack, &[dtype], &[recipe.gbs]);
        let architecture = space.architecture.with_layers(recipe.layers).unwrap();
        space.architecture = &architecture;
        space.seq_len = recipe.seq_len;
        let wanted = Candidate::of_recipe(recipe, dtype, recipe.gbs);
        assert_eq!(
            space.rules().broken(&wanted, recipe.id.gpus, space.gpu, software.stack.properties()),
            None,
            "{}",
            recipe.id
        );
        // Locked to the layout's own values, the space holds it and nothing else.
        let is_list = matches!(wanted.split, PipelineSplit::Explicit(_));
        let lock = |set: &crate::message::Setting| {
            let is_published = is_list && set.field == crate::field::Field::PipelineSplit;
            let value = if is_published { "published" } else { &set.value };
            format!("{}={value}", set.field.flag())
        };
        let locks: Vec<String> = wanted.settings().iter().map(lock).collect();
        space.locks = Locks::parse(&locks.join(","), crate::field::Field::Tp).unwrap();
        assert_eq!(combinations(&space.dimensions()), [wanted], "{}", recipe.id);
    }
}

#[test]
fn what_is_said_of_all_layouts_is_the_same_however_many_are_wanted() {
    let space = space("llama3.1-70b", "b200", Stack::Bridge2606, &[Dtype::Bf16, Dtype::Mxfp8], &[1184]);
    let search = LayoutSearch::new(space);
    let [few, many] = [1, 100].map(|most| search.rank(592, most).counts);
    assert!(few.slower > many.slower, "the memory of more layouts is tested");
    assert_eq!(few.valid(), many.valid());
    assert!(few.reasons().eq(many.reasons()) && few.reasons().all(|(rule, _)| rule != Rule::Memory));
    // Four GPUs are too few for the weights and the optimizer.
    let none = search.rank(4, 10).counts;
    assert_eq!(none.fitting, 0);
    let too_large = (Rule::Memory, none.valid());
    assert!(none.reasons().any(|reason| reason == too_large), "every layout was tested");
}

#[test]
fn the_best_layouts_are_the_first_of_any_longer_list() {
    let space = space("llama3.1-70b", "b200", Stack::Bridge2606, &[Dtype::Bf16, Dtype::Mxfp8], &[1184]);
    let search = LayoutSearch::new(space);
    let all = search.rank(592, 60).best;
    // Some are searched, others are known from a longer list.
    for most in [1, 10, 3, 60, 7] {
        assert_eq!(search.best(592, most), all[..most.min(all.len())], "{most}");
    }
    // What is known of a space is not returned for another one.
    let others = [
        SearchSpace { gbs: vec![592], ..search.space().clone() },
        SearchSpace { dtypes: vec![Dtype::Bf16], ..search.space().clone() },
        SearchSpace { headroom_bytes: all[0].memory.free_bytes + 1.0, ..search.space().clone() },
    ];
    for other in others {
        let expected = LayoutSearch::new(other.clone()).rank(592, 5).best;
        assert_ne!(expected, all[..5]);
        assert_eq!(search.in_space(other).best(592, 5), expected);
    }
}

#[test]
fn of_equally_fast_layouts_the_simpler_is_better() {
    let ranked = |tp, mid, confidence| RankedLayout {
        candidate: Candidate {
            dtype: Dtype::Bf16,
            gbs: 1,
            mbs: 1,
            tp,
            pp: 1,
            cp: 1,
            ep: 1,
            expert_tp: 1,
            vp: 1,
            split: &PipelineSplit::Even,
            recompute: Recompute::None,
            fsdp: false,
        },
        step_time_s: crate::estimate::Interval { low: mid, mid, high: mid },
        confidence,
        memory: MemoryMargin { free_bytes: 0.0, error_bytes: 0.0 },
    };
    use crate::estimate::Confidence::{Low, Medium};
    let compare = |one: &RankedLayout, other: &RankedLayout| one.compare(other, 1.0);
    let (fast, simple) = (ranked(2, 1.0, Low), ranked(1, 1.005, Low));
    assert!(compare(&simple, &fast).is_lt());
    assert!(compare(&ranked(2, 1.0, Medium), &simple).is_lt());
    // Powers of two are simpler than other degrees.
    assert!(compare(&ranked(4, 1.005, Low), &ranked(3, 1.0, Low)).is_lt());
    // Two percent are not a tie.
    assert!(compare(&fast, &ranked(1, 1.02, Medium)).is_lt());
    let with = |free_gib: f64, mid| {
        let gib = f64::from(1 << 30);
        let memory = MemoryMargin { free_bytes: free_gib * gib, error_bytes: 4.0 * gib };
        RankedLayout { memory, ..ranked(2, mid, Low) }
    };
    // The one with clearly more free memory, otherwise the faster, and rather a slower one than one that may not fit.
    assert!(compare(&with(9.0, 1.005), &with(5.0, 1.0)).is_lt());
    assert!(compare(&with(5.0, 1.0), &with(7.0, 1.005)).is_lt());
    assert!(compare(&with(17.0, 1.0), &with(60.0, 1.005)).is_lt());
    assert!(compare(&with(9.0, 1.045), &with(2.0, 1.0)).is_lt());
    assert!(compare(&with(2.0, 1.0), &with(9.0, 1.07)).is_lt());
}
