//! A layout of a search, with everything else that the search chooses.

use crate::catalog::Recipe;
use crate::field::Field;
use crate::layout::{Degrees, PipelineSplit};
use crate::message::Setting;
use crate::options::{Recompute, TrainingOptions};
use crate::precision::Dtype;
use crate::spec::Spec;
use serde::Serialize;
use std::fmt;

/// What "counted split" means in the text of a layout, for people.
pub const COUNTED_SPLIT: &str = "Counted split: the embedding and the loss count as a layer each, so that the first and the last stage \
                                 have one layer fewer.";

/// What a search chooses for a number of GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Candidate {
    /// Precision.
    pub dtype: Dtype,
    /// Global batch size, in sequences.
    pub gbs: u32,
    /// Micro batch size, in sequences.
    pub mbs: u32,
    /// GPUs that share each layer.
    pub tp: u32,
    /// Pipeline stages.
    pub pp: u32,
    /// GPUs that share each sequence.
    pub cp: u32,
    /// GPUs that share the experts.
    pub ep: u32,
    /// GPUs that share each expert.
    pub expert_tp: u32,
    /// Chunks of layers on each stage.
    pub vp: u32,
    /// How layers are divided among stages.
    pub split: &'static PipelineSplit,
    /// Activations that the backward pass recomputes.
    pub recompute: Recompute,
    /// Whether weights and gradients are sharded over data-parallel ranks.
    pub fsdp: bool,
}

impl Candidate {
    /// Returns the layout of a recipe in a precision, with a global batch of `gbs` sequences.
    pub fn of_recipe(recipe: &'static Recipe, dtype: Dtype, gbs: u32) -> Candidate {
        let Degrees { tp, pp, cp, ep, expert_tp, vp, ref split, .. } = recipe.degrees;
        Candidate {
            dtype,
            gbs,
            mbs: recipe.mbs,
            tp,
            pp,
            cp,
            ep,
            expert_tp,
            vp,
            split,
            recompute: recipe.recompute,
            fsdp: recipe.fsdp,
        }
    }

    /// Returns its degrees on `gpus` GPUs.
    pub fn degrees(&self, gpus: u32) -> Degrees {
        let Candidate { tp, pp, cp, ep, expert_tp, vp, .. } = *self;
        Degrees { gpus, tp, pp, cp, ep, expert_tp, vp, split: self.split.clone() }
    }

    /// Returns `options` with its recomputation and sharding.
    pub fn options(&self, options: &TrainingOptions) -> TrainingOptions {
        TrainingOptions { recompute: self.recompute, fsdp: self.fsdp, ..*options }
    }

    /// Returns how many things it does beyond plain data parallelism. Of two equally fast layouts, the simpler is better. A
    /// degree or micro batch that is not a power of two counts as one more: few other numbers of GPUs can be divided by it, and
    /// it is rarely measured.
    pub fn complexity(&self) -> u32 {
        let degrees = [self.tp, self.pp, self.cp, self.ep, self.expert_tp, self.vp];
        let dimensions = degrees.iter().filter(|degree| **degree > 1).count() as u32;
        // Not the chunks of a stage: they must divide the layers, and few models have a power of two.
        let powers = [self.tp, self.pp, self.cp, self.ep, self.expert_tp, self.mbs];
        dimensions
            + powers.iter().filter(|number| !number.is_power_of_two()).count() as u32
            + u32::from(*self.split != PipelineSplit::Even)
            + u32::from(self.fsdp)
            + self.recompute as u32
    }

    /// Returns the value of each field that it sets, in the order of forms.
    pub fn settings(&self) -> Vec<Setting> {
        Field::ALL.iter().filter_map(|field| Some(Setting::new(*field, self.value(*field)?))).collect()
    }

    /// Returns the value of a field; none if a search does not choose it.
    pub fn value(&self, field: Field) -> Option<String> {
        let switch = |on: bool| if on { "on" } else { "off" }.to_string();
        Some(match field {
            Field::Dtype => self.dtype.to_string(),
            Field::Tp => self.tp.to_string(),
            Field::Pp => self.pp.to_string(),
            Field::Cp => self.cp.to_string(),
            Field::Ep => self.ep.to_string(),
            Field::ExpertTp => self.expert_tp.to_string(),
            Field::Vp => self.vp.to_string(),
            Field::PipelineSplit => self.split.to_string(),
            Field::Mbs => self.mbs.to_string(),
            Field::Gbs => self.gbs.to_string(),
            Field::Recompute => self.recompute.to_string(),
            Field::Fsdp => switch(self.fsdp),
            _ => return None,
        })
    }

    /// Returns a specification with its values. Values that a scenario has anyway are left out.
    pub fn apply(&self, spec: Spec) -> Spec {
        self.settings().into_iter().fold(spec, |spec, setting| {
            let usual = match setting.field {
                Field::Dtype | Field::Gbs => "",
                Field::Recompute => "none",
                Field::PipelineSplit => "even",
                Field::Fsdp => "off",
                _ => "1",
            };
            let text = if setting.value == usual { "" } else { setting.value.as_str() };
            spec.with(setting.field, text)
        })
    }
}

/// Writes the layout in one line: `TP 4 · PP 2 · VP 5 · MBS 1`, without degrees of 1.
impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = [Field::Tp, Field::Pp, Field::Vp, Field::Cp, Field::Ep, Field::ExpertTp];
        let degrees = [self.tp, self.pp, self.vp, self.cp, self.ep, self.expert_tp];
        let is_plain = degrees.iter().all(|degree| *degree == 1);
        if is_plain {
            write!(f, "{} · ", if self.fsdp { "FSDP" } else { "data parallel" })?;
        }
        for (field, degree) in fields.iter().zip(degrees) {
            if degree > 1 {
                write!(f, "{} {degree} · ", field.label())?;
            }
        }
        write!(f, "MBS {}", self.mbs)?;
        if self.fsdp && !is_plain {
            write!(f, " · FSDP")?;
        }
        match self.split {
            PipelineSplit::Even => {}
            PipelineSplit::Explicit(stages) => {
                let mut sign = " · split ";
                for alike in stages.chunk_by(|one, next| one == next) {
                    match alike {
                        [one] => write!(f, "{sign}{one}")?,
                        alike => write!(f, "{sign}{}×{}", alike.len(), alike[0])?,
                    }
                    sign = "+";
                }
            }
            split => write!(f, " · {split} split")?,
        }
        match self.recompute {
            Recompute::None => Ok(()),
            some => write!(f, " · {some} recompute"),
        }
    }
}
