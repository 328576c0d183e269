//! Narrows down the recipes that a log could be of.

use crate::catalog::Recipe;

/// Keeps the candidates that pass, unless none does.
pub(super) fn prefer(candidates: &mut Vec<&'static Recipe>, passes: impl Fn(&Recipe) -> bool) {
    if candidates.iter().any(|recipe| passes(recipe)) {
        candidates.retain(|recipe| passes(recipe));
    }
}

/// Keeps the candidates with this GPU count, else those with the closest. A proxy matches only its own count.
pub(super) fn nearest(candidates: &mut Vec<&'static Recipe>, gpus: u32) {
    candidates.retain(|recipe| recipe.scaling.is_some() || recipe.id.gpus == gpus);
    let sizes = candidates.iter().map(|recipe| recipe.id.gpus);
    if let Some(nearest) = sizes.min_by_key(|size| (size.abs_diff(gpus), *size)) {
        candidates.retain(|recipe| recipe.id.gpus == nearest);
    }
}

/// Returns what the candidates still differ in, as sentences.
pub(super) fn differing(candidates: &[&Recipe]) -> Vec<String> {
    let questions = [
        ("GPU type", distinct(candidates, &|recipe| recipe.id.gpu.clone())),
        ("precision", distinct(candidates, &|recipe| recipe.id.dtype.to_string())),
        ("GPU count", distinct(candidates, &|recipe| recipe.id.gpus.to_string())),
        ("global batch size", distinct(candidates, &|recipe| recipe.gbs.to_string())),
    ];
    let open = questions.into_iter().filter(|(_, values)| values.len() > 1);
    open.map(|(what, values)| format!("The log doesn't contain the {what}. Set it to {}.", either(&values)))
        .collect()
}

/// Returns values as a choice: `a, b or c`.
pub(super) fn either(values: &[String]) -> String {
    match values {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        values => values.concat(),
    }
}

/// Returns the candidates' values, each once.
pub(super) fn distinct(candidates: &[&Recipe], of: &dyn Fn(&Recipe) -> String) -> Vec<String> {
    let mut values = Vec::new();
    for recipe in candidates {
        let value = of(recipe);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}
