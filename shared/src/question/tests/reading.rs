//! A question is read from its fields.

use super::*;
use crate::estimate::Distance;
use crate::gpu_counts::GpuCounts;
use crate::message::Front;

#[test]
fn gpu_types_that_nobody_measured_are_compared_only_if_they_are_named() {
    let of = |fields: &[(Field, &str)]| {
        let question = ask(&[&[(Field::Model, "llama3.1-8b"), (Field::Tokens, "1T")], fields].concat());
        let is_far = |offer: &GpuOffer| {
            Distance::all_of(&offer.gpu, 8, false, &offer.options.software).contains(&Distance::Gpu)
        };
        question.offers.iter().map(is_far).collect::<Vec<_>>()
    };
    assert_eq!(of(&[]), [false, false]);
    assert_eq!(of(&[(Field::GpuTypes, "h100,vr200")]), [false, true]);
    let problems = refused(&[
        (Field::Model, "llama3.1-8b"),
        (Field::GpuTypes, "vr200"),
        (Field::Stack, "megatron-bridge-26.02"),
    ]);
    assert!(problems[0].to_string().contains("doesn't run on the VR200"), "{}", problems[0]);
}

#[test]
fn precisions_are_named_or_excluded() {
    let dtypes = |text: &str| {
        let question =
            ask(&[(Field::Model, "llama3.1-8b"), (Field::GpuTypes, "b200"), (Field::Precisions, text)]);
        question.offers[0].dtypes.iter().map(|dtype| dtype.id()).collect::<Vec<_>>().join(",")
    };
    let texts = ["", "bf16, nvfp4", "no fp8", "no nvfp4, mxfp8", "bf16,mxfp8,nvfp4,no bf16,no fp8"];
    assert_eq!(texts.map(dtypes), ["bf16,mxfp8", "bf16,nvfp4", "bf16", "bf16", "nvfp4"]);
    let problems = refused(&[(Field::Model, "llama3.1-8b"), (Field::Precisions, "no fp9")]);
    assert_eq!(problems[0].field, Field::Precisions);
    assert_eq!(refused(&[(Field::Model, "llama3.1-8b"), (Field::Precisions, "fp8,no fp8")]).len(), 2);
}

