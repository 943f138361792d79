//! How well a component of a job is known.

/// A length of time, in ns, as well as the trace determines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bounds {
    /// Known to the nanosecond of the trace's clock.
    Exact(u64),
    /// Between two lengths, both included.
    Between {
        /// At least this.
        lo: u64,
        /// At most this.
        hi: u64,
    },
    /// No shorter than this; how much longer, the trace does not say.
    AtLeast(u64),
    /// The trace does not say.
    #[default]
    Unknown,
}

impl Bounds {
    /// Exact if both bounds agree.
    #[must_use]
    pub fn between(lo: u64, hi: u64) -> Self {
        if lo >= hi { Self::Exact(hi) } else { Self::Between { lo, hi } }
    }

    /// No shorter than this, which says nothing if it is nothing.
    #[must_use]
    pub fn at_least(lo: u64) -> Self {
        if lo == 0 { Self::Unknown } else { Self::AtLeast(lo) }
    }

    /// The least it can be; of an unknown one, nothing.
    #[must_use]
    pub fn lo(self) -> Option<u64> {
        match self {
            Self::Exact(ns) | Self::Between { lo: ns, .. } | Self::AtLeast(ns) => Some(ns),
            Self::Unknown => None,
        }
    }

    /// The most it can be; nothing if there is no telling. Statistics count this, which is the safe side.
    #[must_use]
    pub fn hi(self) -> Option<u64> {
        match self {
            Self::Exact(ns) | Self::Between { hi: ns, .. } => Some(ns),
            Self::AtLeast(_) | Self::Unknown => None,
        }
    }

    /// Whether `ns` is among the lengths it can have. Everything is, if it is unknown.
    #[must_use]
    pub fn allows(self, ns: u64) -> bool {
        match self {
            Self::Exact(exact) => exact == ns,
            Self::Between { lo, hi } => (lo..=hi).contains(&ns),
            Self::AtLeast(lo) => lo <= ns,
            Self::Unknown => true,
        }
    }

    /// `exact`, `bounded`, `at least` or `unknown`.
    #[must_use]
    pub fn precision(self) -> &'static str {
        match self {
            Self::Exact(_) => "exact",
            Self::Between { .. } => "bounded",
            Self::AtLeast(_) => "at least",
            Self::Unknown => "unknown",
        }
    }

    /// Both together.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        let (Some(lo), Some(more)) = (self.lo(), other.lo()) else { return Self::Unknown };
        let lo = lo.saturating_add(more);
        match self.hi().zip(other.hi()) {
            Some((hi, more)) => Self::between(lo, hi.saturating_add(more)),
            None => Self::AtLeast(lo),
        }
    }
}
