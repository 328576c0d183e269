//! The software of a run: a known one, or a user's own, `nanotron:overlaps_tp=yes,optimizer_bytes=8`.

use super::{Stack, StackProperties};
use crate::field::Field;
use crate::pairs::pairs;
use crate::problem::Problem;
use crate::words::words;
use std::fmt;
use std::str::FromStr;

/// The training software of a run: a known one, or a user's own, which is a known one with other properties.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Software {
    base: Stack,
    /// All properties of an own software. At least one differs from the base. None for a known software.
    own: Option<StackProperties>,
}

impl From<Stack> for Software {
    fn from(base: Stack) -> Software {
        Software { base, own: None }
    }
}

impl Software {
    /// Returns the software with these properties. If nothing differs from the base, it is the base.
    pub fn new(base: Stack, properties: StackProperties) -> Software {
        let differs = properties != *base.properties();
        Software { base, own: differs.then_some(properties) }
    }

    /// Returns the known software, or the base of custom software.
    pub fn base(self) -> Stack {
        self.base
    }

    /// Returns the known software; none for a user's own, which nobody measured.
    pub fn known(self) -> Option<Stack> {
        self.own.is_none().then_some(self.base)
    }

    /// Returns what the software does.
    pub fn properties(&self) -> &StackProperties {
        self.own.as_ref().unwrap_or(self.base.properties())
    }

    /// Returns whether it is NVIDIA's software on Megatron-Core, as in the recipes, without changes.
    pub fn is_nvidia_megatron(self) -> bool {
        self.known().is_some_and(Stack::is_nvidia_megatron)
    }

    /// Returns the software with another value of a property. If nothing differs from the base, it is the base.
    ///
    /// # Errors
    /// The property is unknown, or the text is not one of its values.
    pub fn with(self, property: &str, value: &str) -> Result<Software, Problem> {
        let mut properties = *self.properties();
        let names = StackProperties::NAMES;
        let base = self.base;
        let refuse =
            |message: String| Problem::new(Field::Stack, format_args!("{base}:{property}={value}"), message);
        let Some(place) = names.iter().position(|name| *name == property) else {
            let problem = refuse(words!("Unknown property \"{property}\" of a custom stack."));
            return Err(problem.closest_to(property, names).allow(names));
        };
        let taken = &mut *properties.values()[place];
        if !taken.take(value) {
            let problem = refuse(words!(
                "The property {property} of a custom stack must be {}, not \"{value}\".",
                taken.wanted()
            ));
            return Err(problem.closest_to(value, taken.choices()));
        }
        Ok(Software::new(self.base, properties))
    }

    /// Returns the value of every property as text, in the order of [`StackProperties::ALL`].
    pub fn values(&self) -> Vec<String> {
        self.properties().clone().values().iter().map(|value| value.text()).collect()
    }

    /// Returns the properties that differ from the base, as `overlaps_tp=yes`.
    fn changes(&self) -> Vec<String> {
        let (mut own, mut base) = (*self.properties(), *self.base.properties());
        let texts = own.values().into_iter().zip(base.values()).map(|(own, base)| (own.text(), base.text()));
        let changed = StackProperties::NAMES.into_iter().zip(texts).filter(|(_, (own, base))| own != base);
        changed.map(|(name, (own, _))| format!("{name}={own}")).collect()
    }

    /// Returns how many properties differ from the base.
    pub fn count_changes(&self) -> usize {
        self.changes().len()
    }

    /// Returns the name for people: `nanotron with overlaps_tp=yes`.
    pub fn title(&self) -> String {
        match self.own {
            None => self.base.title().to_string(),
            Some(_) => format!("{} with {}", self.base.title(), self.changes().join(", ")),
        }
    }
}

impl fmt::Display for Software {
    /// Writes the id of a known software, or the base with every property that differs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base.id())?;
        match self.own {
            None => Ok(()),
            Some(_) => write!(f, ":{}", self.changes().join(",")),
        }
    }
}

impl FromStr for Software {
    type Err = Problem;