#[test]
fn precisions_can_be_chosen_that_any_gpu_type_computes_in() {
    let choices = |types: &str, text: &str| {
        let question =
            ask(&[(Field::Model, "llama3.1-8b"), (Field::GpuTypes, types), (Field::Precisions, text)]);
        let title = |choice: PrecisionChoice| {
            format!("{}{}", if choice.is_permitted { "+" } else { "-" }, choice.dtype.id())
        };
        question.precision_choices().into_iter().map(title).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(choices("a100", ""), "+bf16");
    assert_eq!(choices("h100", ""), "+bf16 +fp8-current -fp8-delayed -fp8-block");
    assert_eq!(
        choices("h100,b200", "bf16,mxfp8"),
        "+bf16 -fp8-current -fp8-delayed -fp8-block +mxfp8 -nvfp4"
    );
}

#[test]
fn a_number_of_gpus_with_a_comma_is_not_taken_for_a_list() {
    let counts = |text: &str| small(&[(Field::GpuRange, text)]).counts;
    assert_eq!(counts("1,024"), GpuCounts::Only(vec![1024]));
    assert_eq!(counts("2,560"), GpuCounts::Only(vec![2560]));
    assert_eq!(counts("64,128,256"), GpuCounts::Only(vec![64, 128, 256]));
    assert_eq!(counts("512,768"), GpuCounts::Only(vec![512, 768]));
    assert_eq!(counts("16, 384"), GpuCounts::Only(vec![16, 384]));
    let fields = [(Field::Model, "llama3.1-8b"), (Field::GpuRange, "16,384")];
    let problem = refused(&fields).remove(0);
    assert!(problem.to_string().contains("Write 16384 or \"16, 384\"."), "{problem}");
}

#[test]
fn what_is_left_out_is_assumed_and_said_so() {
    let question = ask(&[(Field::Model, "llama3.1-70b")]);
    assert!(question.tokens_are_assumed && question.gbs.are_assumed());
    assert!((question.tokens / 1.41e12 - 1.0).abs() < 0.01, "{}", question.tokens);
    // 8 Mi tokens in sequences of 8,192.
    assert_eq!(question.gbs.sizes(), [1024]);
    let types: Vec<&str> = question.offers.iter().map(|offer| offer.gpu.id.as_str()).collect();
    assert_eq!(types, ["h100", "b200"]);
    assert_eq!((question.goal, question.objective), (Goal::Deadline(60.0), Objective::FewestGpus));
    assert!(question.goal_is_assumed);
    let counted = ask(&[(Field::Model, "llama3.1-70b"), (Field::GpuRange, "1024")]);
    assert_eq!((counted.goal, counted.goal_is_assumed), (Goal::Open, false));
}

#[test]
fn a_range_of_batches_holds_its_ends_and_powers_of_two() {
    let gbs = |text: &str| small(&[(Field::BatchTokens, text)]).gbs.sizes().to_vec();
    assert_eq!(
        (gbs("4M"), gbs("12M"), gbs("0.5M"), gbs("4M..16M"), gbs("3M..5M")),
        (vec![512], vec![1536], vec![64], vec![512, 1024, 2048], vec![384, 512, 640])
    );
    assert_eq!(small(&[(Field::Gbs, "768")]).gbs.sizes(), [768]);
}

#[test]
fn no_batch_is_larger_than_the_one_that_was_typed() {
    let gbs = |text: &str| small(&[(Field::BatchTokens, text)]).gbs;
    for text in [
        "3.3M",
        "7.7M",
        "7.9M",
        "3900000",
        "8000000",
        "8,000,000",
        "1M..7.8M",
        "1M..7999999",
        "<=7.8M",
        "<=4M",
    ] {
        let most = text.rsplit_once("..").map_or(text.trim_start_matches("<="), |(_, most)| most);
        let limit = if most == "4M" { 512.0 } else { crate::units::parse_count(most).unwrap() / 8192.0 };
        let batches = gbs(text);
        let largest = f64::from(*batches.sizes().last().unwrap());
        assert!(largest <= limit && largest > limit * 0.96, "{text}: {largest} of {limit}");
        for gpus in (8..2048).step_by(8) {
            assert!(batches.suited(gpus).iter().all(|size| f64::from(*size) <= limit), "{text} on {gpus}");
        }
    }
    assert_eq!(gbs("<=8M").sizes(), [256, 512, 1024]);
    assert_eq!(gbs("7.7M").sizes(), [928]);
}

#[test]
fn counts_are_whole_nodes() {
    let counts = |text: &str| text.parse::<GpuCounts>().unwrap().of_nodes(8);
    assert_eq!(counts("500..520"), [504, 512, 520]);
    assert_eq!(counts("1024,512"), [512, 1024]);
    assert_eq!(GpuCounts::UpTo(64).of_nodes(8), [8, 16, 24, 32, 40, 48, 56, 64]);
    for text in ["many", "0", "512..256", "1.5", ""] {
        assert!(text.parse::<GpuCounts>().is_err(), "{text}");
    }
}

#[test]
fn a_number_of_gpus_fills_whole_nodes_of_a_gpu_type() {
    let problems = refused(&[(Field::GpuTypes, "h100"), (Field::GpuRange, "513")]);
    assert_eq!(problems[0].text(Front::Page), "513 GPUs don't fill whole nodes of 8. Use 512 or 520.");
    assert_eq!(
        (problems[0].field, &*problems[0].suggestions),
        (Field::GpuRange, &["512".into(), "520".into()][..])
    );
    let of_several = refused(&[(Field::GpuTypes, "h100,gb200"), (Field::GpuRange, "66")]);
    assert_eq!(of_several[0].text(Front::Page), "66 GPUs don't fill whole nodes of 4. Use 64 or 68.");
    let with_typo = refused(&[(Field::GpuTypes, "h100,gb2000"), (Field::GpuRange, "516")]);
    assert!(with_typo.iter().all(|problem| problem.field != Field::GpuRange), "{with_typo:?}");
    for (gpus, count) in [("h100", "4"), ("h100", "512,1024"), ("h100,gb200", "516")] {
        let fields = [(Field::Model, "llama3.1-8b"), (Field::Tokens, "1T")];
        ask(&[&fields[..], &[(Field::GpuTypes, gpus), (Field::GpuRange, count)]].concat());
    }
}

#[test]
fn every_mistake_is_named_at_once() {
    let problems = refused(&[
        (Field::GpuTypes, "h1000"),
        (Field::Deadline, "soon"),
        (Field::GpuRange, "few"),
        (Field::Objective, "best"),
        (Field::Lock, "tp"),
        (Field::Price, "free"),
    ]);
    let mut fields: Vec<Field> = problems.iter().map(|problem| problem.field).collect();
    fields.sort_unstable();
    let expected = [
        Field::Model,
        Field::Price,
        Field::GpuTypes,
        Field::GpuRange,
        Field::Deadline,
        Field::Objective,
        Field::Lock,
    ];
    assert_eq!(fields, expected);
    let old = refused(&[(Field::Model, "llama3.1-8b"), (Field::Stack, "nemo-1"), (Field::GpuTypes, "b200")]);
    assert!(old[0].to_string().contains("NeMo 1 (24.11 to 25.02) doesn't run on the B200"), "{}", old[0]);
    let fp8 =
        refused(&[(Field::Model, "llama3.1-8b"), (Field::GpuTypes, "a100"), (Field::Precisions, "fp8")]);
    assert_eq!(fp8[0].suggestions, ["bf16"]);
}

#[test]
fn a_lock_that_contradicts_the_model_is_refused_with_what_works() {
    let said = |model: &'static str, lock: &'static str| {
        refused(&[(Field::Model, model), (Field::Lock, lock)])[0].to_string()
    };
    assert_eq!(
        said("llama3.1-70b", "tp=3"),
        "The lock tp=3 can't be kept. The model's attention heads (64) can't be divided by TP 3. Use 2 or 4."
    );
    assert_eq!(
        said("deepseek-v3", "ep=7|9"),
        "The lock ep=7|9 can't be kept. The model's 256 experts can't be divided by EP 7. Use 4 or 8."
    );
    assert_eq!(
        said("llama3.1-8b", "pipeline-split=published"),
        "The lock pipeline-split=published can't be kept. No recipe of the model lists the layers of its pipeline stages. Use \
         even or counted."
    );
    // One value that works is enough, and one that is excluded needn't.
    for (model, lock) in [
        ("llama3.1-70b", "tp=3|8"),
        ("llama3.1-70b", "tp!=3"),
        ("llama3.1-8b", "pipeline-split=even|published"),
        ("llama3.1-8b", "pipeline-split!=published"),
        ("deepseek-v3", "pipeline-split=published"),
    ] {
        ask(&[(Field::Model, model), (Field::Lock, lock)]);
    }
}

#[test]
fn own_gpus_keep_their_commas() {
    let question = small(&[(Field::GpuTypes, "h100:hbm_gb=96,hbm_tbps=2.4,b200")]);
    let types: Vec<&str> = question.offers.iter().map(|offer| offer.gpu.id.as_str()).collect();
    assert_eq!(types, ["h100:hbm_gb=96,hbm_tbps=2.4", "b200"]);
}

#[test]
fn an_assumed_batch_suits_every_usual_number_of_gpus() {
    for gpus in ["576", "768", "1000", "1536"] {
        let fields = [(Field::Model, "llama3.1-70b"), (Field::GpuTypes, "b200"), (Field::GpuRange, gpus)];
        let answer = answer(&ask(&fields));
        let run = answer.best().unwrap_or_else(|| panic!("{gpus} GPUs have a plan"));
        let change = f64::from(run.layout.candidate.gbs) / 1024.0 - 1.0;
        assert!(change.abs() <= 0.25, "{gpus}: {change}");
        let is_near = |gbs: u32| (f64::from(gbs) / 1024.0 - 1.0).abs() <= 0.25;
        assert!(answer.layouts.iter().all(|other| is_near(other.layout.candidate.gbs)), "{gpus}");
    }
}

#[test]
fn short_sequences_have_plans_whose_batches_are_within_the_bounds() {
    let question = ask(&[(Field::Model, "llama3.1-405b"), (Field::SeqLen, "1")]);
    assert_eq!(question.gbs.sizes(), [4_194_304]);
    let [problem] =
        &refused(&[(Field::Model, "llama3.1-8b"), (Field::SeqLen, "1"), (Field::BatchTokens, "16M")])[..]
    else {
        panic!("one problem")
    };
    assert!(problem.field == Field::BatchTokens && problem.to_string().contains("in 4,194,304 sequences"));
    for tokens in ["1", "2", "32", "100"] {
        let question = small(&[(Field::SeqLen, tokens), (Field::Gbs, "1024"), (Field::GpuRange, "16")]);
        let found = answer(&question);
        let run = found.layouts.first().expect("a layout");
        assert!(
            run.days.is_finite() && run.days > 0.0 && run.mfu > 0.0 && run.mfu < 1.0,
            "{tokens}: {run:?}"
        );
    }
}
