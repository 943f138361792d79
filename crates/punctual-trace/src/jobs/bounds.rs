//! Precision of a job's terms.

/// A duration in ns, as precisely as the trace determines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bounds {
    /// Known to the nanosecond of the trace's clock.
    Exact(u64),
    /// Between two durations, both included.
    Between {
        /// Lower bound.
        lo: u64,
        /// Upper bound.
        hi: u64,
    },
    /// At least this long; the trace gives no upper bound.
    AtLeast(u64),
    /// The trace does not determine it.
    #[default]
    Unknown,
}

impl Bounds {
    /// Creates bounds; they are exact if both agree.
    #[must_use]
    pub fn between(lo: u64, hi: u64) -> Self {
        if lo >= hi { Self::Exact(hi) } else { Self::Between { lo, hi } }
    }

    /// Creates a lower bound; a bound of 0 is no information.
    #[must_use]
    pub fn at_least(lo: u64) -> Self {
        if lo == 0 { Self::Unknown } else { Self::AtLeast(lo) }
    }

    /// Returns the lower bound, or `None` if unknown.
    #[must_use]
    pub fn lo(self) -> Option<u64> {
        match self {
            Self::Exact(ns) | Self::Between { lo: ns, .. } | Self::AtLeast(ns) => Some(ns),
            Self::Unknown => None,
        }
    }

    /// Returns the upper bound, or `None` if none exists. Statistics use it, which is
    /// conservative.
    #[must_use]
    pub fn hi(self) -> Option<u64> {
        match self {
            Self::Exact(ns) | Self::Between { hi: ns, .. } => Some(ns),
            Self::AtLeast(_) | Self::Unknown => None,
        }
    }

    /// Returns whether `ns` lies within the bounds. An unknown duration allows everything.
    #[must_use]
    pub fn allows(self, ns: u64) -> bool {
        match self {
            Self::Exact(exact) => exact == ns,
            Self::Between { lo, hi } => (lo..=hi).contains(&ns),
            Self::AtLeast(lo) => lo <= ns,
            Self::Unknown => true,
        }
    }

    /// Returns `exact`, `bounded`, `at least` or `unknown`.
    #[must_use]
    pub fn precision(self) -> &'static str {
        match self {
            Self::Exact(_) => "exact",
            Self::Between { .. } => "bounded",
            Self::AtLeast(_) => "at least",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (Some(lo), Some(more)) = (self.lo(), other.lo()) else { return Self::Unknown };
        let lo = lo.saturating_add(more);
        match self.hi().zip(other.hi()) {
            Some((hi, more)) => Self::between(lo, hi.saturating_add(more)),
            None => Self::AtLeast(lo),
        }
    }
}