    /// Reads a known software, or a user's own: `BASE:property=value,…`.
    fn from_str(text: &str) -> Result<Software, Problem> {
        let Some((base, list)) = text.split_once(':') else { return text.parse().map(Stack::into) };
        let base: Stack = base.parse()?;
        // The base says which properties a problem lists.
        let of_base = |problem: Problem| {
            problem.worded(|problem| Problem { given: format!("{base}:{}", problem.given), ..problem })
        };
        let given = pairs(Field::Stack, list, &StackProperties::NAMES).map_err(of_base)?;
        if given.iter().all(Option::is_none) {
            let message = words!(
                "\"{text}\" changes no property. A custom stack is written as nanotron:overlaps_tp=yes."
            );
            return Err(Problem::new(Field::Stack, text, message).suggest([base]));
        }
        let pairs = StackProperties::NAMES.into_iter().zip(given);
        pairs
            .filter_map(|(name, value)| Some((name, value?)))
            .try_fold(Software::from(base), |software, (name, value)| software.with(name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::AttentionKernels;
    use proptest::prelude::*;

    fn own(text: &str) -> Software {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_not_given_stays() {
        let software = own(" Nanotron: optimizer_bytes=8.0 , overlaps_tp=yes,attention=tuned");
        assert_eq!(software.to_string(), "nanotron:attention=tuned,overlaps_tp=yes,optimizer_bytes=8");
        assert_eq!(software.title(), "nanotron with attention=tuned, overlaps_tp=yes, optimizer_bytes=8");
        let (properties, base) = (software.properties(), Stack::Nanotron.properties());
        assert_eq!((properties.attention, properties.optimizer_bytes), (AttentionKernels::Tuned, 8.0));
        assert_eq!((properties.gradient_bytes, properties.eager), (base.gradient_bytes, base.eager));
        assert_eq!((software.base(), software.known()), (Stack::Nanotron, None));
        assert!(!own("megatron-bridge-26.06:overlaps_dp=no").is_nvidia_megatron());
    }

    #[test]
    fn software_in_which_nothing_differs_is_known() {
        for stack in Stack::ALL {
            assert_eq!(own(stack.id()).known(), Some(stack));
            let mut text = format!("{stack}:");
            for (name, value) in StackProperties::NAMES.iter().zip(Software::from(stack).values()) {
                text += &format!("{name}={value},");
            }
            assert_eq!(own(&text), Software::from(stack));
        }
        assert_eq!(own("nanotron:bucket_mib=none").with("bucket_mib", "25"), Ok(Stack::Nanotron.into()));
    }

    #[test]
    fn every_mistake_is_named() {
        let said = |text: &str| text.parse::<Software>().unwrap_err().to_string();
        assert!(said("nanotrn:eager=no").contains("Unknown software \"nanotrn\". Did you mean nanotron?"));
        assert!(
            said("nanotron:overlap_tp=yes")
                .contains("Unknown property \"overlap_tp\" in \"overlap_tp=yes\". Did you mean overlaps_tp?")
        );
        assert!(said("nanotron:").contains("changes no property. A custom stack is written as nanotron:"));
        assert!(said("nanotron:eager").contains("\"eager\" must be property=value. Did you mean eager=…?"));
        assert!(said("nanotron:eager=no,eager=yes").contains("The property eager is given twice."));
        assert!(said("nanotron:eager=on").contains("eager of a custom stack must be yes or no, not \"on\""));
        assert!(said("nanotron:attention=tunned").contains(
            "attention of a custom stack must be unfused, fused or tuned, not \"tunned\". Did you mean tuned?"
        ));
        for value in ["-1", "nan", "inf", "1e999", "many", "100.1"] {
            let said = said(&format!("nanotron:optimizer_bytes={value}"));
            assert!(said.contains("must be a number from 0 to 100, not"), "{said}");
        }
        assert!(said("nanotron:bucket_mib=0").contains("a number from 0.001 to 1000000, or none"));
        let unknown = Software::default().with("overlap", "yes").unwrap_err().to_string();
        assert!(unknown.contains("Unknown property \"overlap\" of a custom stack."), "{unknown}");
        assert!(unknown.ends_with("`trainplan stacks megatron-bridge-26.06` lists all."), "{unknown}");
        let unknown = said("megatron-bridge-25.11:overlap_tp=yes");
        assert!(unknown.ends_with("`trainplan stacks megatron-bridge-25.09` lists all."), "{unknown}");
    }

    proptest! {
        #[test]
        fn software_is_read_as_written(
            base in prop::sample::select(Stack::ALL.to_vec()),
            changes in prop::collection::vec((0..StackProperties::NAMES.len(), 0.001_f64..100.0, any::<prop::sample::Index>()), 0..9),
        ) {
            let mut software = Software::from(base);
            for (place, number, index) in changes {
                let choices = software.properties().clone().values()[place].choices();
                let value = if choices.is_empty() { number.to_string() } else { index.get(&choices).to_string() };
                software = software.with(StackProperties::NAMES[place], &value).unwrap();
            }
            prop_assert_eq!(software.to_string().parse(), Ok(software));
            prop_assert_eq!(software.known().is_some(), software == Software::from(base));
        }

        #[test]
        fn no_text_panics(text in "(nanotron|pytorch|x):([a-z_,=0-9.-]{0,20}|(eager|attention|bucket_mib)=[a-z0-9.+e-]{0,9},){0,5}") {
            if let Ok(software) = text.parse::<Software>() {
                prop_assert_eq!(software.to_string().parse(), Ok(software));
            }
        }
    }
}
