//! The ends of an interval, and how they widen.

/// The ends of an interval of measured over predicted step times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ends {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Ends {
    /// Returns the ends, moved away from the prediction by an independent error of `log`, a logarithm.
    pub(super) fn with_doubt(self, log: f64) -> Ends {
        let side = |end: f64| (libm::pow(libm::log(end).max(0.0), 2.0) + log * log).sqrt();
        Ends { low: libm::exp(-side(1.0 / self.low)), high: libm::exp(side(self.high)) }
    }

    /// Returns the ends, moved towards wider ones by a share of the difference of the variances.
    pub(super) fn towards(self, wider: Ends, share: f64) -> Ends {
        let side = |own: f64, wide: f64| {
            let (own, wide) = (libm::log(own).max(0.0), libm::log(wide).max(0.0));
            (own * own + (wide * wide - own * own).max(0.0) * share).sqrt()
        };
        let low = side(1.0 / self.low, 1.0 / wider.low);
        Ends { low: libm::exp(-low), high: libm::exp(side(self.high, wider.high)) }
    }

    /// Returns the ends, but none further from the prediction than that of `most`.
    pub(super) fn within(self, most: Ends) -> Ends {
        Ends { low: self.low.max(most.low), high: self.high.min(most.high) }
    }

    /// Returns the ends, but none nearer to the prediction than `log`, a logarithm.
    pub(super) fn at_least(self, log: f64) -> Ends {
        Ends { low: self.low.min(libm::exp(-log)), high: self.high.max(libm::exp(log)) }
    }

    /// Returns the ends, wider by what each of `wider` exceeds `usual`. Errors with different causes are independent, so the
    /// squares of their logarithms add up.
    pub(super) fn widened(self, usual: Ends, wider: &[Ends]) -> Ends {
        if wider.is_empty() {
            return self;
        }
        // Of the end's distance from the prediction; 0 if the end is on the other side of it.
        let side = |end: fn(&Ends) -> f64| {
            let square = |ends: &Ends| {
                let log = libm::log(end(ends)).max(0.0);
                log * log
            };
            let more = wider.iter().map(|ends| (square(ends) - square(&usual)).max(0.0)).sum::<f64>();
            (square(&self) + more).sqrt()
        };
        Ends { low: libm::exp(-side(|ends| 1.0 / ends.low)), high: libm::exp(side(|ends| ends.high)) }
    }
}
