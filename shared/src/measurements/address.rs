//! Where measured runs were published.

use super::Measurement;
use crate::catalog::{Catalog, Collection, Document, Release};

/// The collection of the documents that publish recipes.
pub(crate) const RECIPES: &str = "dgxc-seed";

impl Measurement {
    /// Whether the documents that publish recipes also published the run.
    pub(crate) fn is_of_recipes(&self) -> bool {
        self.source == RECIPES
    }

    /// Returns the address of the table, log or paper with the run; none if only its collection is known.
    pub(crate) fn address(&self) -> Option<String> {
        if !self.is_of_recipes() {
            return address(&self.reference);
        }
        let release: Release = self.release.parse().ok()?;
        Catalog::embedded().document_of(release, &self.model).and_then(Document::url)
    }

    /// Returns that address, or else the address of its collection; none if the collection is unknown.
    pub(crate) fn source_url(&self) -> Option<String> {
        self.address().or_else(|| Some(Collection::of(&self.source)?.url.clone()))
    }
}

/// Returns the address that a reference names.
fn address(reference: &str) -> Option<String> {
    if let Some(paper) = reference.strip_prefix("arXiv:") {
        return Some(format!("https://arxiv.org/abs/{}", paper.split(' ').next().unwrap_or_default()));
    }
    if reference.starts_with("docs.") {
        return Some(format!("https://{}", reference.split(' ').next().unwrap_or_default()));
    }
    let with_line = |path: &str| match path.rsplit_once(':') {
        Some((path, line)) => format!("{path}#L{}", line.trim_start_matches('L')),
        None => path.to_string(),
    };
    if let Some((path, tag)) = reference.split_once(" at v") {
        return Some(format!("https://github.com/NVIDIA/dgxc-benchmarking/blob/v{tag}/{}", with_line(path)));
    }
    let (repository, path) = reference.split_once(':')?;
    let (repository, commit) = repository.split_once('@').unwrap_or((repository, "HEAD"));
    let (owner, name) = repository.split_once('+')?;
    Some(format!("https://github.com/{owner}/{name}/blob/{commit}/{}", with_line(path)).replace(' ', "%20"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurements::embedded;

    #[test]
    fn a_reference_becomes_an_address() {
        let github = "https://github.com/";
        let address = |reference: &str| address(reference).unwrap();
        assert_eq!(
            address("NVIDIA-NeMo+Megatron-Bridge:docs/performance-summary.md:L43"),
            format!("{github}NVIDIA-NeMo/Megatron-Bridge/blob/HEAD/docs/performance-summary.md#L43")
        );
        assert_eq!(
            address("nemotron/README_15b.md:54 at v24.11.1"),
            format!("{github}NVIDIA/dgxc-benchmarking/blob/v24.11.1/nemotron/README_15b.md#L54")
        );
        assert_eq!(
            address("NVIDIA+NeMo@9c5c5e9709:docs/x.md"),
            format!("{github}NVIDIA/NeMo/blob/9c5c5e9709/docs/x.md")
        );
        assert_eq!(address("arXiv:2104.04473 Table 1 (Selene A100)"), "https://arxiv.org/abs/2104.04473");
        assert_eq!(super::address("seed 001"), None);
    }

    #[test]
    fn every_fitted_run_has_a_source() {
        for row in embedded().iter().filter(|row| row.is_for_fitting()) {
            let url = row.source_url().unwrap_or_default();
            // `anchor_runs.csv` separates addresses by spaces.
            assert!(url.starts_with("https://") && !url.contains(' '), "{}: {url}", row.id);
            assert!(row.address().is_some() || !row.is_of_recipes(), "{}", row.id);
        }
    }
}
